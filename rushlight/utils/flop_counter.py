"""`torch.utils.flop_counter`: how many floating-point operations a program's products take, by module and operator.

A dispatch mode sees the operators below autograd, including the backward pass, and sums a table of formulas. A multiplication
and an addition count as two. Operators without a formula count as zero: as in torch on a CPU, attention by
`scaled_dot_product_attention` is one of them.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map
from rushlight.utils.module_tracker import ModuleTracker

aten = namespaces.namespace("aten")
flop_registry: dict[Any, Callable] = {}
"""The formula of each operator, by packet: it takes the arguments with sizes in place of tensors, and `out_shape`."""


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Return a decorator that adds a formula for packets. With `get_raw`, the formula gets the tensors instead of their
    sizes."""

    def decorate(formula: Callable) -> Callable:
        used = formula if get_raw else _pass_sizes(formula)
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if target in flop_registry:
                raise ValueError(f"duplicate registrations for {target}")
            flop_registry[target] = used
        return formula

    return decorate


def _shape_or_value(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value


def _pass_sizes(formula: Callable) -> Callable:
    @wraps(formula)
    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(_shape_or_value, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return counted


@register_flop_formula(aten.mm)
def mm_flop(a: Sequence[int], b: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the FLOPs of a matrix product."""
    return a[0] * a[1] * b[1] * 2


@register_flop_formula(aten.addmm)
def addmm_flop(added: Any, a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Return the FLOPs of a matrix product; the addition does not count."""
    return mm_flop(a, b)


@register_flop_formula(aten.bmm)
def bmm_flop(a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Return the FLOPs of a batched matrix product."""
    return a[0] * mm_flop(a[1:], b[1:])


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(added: Any, a: Sequence[int], b: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Return the FLOPs of a batched matrix product; the addition does not count."""
    return bmm_flop(a, b)


def conv_flop_count(x: Sequence[int], w: Sequence[int], out: Sequence[int], transposed: bool = False) -> int:
    """Return the FLOPs of a convolution: each filter element meets each position of the output, or of the input if
    transposed."""
    places = x[2:] if transposed else out[2:]
    return prod(places) * prod(w[2:]) * x[0] * w[0] * w[1] * 2


@register_flop_formula(aten.convolution)
def conv_flop(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any,
              out_shape: Any = None, **kwargs: Any) -> int:  # fmt: skip
    """Return the FLOPs of a convolution."""
    return conv_flop_count(x, w, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(grad: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                       output_padding: Any, groups: int, output_mask: Any, out_shape: Any = None) -> int:  # fmt: skip
    """Return the FLOPs of a convolution's gradients, which are convolutions of the gradient with the weight, and of the input
    with the gradient."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad, w, out_shape[0], not transposed)
    if output_mask[1]:
        image, filters = (grad, x) if transposed else (x, grad)
        count += conv_flop_count(_swap_channels(image), _swap_channels(filters), _swap_channels(out_shape[1]))
    return count


def _swap_channels(size: Sequence[int]) -> list[int]:
    return [size[1], size[0], *size[2:]]


class FlopCounterMode(TorchDispatchMode):
    """`with FlopCounterMode() as counter: ...` counts; then `counter.get_total_flops()`, `get_flop_counts()`, `get_table()`.

    `display` prints the table at the end, for modules down to `depth`. `custom_mapping` adds formulas: packets to functions,
    which get tensors instead of sizes where they have an attribute `_get_raw`.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict | None = None) -> None:
        super().__init__()
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        custom = custom_mapping or {}
        raw = {
            target: formula if getattr(formula, "_get_raw", False) else _pass_sizes(formula)
            for target, formula in custom.items()
        }
        self.flop_registry = {**flop_registry, **raw}
        self.mod_tracker = ModuleTracker()
        for module in [mods] if isinstance(mods, Module) else mods or []:
            self.mod_tracker.name_of(module)

    def get_total_flops(self) -> int:
        """Return the sum over all operators."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the sums by operator, for each module and for "Global"."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules, with their sums and shares of the whole."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level <= depth:
                rows += self._rows(name, level, total)
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)

    def _rows(self, name: str, level: int, total: int) -> list[tuple[str, str, str]]:
        counts = self.flop_counts[name]
        own = [(f"{' ' * level}{name}", sum(counts.values()))]
        own += [(f"{' ' * level} - {packet}", count) for packet, count in counts.items()]
        return [(text, f"{count:,}", f"{100 * count / total if total else 0:.2f}%") for text, count in own]

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        formula = self.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **(kwargs or {}), out_val=out)
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][func.overloadpacket] += count
        return out


__all__ = ["FlopCounterMode", "register_flop_formula"]
