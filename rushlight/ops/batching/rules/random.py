"""Batching rules of random operators, by the vmap's `randomness`: an error, the same numbers for all examples, or different
ones.

These are kernels at the key VmapMode, which every call inside a vmap has, because random operators may have no batched
argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.ops.batching.kernel import invoke, run_per_example, wrapped
from rushlight.ops.batching.layout import Levels, all_levels, aten, batch_sizes, levels_of, make_batched, spread, value_of
from rushlight.ops.batching.levels import VMAP_MODE
from rushlight.ops.dispatcher import Kernel, OpOverload, all_operators
from rushlight.ops.registry import aten as operator

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)
_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this "
    "is necessary for your usage, draw into a tensor that is batched."
)
_FACTORIES = ("rand", "randn", "randint", "randint.low", "normal.float_float")
# Composites that draw into a new tensor like their operand. With a batched operand the new tensor is batched, too.
_LIKE_OPERAND = (
    "bernoulli", "bernoulli.p", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "rand_like", "randn_like",
    "randint_like", "randint_like.low_dtype", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "dropout",
)  # fmt: skip

_OF_EXAMPLES = ("bernoulli", "normal")  # their operands are distributions, so examples with their own can't share numbers


def _different_levels() -> tuple[Levels, tuple[int, ...]]:
    """Return the levels with "different" randomness, and their sizes; RuntimeError if a level has "error"."""
    if any(level.randomness == "error" for level in state.batch_levels):
        raise RuntimeError(_ERROR)
    chosen = [level for level in state.batch_levels if level.randomness == "different"]
    return tuple(level.number for level in chosen), tuple(level.size for level in chosen)


def _make_factory_kernel(op: OpOverload, below: int) -> Callable:
    position = op._schema.positions["size"]

    def run(*args: object, **kwargs: object) -> Tensor:
        levels, sizes = _different_levels()
        stack = op.normalize(args, kwargs)
        stack[position] = [*sizes, *stack[position]]
        with ExcludeKeys(VMAP_MODE):
            return make_batched(invoke(op, stack), levels)

    return run


def _make_like_operand_kernel(op: OpOverload, below: int) -> Callable:
    """Return a kernel that expands operands over the levels with different numbers; the composite then draws a batched
    tensor."""

    def run(*args: object, **kwargs: object) -> object:
        if op._opname.endswith("dropout"):
            _, p, train = op.normalize(args, kwargs)
            if not train or p in (0, 1):
                return op.redispatch(below, *args, **kwargs)
        levels, sizes = _different_levels()
        if op._opname in _OF_EXAMPLES:
            _check_same(levels, args)
        args = tuple(_expand_over(value, levels, sizes) if isinstance(value, Tensor) else value for value in args)
        implicit = op.kernels[DispatchKey.CompositeImplicitAutograd]
        return implicit.bind(op, below)(*args, **kwargs)

    return run


def _expand_over(tensor: Tensor, levels: Levels, sizes: tuple[int, ...]) -> Tensor:
    """Return a tensor mapped over by all of `levels`, copied for the examples of levels that it lacked."""
    own = levels_of(tensor)
    known = {**dict(zip(levels, sizes, strict=True)), **dict(zip(own, value_of(tensor).shape, strict=False))}
    together = tuple(sorted(known))
    if together == own:
        return tensor
    return make_batched(spread(tensor, together, [known[level] for level in together]), together)


def _make_inplace_kernel(op: OpOverload, below: int) -> Callable:
    def run(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        levels, _ = _different_levels()
        own = levels_of(self)
        if not set(levels) <= set(own):
            raise RuntimeError(_UNBATCHED)
        _check_same(levels, args)
        with ExcludeKeys(VMAP_MODE):
            if all_levels(args):
                return _draw_in_place(op, self, args, kwargs)
            if own == levels:
                op(value_of(self), *args, **kwargs)
                return self
            value = value_of(self)
            drawn = value[tuple(slice(None) if level in levels else 0 for level in own)]
            drawn = op(aten.empty_like.default(drawn), *args, **kwargs)
            return aten.copy_.default(self, make_batched(drawn, levels))

    return run


def _check_same(levels: Levels, operands: Sequence[object]) -> None:
    """Raise RuntimeError if examples must get the same numbers but have operands of their own."""
    if not set(all_levels(operands)) <= set(levels):
        raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input.")


def _draw_in_place(op: OpOverload, self: Tensor, args: tuple, kwargs: dict) -> Tensor:
    """Draw in place with tensor arguments, each for its own example."""
    own = levels_of(self)
    sizes = batch_sizes(own, self)
    op(value_of(self), *(spread(a, own, sizes, self.dim()) if isinstance(a, Tensor) else a for a in args), **kwargs)
    return self


def _make_dropout_kernel(op: OpOverload, below: int) -> Callable:
    def run(input: Tensor, p: float, train: bool | None) -> tuple:
        if train is False:
            return op.redispatch(below, input, p, train)
        levels, sizes = _different_levels()
        input = _expand_over(input, levels, sizes)
        with ExcludeKeys(VMAP_MODE):
            if levels_of(input) == levels:
                return wrapped(op(value_of(input), p, train), levels)
            own = levels_of(input)
            pattern = value_of(input)[tuple(slice(None) if level in levels else 0 for level in own)]
            scale, mask = op(aten.ones_like.default(pattern.detach()), p, train)
            return input * make_batched(scale, levels), make_batched(mask, levels)

    return run


def _make_permutation_kernel(op: OpOverload, below: int) -> Callable:
    def run(*args: object, **kwargs: object) -> Tensor:
        levels, sizes = _different_levels()
        with ExcludeKeys(VMAP_MODE):
            rows = [op(*args, **kwargs) for _ in range(math.prod(sizes))]
            return make_batched(aten.reshape.default(aten.stack.default(rows), [*sizes, *rows[0].shape]), levels)

    return run


def _make_sampling_kernel(op: OpOverload, below: int) -> Callable:
    """Return a kernel for random operators without a batching rule: one draw per example, or one draw for all of them."""

    def run(*args: object, **kwargs: object) -> object:
        levels, sizes = _different_levels()
        stack = op.normalize(args, kwargs)
        stack[0] = _expand_over(stack[0], levels, sizes)
        found = all_levels(stack)
        stack[1:] = [_expand_over(value, levels, sizes) if isinstance(value, Tensor) else value for value in stack[1:]]
        _check_same(levels, stack)
        with ExcludeKeys(VMAP_MODE):
            if not found:
                return invoke(op, stack)
            return run_per_example(op, stack)

    return run


def _register(name: str, link: Callable) -> None:
    operator(name).register(DispatchKey.VmapMode, Kernel(link, linked=True))


for _name in _FACTORIES:
    _register(_name, _make_factory_kernel)
for _name in _LIKE_OPERAND:
    _register(_name, _make_like_operand_kernel)
_register("native_dropout", _make_dropout_kernel)
_register("randperm", _make_permutation_kernel)
for _op in all_operators():
    if "nondeterministic_seeded" in _op.tags and DispatchKey.VmapMode not in _op.kernels and _op.namespace == "aten":
        _takes_tensor = _op._schema.arguments and _op._schema.arguments[0].type.is_tensor
        if _op.writes_self:
            _register(_op.name.removeprefix("aten::"), _make_inplace_kernel)
        elif _takes_tensor:
            _register(_op.name.removeprefix("aten::"), _make_sampling_kernel)
