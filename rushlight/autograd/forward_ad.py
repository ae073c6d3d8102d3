"""`autograd.forward_ad`: derivatives along a direction, by dual tensors, which are a primal and its tangent.

No tangent travels with a tensor here. `unpack_dual` computes it from the tape: it is the derivative of a vector-Jacobian
product with respect to the vector. Operators between `make_dual` and `unpack_dual` therefore need grad mode and second
derivatives, and a dual tensor says that it requires grad.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from rushlight.autograd.backward import grad
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

aten = namespaces.namespace("aten")
_differentiates = runs_as_it_is("it differentiates what was recorded, in eager")


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns. The tangent is None for a tensor that depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


class _Level(threading.local):
    """The dual tensors of the level that a thread is in, with their tangents; None outside a level."""

    duals: list[tuple[Tensor, Tensor]] | None = None


_level = _Level()


def enter_dual_level() -> int:
    """Enter the level, and return its number. RuntimeError inside another one."""
    if _level.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level.duals = []
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level: its dual tensors become plain ones. RuntimeError outside a level, and for another level's number."""
    if _level.duals is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _level.duals = None


class dual_level:
    """A context in which dual tensors can be made."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


@_differentiates
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor like `tensor`, whose derivative is `tangent`.

    Raises RuntimeError outside a level, for sizes that differ and for a tensor that is dual already; ValueError for whole
    numbers.
    """
    if _level.duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    _check(tensor, tangent)
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _level.duals.append((dual, tangent))
    return dual


def _check(tensor: Tensor, tangent: Tensor) -> None:
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if _tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )


@_differentiates
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; no tangent outside a level."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    tangent = _tangent(tensor)
    return UnpackedDualTensor(tensor if tangent is None else tensor.detach(), tangent)


def _tangent(tensor: Tensor) -> Tensor | None:
    """The derivative of the tensor along all tangents together, itself recorded where a tangent is."""
    if not _level.duals or not tensor.requires_grad:
        return None
    duals, tangents = zip(*_level.duals, strict=True)
    with enable_grad():
        vector = aten.zeros_like(tensor).requires_grad_()
        products = grad(tensor, duals, vector, create_graph=True, allow_unused=True)
    reached: list[Any] = [pair for pair in zip(products, tangents, strict=True) if pair[0] is not None]
    if not reached:
        return None
    recorded = [(product, tangent) for product, tangent in reached if product.requires_grad]
    if not recorded:
        return aten.zeros_like(tensor)
    values, starts = zip(*recorded, strict=True)
    keep = any(start.requires_grad for start in starts)
    found = grad(values, vector, starts, retain_graph=True, create_graph=keep, allow_unused=True)[0]
    return aten.zeros_like(tensor) if found is None else found
