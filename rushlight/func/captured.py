"""Transforms in captured graphs: the calls that replace `vmap`, `grad` and so on of a function that the program defines.

In: the function as a graph over its own tensors and those that it reads from outside, and the tensors themselves. Out: a tuple
of tensors. Later stages run the transform on the graph, so that plain operators come out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.func import transforms
from rushlight.func.vmap import vmap


class CapturedTransform:
    """A call of a transformed function. `run(function, *inputs)` transforms and calls it; `module` is the function's graph."""

    def __init__(self, name: str, module: Callable, run: Callable) -> None:
        self.__name__ = self.__qualname__ = name
        self.module = module
        self.run = run

    def __call__(self, inputs: tuple[Tensor, ...], outer: tuple) -> tuple[Tensor, ...]:
        """Return the results for the function's own inputs, and the values that it reads from outside."""
        return self.run(lambda *own: tuple(self.module(*own, *outer)), *inputs)


def mapped(dims: tuple, out_dims: tuple, randomness: str, chunk_size: int | None) -> Callable:
    """Return the `run` of a `vmap`, for a dimension of each input and of each result."""

    def run(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
        return vmap(function, dims, out_dims, randomness, chunk_size=chunk_size)(*inputs)

    return run


def gradients(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Run `grad_and_value`: return the gradients of all inputs, then the function's results, the first of which is the
    output."""
    found, (value, more) = transforms.grad_and_value(_with_aux(function), _all(inputs), has_aux=True)(*inputs)
    return *found, value, *more


def vjp_run(count: int) -> Callable:
    """Return the `run` of a function that `vjp` returned, for cotangents of the first `count` outputs, which follow its
    inputs."""

    def run(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
        points, cotangents = inputs[:-count], inputs[-count:]
        _, pull_back = transforms.vjp(lambda *own: function(*own)[:count], *points)
        return tuple(pull_back(cotangents))

    return run


def jvp_run(count: int, outputs: int) -> Callable:
    """Return the `run` of a `jvp` for `count` inputs, which are followed by their tangents: outputs, their derivatives, other
    results."""

    def run(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
        def split(*own: Tensor) -> tuple:
            results = function(*own)
            return results[:outputs], results[outputs:]

        found, derivatives, more = transforms.jvp(split, inputs[:count], inputs[count:], has_aux=True)
        return *found, *derivatives, *more

    return run


def jacobians(outputs: int, chunk_size: int | None) -> Callable:
    """Return the `run` of a `jacrev`: for each of the first `outputs` results a derivative with respect to each input, then the
    other results."""

    def run(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
        def split(*own: Tensor) -> tuple:
            results = function(*own)
            return results[:outputs], results[outputs:]

        found, more = transforms.jacrev(split, _all(inputs), has_aux=True, chunk_size=chunk_size)(*inputs)
        return *[block for row in found for block in row], *more

    return run


def _all(inputs: tuple) -> tuple[int, ...]:
    return tuple(range(len(inputs)))


def _with_aux(function: Callable) -> Callable:
    def run(*own: Tensor) -> tuple[Tensor, Any]:
        output, *more = function(*own)
        return output, tuple(more)

    return run
