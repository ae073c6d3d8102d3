"""Call an operator on batched tensors: by its batching rule, or else in a loop over the examples.

In: a call with tensors that levels are mapped over. Out: calls on their values. A rule is the kernel of an operator at the key
Batched. Composites without a rule are decomposed, and other operators without a rule run example by example.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.ops.batching.layout import Levels, all_levels, aten, batch_sizes, levels_of, make_batched, value_of
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.registry import INPLACE_OF
from rushlight.ops.registry import aten as operator

DYNAMIC_SHAPES = {"nonzero", "_unique2", "unique_dim", "unique_consecutive"}
_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet: "
    "choose between values with torch.where."
)
_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please "
    "try to rewrite what you're doing with other operations."
)
_INPLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
    "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
    "Please try to use out-of-place operators instead of inplace arithmetic."
)


def rule(*names: str) -> Callable:
    """Register the decorated function, which has the operators' signature, as their batching rule."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            operator(name).register(DispatchKey.Batched, Kernel(function))
        return function

    return decorate


def rules(names: Iterable[str], make: Callable[[OpOverload], Callable]) -> None:
    """Register `make(op)` as the batching rule of each operator."""
    for name in names:
        operator(name).register(DispatchKey.Batched, Kernel(lambda op, below: make(op), linked=True))


def invoke(op: OpOverload, stack: list) -> object:
    """Call an operator with all arguments in schema order."""
    arguments, count = op._schema.arguments, op._schema.positional_count
    names = [argument.name for argument in arguments[count:]]
    return op(*stack[:count], **dict(zip(names, stack[count:], strict=True)))


def wrapped(result: object, levels: Levels) -> object:
    """Return the results of an operator on values, as batched tensors."""
    if isinstance(result, Tensor):
        return make_batched(result, levels)
    return type(result)([wrapped(item, levels) for item in result]) if isinstance(result, list | tuple) else result


def check_inplace(self: Tensor, *others: object) -> Levels:
    """Return the levels of a tensor that is written to. RuntimeError if the other operands have levels that it lacks."""
    own = levels_of(self)
    if not set(all_levels(*others)) <= set(own):
        raise RuntimeError(_INPLACE)
    return own


def make_inplace_by_copy(op: OpOverload) -> Callable:
    """Return the rule of an in-place operator: call the functional one, and copy the result."""
    functional = INPLACE_OF[op]

    def run(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        check_inplace(self, *args, *kwargs.values())
        return aten.copy_.default(self, functional(self, *args, **kwargs))

    return run


@rule("_local_scalar_dense")
def _refuse_item(self: Tensor) -> None:
    raise RuntimeError(_ITEM)


def is_nonzero(self: Tensor) -> None:
    """Raise RuntimeError, because control flow would differ between examples."""
    raise RuntimeError(_CONTROL_FLOW)


@rule("equal")
def _refuse_equal(self: Tensor, other: Tensor) -> None:
    raise RuntimeError("vmap: torch.equal gives one answer, and each example would have its own")


def _link_fallback(op: OpOverload, below: int) -> Callable:
    if op in INPLACE_OF and operator_has_rule(INPLACE_OF[op]):
        return make_inplace_by_copy(op)
    return loop_over_examples(op)


def loop_over_examples(op: OpOverload) -> Callable:
    """Return the rule that calls an operator for each example; RuntimeError for sizes that depend on values."""

    def run(*args: object, **kwargs: object) -> object:
        if op._opname in DYNAMIC_SHAPES:
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                f"{op.name.partition('.')[0]}."
            )
        return run_per_example(op, op.normalize(args, kwargs))

    return run


def operator_has_rule(op: OpOverload) -> bool:
    """Return whether an operator has a batching rule instead of the per-example loop."""
    return DispatchKey.Batched in op.kernels or op.is_composite


_slow: set[str] = set()


def run_per_example(op: OpOverload, stack: list) -> object:
    """Call an operator for each example, and stack the results; an in-place operator writes to the examples of its `self`.

    RuntimeError where results are no tensors or have different shapes, and for zero examples.
    """
    levels = all_levels(*stack)
    sizes = batch_sizes(levels, *stack)
    if op.name not in _slow:
        _slow.add(op.name)
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {op.name}: it runs example "
            "by example.", UserWarning, stacklevel=3,
        )  # fmt: skip
    if 0 in sizes:
        raise RuntimeError(f"vmap: {op.name} runs example by example, and there are none: expected a batch that is not empty")
    if op.is_mutable:
        check_inplace(stack[0], *stack[1:])
    results = [
        invoke(op, [example_of(value, levels, index) for value in stack])
        for index in itertools.product(*(range(size) for size in sizes))
    ]
    if op.writes_self:
        return stack[0]
    return _stack_examples(op, results, levels, sizes)


def example_of(value: object, levels: Levels, index: tuple[int, ...]) -> object:
    """Return one example of an argument."""
    if isinstance(value, list | tuple):
        return [example_of(item, levels, index) for item in value]
    if not isinstance(value, Tensor):
        return value
    own, found = levels_of(value), value_of(value)
    for level, position in zip(levels, index, strict=True):
        found = aten.select.int(found, 0, position) if level in own else found
    return found


def _stack_examples(op: OpOverload, results: list, levels: Levels, sizes: tuple[int, ...]) -> object:
    first = results[0]
    if isinstance(first, list | tuple):
        return type(first)([_stack_examples(op, list(column), levels, sizes) for column in zip(*results, strict=True)])
    if not isinstance(first, Tensor):
        raise RuntimeError(f"vmap: {op.name} gives numbers, not tensors, and each example would have its own")
    return of_examples(results, levels, sizes)


def of_examples(results: Sequence[Tensor], levels: Levels, sizes: tuple[int, ...]) -> Tensor:
    """Return the batched tensor of these examples, which are ordered with the last level fastest."""
    together = aten.stack.default(results, 0)
    return make_batched(aten.reshape.default(together, [*sizes, *results[0].shape]), levels)


def first_example(op: OpOverload, stack: list) -> object:
    """Run an operator on one example, to get its error messages with an example's sizes."""
    levels = all_levels(*stack)
    return invoke(op, [example_of(value, levels, (0,) * len(levels)) for value in stack])


register_fallback(DispatchKey.Batched, Kernel(_link_fallback, linked=True))
