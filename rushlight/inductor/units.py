"""Split a program's text into translation units that compile in parallel.

In: a program's text, whose definitions are separated by blank lines. Out: complete translation units of similar cost; the first
has the entry. A text of another form, or a short one, stays whole.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_KERNEL = re.compile(r"^static (void (kernel_\w+)\([^{}]*\)) \{$", re.MULTILINE)

# Measured compile times in seconds. `_balance` only uses their ratios: to balance units, and to decide how many pay off.
_PER_UNIT = 0.08  # fixed, for each translation unit
_PER_KERNEL = 0.01  # fixed, for each kernel
_PER_LINE = 0.001  # per line of a kernel
_PER_STATEMENT = 0.0003  # per line of functions that only declare and call
_PER_CALL = {"gemm": 0.015, "word_gemm": 0.09, "block_gemm": 0.3}  # per call of templates that are not prebuilt
_CALL = re.compile(r"\brl::(\w+)[(<]")


@dataclass(frozen=True)
class _Block:
    """A piece of the text, its first line's number, and a kernel's declaration."""

    text: str
    line: int
    declaration: str = ""

    @functools.cached_property
    def cost(self) -> float:
        """The estimated compile time."""
        lines = self.text.count("\n")
        own = _PER_KERNEL + _PER_LINE * lines if self.declaration else _PER_STATEMENT * lines
        return own + sum(_PER_CALL.get(name, 0.0) for name in _CALL.findall(self.text))


def split(source: str, most: int, path: str) -> list[str]:
    """Return at most `most` translation units. Compiler messages name lines of `path`, which holds `source`."""
    blocks = _split_into_blocks(source)
    kernels = [block for block in blocks if block.declaration]
    if most < 2 or len(kernels) < 2 or not _is_regular(blocks):
        return [source]
    others = [block for block in blocks if not block.declaration]
    parts = _balance(kernels, others[1:], most)
    if len(parts) == 1:
        return [source]
    return [_first_unit(others, kernels, parts[0], path), *(_unit_text([others[0], *part], path) for part in parts[1:])]


def _split_into_blocks(source: str) -> list[_Block]:
    blocks, line = [], 1
    for text in source.split("\n\n"):
        found = _KERNEL.search(text)
        blocks.append(_Block(text, line, found[1] if found else ""))
        line += text.count("\n") + 2
    return blocks


def _is_regular(blocks: list[_Block]) -> bool:
    """Return whether the text consists of includes, then kernels, then functions with C linkage."""
    rest = [block for block in blocks[1:] if not block.declaration]
    whole = all(block.text.rstrip().endswith("}") and _KERNEL.findall(block.text)[1:] == [] for block in blocks[1:])
    return blocks[0].text.startswith("#include") and whole and all(block.text.startswith('extern "C"') for block in rest)


def _balance(kernels: list[_Block], functions: list[_Block], most: int) -> list[list[_Block]]:
    """Distribute kernels over as many units as pay off: each kernel, the costliest first, goes to the cheapest unit.
    `functions` already belong to the first unit."""
    own = sum(block.cost for block in functions)
    whole = own + sum(kernel.cost for kernel in kernels)
    parts: list[list[_Block]] = [[] for _ in range(min(most, 1 + int(whole / (2 * _PER_UNIT))))]
    costs = [own, *(0.0 for _ in parts[1:])]
    for kernel in sorted(kernels, key=lambda kernel: -kernel.cost):
        cheapest = costs.index(min(costs))
        parts[cheapest].append(kernel)
        costs[cheapest] += kernel.cost
    return [parts[0], *filter(None, parts[1:])]


def _first_unit(others: list[_Block], kernels: list[_Block], own: list[_Block], path: str) -> str:
    """Return the unit with the entry: it declares the kernels of other units and defines its own."""
    declared = "\n".join(f"{_HIDDEN}{kernel.declaration};" for kernel in kernels if kernel not in own)
    return _unit_text([others[0], _Block(declared, 1), *own, *others[1:]], path)


_HIDDEN = '__attribute__((visibility("hidden"))) '


def _unit_text(blocks: list[_Block], path: str) -> str:
    shown = []
    for block in blocks:
        visible = _KERNEL.sub(lambda found: f"{_HIDDEN}{found[1]} {{", block.text)
        shown.append(f'#line {block.line} "{path}"\n{visible}')
    return "\n\n".join(shown) + "\n"
