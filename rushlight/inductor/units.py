"""One program's text as several translation units that compile side by side.

In: the text of a program, in which definitions stand apart by blank lines. Out: texts of equal expected cost, the first with
the entry, and each a complete translation unit. A text of another form, or one too small to gain, stays whole.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Set
from dataclasses import dataclass, field

_KERNEL = re.compile(r"^static (void (kernel_\w+)\([^{}]*\)) \{$", re.MULTILINE)

# Seconds that parts of a program take to compile, as measured; only their ratios matter, and when a second unit pays. Calls of
# a template share what they instantiate, which each unit compiles for itself, so that they had better be together.
_PER_UNIT = 0.05
_PER_LINE = 0.0012  # of a kernel
_PER_STATEMENT = 0.0002  # of the functions that only declare and call
_PER_CALL = {
    "gemm": 0.035, "bgemm": 0.05, "gemm_by_panels": 0.05, "gemm_turned": 0.06, "attention": 0.02, "conv2d": 0.27,
    "depthwise_conv2d": 0.1,
    "conv2d_direct": 0.02, "conv2d_winograd": 0.015, "conv2d_input_gradient": 0.02, "conv2d_weight_gradient": 0.1,
    "pack_b": 0.002, "conv2d_channelwise": 0.05, "channelwise_input_gradient": 0.05, "channelwise_weight_gradient": 0.05,
}  # fmt: skip
_PER_TEMPLATE = {
    "gemm": 0.05, "attention": 0.22, "conv2d_direct": 0.16, "conv2d_winograd": 0.25, "conv2d_input_gradient": 0.25,
    "pack_b": 0.08, "pack_winograd": 0.08, "pack_filter": 0.08,
}  # fmt: skip
_CALL = re.compile(r"\brl::(\w+)[(<]")


@dataclass(frozen=True)
class _Block:
    """A piece of the text, the number of its first line, and, for a kernel, its declaration."""

    text: str
    line: int
    declaration: str = ""

    @functools.cached_property
    def calls(self) -> list[str]:
        """The native functions that it calls."""
        return _CALL.findall(self.text)

    @property
    def own_cost(self) -> float:
        """What it takes besides its templates."""
        per_line = _PER_LINE if self.declaration else _PER_STATEMENT
        return per_line * self.text.count("\n") + sum(_PER_CALL.get(name, 0.0) for name in self.calls)

    @functools.cached_property
    def templates(self) -> frozenset[str]:
        """What it shares with other pieces."""
        return frozenset(self.calls) & _PER_TEMPLATE.keys()


@dataclass
class _Part:
    """What a unit will hold."""

    kernels: list[_Block] = field(default_factory=list)
    templates: set[str] = field(default_factory=set)
    cost: float = 0.0

    def take(self, block: _Block) -> None:
        """Add a piece's cost; kernels are also listed."""
        self.cost = _cost_with(self, [block])
        self.templates |= block.templates
        if block.declaration:
            self.kernels.append(block)


def split(source: str, most: int, path: str) -> list[str]:
    """At most `most` translation units; their compiler's messages name lines of `path`, which holds `source`."""
    blocks = _blocks(source)
    kernels = [block for block in blocks if block.declaration]
    if most < 2 or len(kernels) < 2 or not _is_regular(blocks):
        return [source]
    others = [block for block in blocks if not block.declaration]
    parts = _balance(kernels, others[1:], most)
    if len(parts) == 1:
        return [source]
    return [_first(others, kernels, parts[0], path), *(_unit([others[0], *part], path) for part in parts[1:])]


def _blocks(source: str) -> list[_Block]:
    blocks, line = [], 1
    for text in source.split("\n\n"):
        found = _KERNEL.search(text)
        blocks.append(_Block(text, line, found[1] if found else ""))
        line += text.count("\n") + 2
    return blocks


def _is_regular(blocks: list[_Block]) -> bool:
    """Whether the text is the includes, then kernels, then functions with C linkage."""
    rest = [block for block in blocks[1:] if not block.declaration]
    whole = all(block.text.rstrip().endswith("}") and _KERNEL.findall(block.text)[1:] == [] for block in blocks[1:])
    return blocks[0].text.startswith("#include") and whole and all(block.text.startswith('extern "C"') for block in rest)


def _balance(kernels: list[_Block], functions: list[_Block], most: int) -> list[list[_Block]]:
    """Kernels in as many parts as pay: each bundle goes to the part that is then the cheapest. `functions` are what the first
    part has besides."""
    whole = _Part()
    for block in [*functions, *kernels]:
        whole.take(block)
    parts = [_Part() for _ in range(min(most, 1 + int(whole.cost / (2 * _PER_UNIT))))]
    for block in functions:
        parts[0].take(block)
    for bundle in _bundles(kernels, most=whole.cost / len(parts)):
        part = min(parts, key=lambda part: _cost_with(part, bundle))
        for kernel in bundle:
            part.take(kernel)
    return [parts[0].kernels, *(part.kernels for part in parts[1:] if part.kernels)]


def _bundles(kernels: list[_Block], most: float) -> list[list[_Block]]:
    """Kernels of one template together, as far as they cost less than `most`, the costliest first; then single kernels."""
    families: dict[str, list[_Block]] = {}
    for kernel in kernels:
        families.setdefault(max(kernel.templates, key=_PER_TEMPLATE.__getitem__, default=""), []).append(kernel)
    single = [[kernel] for kernel in families.pop("", [])]
    bundles = []
    for family in families.values():
        count = math.ceil(_cost_with(_Part(), family) / most)
        bundles += [family[first::count] for first in range(min(count, len(family)))]
    return [*_by_cost(bundles), *_by_cost(single)]


def _by_cost(bundles: list[list[_Block]]) -> list[list[_Block]]:
    return sorted(bundles, key=lambda bundle: -_cost_with(_Part(), bundle))


def _cost_with(part: _Part, bundle: list[_Block]) -> float:
    """What a part costs with further kernels."""
    templates = frozenset().union(*(kernel.templates for kernel in bundle))
    return part.cost + sum(kernel.own_cost for kernel in bundle) + _cost_of(templates - part.templates)


def _cost_of(templates: Set[str]) -> float:
    return sum(_PER_TEMPLATE[name] for name in templates)


def _first(others: list[_Block], kernels: list[_Block], own: list[_Block], path: str) -> str:
    declared = "\n".join(f"{_HIDDEN}{kernel.declaration};" for kernel in kernels if kernel not in own)
    return _unit([others[0], _Block(declared, 1), *own, *others[1:]], path)


_HIDDEN = '__attribute__((visibility("hidden"))) '


def _unit(blocks: list[_Block], path: str) -> str:
    shown = []
    for block in blocks:
        visible = _KERNEL.sub(lambda found: f"{_HIDDEN}{found[1]} {{", block.text)
        shown.append(f'#line {block.line} "{path}"\n{visible}')
    return "\n\n".join(shown) + "\n"
