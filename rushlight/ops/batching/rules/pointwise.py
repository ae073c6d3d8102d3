"""Batching rules of elementwise operators: values broadcast, with the examples' dimensions aligned at the right."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import dtype
from rushlight.core.layout import CHANNELS_LAST_RANKS
from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import check_inplace, rule, rules, wrapped
from rushlight.ops.batching.layout import Levels, aligned, all_levels, aten, is_batched, levels_of, make_batched, value_of
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.primitives import arithmetic, core, special, trigonometry
from rushlight.ops.promotion import result_type
from rushlight.ops.registry import INPLACE_OF


def _names(*groups: str) -> list[str]:
    return [line.partition("(")[0] for group in groups for line in group.strip().splitlines()]


POINTWISE = [
    *_names(core.UNARY, core.BINARY, arithmetic.FLOATING, arithmetic.INTEGER, trigonometry.UNARY, trigonometry.BINARY),
    *_names(special.WITH_INPLACE, special.UNARY, special.BINARY, special.POLYNOMIALS),
    "conj_physical", "_conj", "_neg_view", "sgn", "angle", "view_as_real", "_standard_gamma_grad", "alias", "detach",
    "lift_fresh", "_checked",
]  # fmt: skip
# Operators without ordinary type promotion: they have rules of their own, or require one dtype.
_WITHOUT_PROMOTION = {"threshold_backward", "gelu_backward", "copy_", "_checked"}


def pointwise(op: OpOverload) -> Callable:
    """Return the rule of an elementwise operator on any number of tensors."""
    conditions = 1 if op._opname == "where" else 0
    promotes = op._opname not in _WITHOUT_PROMOTION

    def run(*args: object, **kwargs: object) -> object:
        first = args[0]
        if len(args) == 1 and is_batched(first):
            return wrapped(op(value_of(first), **kwargs), levels_of(first))
        levels = all_levels(args)
        return wrapped(op(*_operands(args, levels, conditions if promotes else len(args)), **kwargs), levels)

    return run


def _operands(args: tuple, levels: Levels, conditions: int = 0) -> list:
    """Return the arguments as values that broadcast. Those from position `conditions` on take part in type promotion."""
    rank = max(argument.dim() for argument in args if isinstance(argument, Tensor))
    kind = _common_kind(args[conditions:])
    found = []
    for position, argument in enumerate(args):
        if is_batched(argument):
            value = aligned(argument, levels, rank)
            # A 0-dim example has lower priority in type promotion, but its value has dimensions, so it is converted first.
            lacks_rank = kind is not None and position >= conditions and not argument.dim()
            argument = value.to(kind) if lacks_rank else value
        found.append(argument)
    return found


def _common_kind(operands: tuple) -> dtype | None:
    """Return the dtype in which examples compute, if 0-dim batched operands of another dtype change it."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) < 2 or not any(is_batched(tensor) and not tensor.dim() for tensor in tensors):
        return None
    return result_type(*operands)


def pointwise_inplace(op: OpOverload) -> Callable:
    """Return the rule of an elementwise in-place operator. The other operands must broadcast to the first."""

    def run(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        levels = check_inplace(self, *args, *kwargs.values())
        rank = self.dim()
        if any(isinstance(argument, Tensor) and argument.dim() > rank for argument in args):
            return _drop_extra_dims(op, self, args)
        op(*_operands((self, *args), levels, 1 + len(args)), **kwargs)
        return self

    return run


def _drop_extra_dims(op: OpOverload, self: Tensor, args: tuple) -> Tensor:
    """Handle an operand with more dimensions than `self`: drop leading dimensions of size 1, else raise."""
    widest = max((argument for argument in args if isinstance(argument, Tensor)), key=lambda tensor: tensor.dim())
    extra = widest.dim() - self.dim()
    if any(size != 1 for size in widest.shape[:extra]):
        name = op._opname.removesuffix("_")
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(widest.shape)} (in {name}_)"
        )
    reduced = [
        argument.squeeze(tuple(range(argument.dim() - self.dim())))
        if isinstance(argument, Tensor) and argument.dim() > self.dim()
        else argument
        for argument in args
    ]
    return op(self, *reduced)


rules(POINTWISE, pointwise)
_POINTWISE_OPS = set(POINTWISE)
for _op, _functional in INPLACE_OF.items():
    if _functional.name.removeprefix("aten::") in _POINTWISE_OPS:
        rules([_op.name.removeprefix("aten::")], pointwise_inplace)
rules(["copy_"], pointwise_inplace)


@rule("fill_.Scalar")
def _fill_rule(self: Tensor, value: object) -> Tensor:
    aten.fill_.Scalar(value_of(self), value)
    return self


@rule("view_as_complex")
def _view_as_complex_rule(self: Tensor) -> Tensor:
    return make_batched(aten.view_as_complex(value_of(self)), levels_of(self))


@rule("clone")
def _clone_rule(self: Tensor, *, memory_format: object = None) -> Tensor:
    return make_batched(aten.clone.default(value_of(self), memory_format=without_order(memory_format)), levels_of(self))


@rule("_to_copy")
def _to_copy_rule(self: Tensor, *, memory_format: object = None, **options: object) -> Tensor:
    value = aten._to_copy.default(value_of(self), memory_format=without_order(memory_format), **options)
    return make_batched(value, levels_of(self))


def without_order(wanted: object) -> object:
    """Return a memory format for values: channels-last formats become contiguous, because values have more dimensions."""
    return None if wanted in CHANNELS_LAST_RANKS else wanted
