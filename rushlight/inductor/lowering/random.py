"""Lowering of counter-based random numbers (Philox). An element is a function of its position, so draws fuse with their
users."""

from __future__ import annotations

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import dtype, float32, float64, int64
from rushlight.inductor.ir import Constant, Load, RandomWord, Value
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.sizes import as_sizes, row_major
from rushlight.inductor.tensor_box import TensorBox


def _random_word(graph: GraphBuilder, name: str, kind: dtype, seed: TensorBox, offset: int, position: Expr) -> RandomWord:
    held = graph.realize(seed).value(())
    if not isinstance(held, Load):
        raise NotImplementedError("a seed that is not a buffer of its own")
    return RandomWord(kind, position, name, held, offset)


def _row_major_position(index: tuple[Var, ...], size: tuple) -> Expr:
    """Return the row-major position of an element."""
    steps = row_major(as_sizes(size))
    return sum((variable * step for variable, step in zip(index, steps, strict=True)), as_expr(0))


@lowering("_philox_uniform")
def uniform(graph, seed, offset, size, *, dtype=None):
    if dtype is not float64:
        return graph.pointwise(
            size, float32, lambda index: _random_word(graph, "uniform", float32, seed, offset, _row_major_position(index, size))
        )

    def inner(index: tuple[Var, ...]) -> Value:
        position = _row_major_position(index, size)
        high = _shift_right_as_double(_random_word(graph, "bits", int64, seed, offset, position), 5)
        low = _shift_right_as_double(_random_word(graph, "bits", int64, seed, offset + 1, position), 6)
        whole = call("add", float64, call("mul", float64, high, Constant(float64, 2.0**26)), low)
        return call("mul", float64, whole, Constant(float64, 2.0**-53))

    return graph.pointwise(size, float64, inner)


def _shift_right_as_double(word: RandomWord, count: int) -> Value:
    return cast(call("shift_right", int64, word, Constant(int64, count)), float64)


@lowering("_philox_bits")
def bits(graph, seed, offset, size):
    return graph.pointwise(
        size, int64, lambda index: _random_word(graph, "bits", int64, seed, offset, _row_major_position(index, size))
    )
