"""`autograd.forward_ad`: derivatives along a direction, by dual tensors, which are a primal and its tangent.

A tangent travels with its tensor from operator to operator (`dual_kernel.py`), without a tape and in every grad mode.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from rushlight.autograd import dual_kernel, duals
from rushlight.autograd.duals import Level, Running, fresh, outside, set_active_levels, tangent_of
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import levels_of, make_batched, value_of
from rushlight.ops.batching.levels import in_all_levels

__all__ = [
    "UnpackedDualTensor", "dual_kernel", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual",
]  # fmt: skip

_differentiates = runs_as_it_is("it calculates with dual tensors, in eager")


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`. The tangent is None for a tensor that depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


class _Entered(threading.local):
    """The level that this thread has entered, or None."""

    level: Level | None = None


_entered = _Entered()


def __getattr__(name: str) -> int:
    """`_current_level`, which programs written for PyTorch read: the level of this thread, -1 outside."""
    if name == "_current_level":
        return -1 if _entered.level is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Enter the level, and return its number. RuntimeError inside another one."""
    if _entered.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _entered.level = Level()
    set_active_levels((*state.dual_levels, _entered.level))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level: its dual tensors become plain ones. RuntimeError outside a level, and for another level's number."""
    if _entered.level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    set_active_levels(tuple(each for each in state.dual_levels if each is not _entered.level))
    _entered.level = None


class dual_level:
    """A context in which dual tensors can be made."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


@_differentiates
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor like `tensor`, whose derivative is `tangent`. It shares memory with `tensor`, unless autograd records it.

    Raises RuntimeError outside a level, for sizes that differ and for a tensor that is dual already; ValueError for whole
    numbers.
    """
    if _entered.level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_dual(tensor, tangent)
    if tangent_at(tensor, _entered.level) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if tangent_at(tangent, _entered.level) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.")
    return dual_at(tensor, tangent, _entered.level)


def check_dual(tensor: Tensor, tangent: Tensor) -> None:
    """Raise ValueError unless both are of floats or complex numbers; RuntimeError for sizes that differ."""
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def dual_at(primal: Tensor, tangent: Tensor, level: Level) -> Tensor:
    """Return a dual tensor at an active level. Inside vmap each example has its own tangent."""
    primal, tangent = in_all_levels(primal), in_all_levels(tangent)
    with Running(outside(level)):
        dual = fresh(value_of(primal), level, value_of(tangent))
    return make_batched(dual, levels_of(primal))


def tangent_at(tensor: Tensor, level: Level) -> Tensor | None:
    """Return a tensor's tangent at an active level, or None."""
    with Running(outside(level)):
        tangent = tangent_of(value_of(tensor), level)
    return None if tangent is None else make_batched(tangent, levels_of(tensor))


@_differentiates
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal and the tangent of a tensor; no tangent outside a level."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if _entered.level is None:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_at(tensor, _entered.level)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with Running(outside(_entered.level)):
        primal = tensor.view_as(tensor) if tensor.requires_grad else detach_keeping_tangents(tensor)
    return UnpackedDualTensor(primal, tangent)


def detach_keeping_tangents(tensor: Tensor) -> Tensor:
    """Return the tensor without history, with its tangents at the active levels."""
    return make_batched(duals.detach_keeping_tangents(value_of(tensor)), levels_of(tensor))
