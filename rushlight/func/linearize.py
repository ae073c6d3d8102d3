"""`func.linearize`: a function's derivative at a point, as a linear function that runs its tape and not the function again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd import enable_grad
from rushlight.autograd import grad as gradients_of
from rushlight.core.following import runs_as_it_is
from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.ops import aten


@runs_as_it_is("it differentiates what its function does, in eager")
def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Return the outputs of `func` at `primals`, and a function from tangents to the outputs' derivative, for tensors or trees.

    The function takes tangents like the primals and may be called often: it is the derivative of a product of a vector with
    the Jacobian with respect to the vector, recorded once. ValueError without primals; RuntimeError from the function for
    tangents of other shapes.
    """
    if not primals:
        raise ValueError("Expected at least one argument to linearize at.")
    leaves, form = tree_flatten(primals)
    points = [leaf.detach().requires_grad_() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    inputs = [point for point in points if isinstance(point, Tensor)]
    with enable_grad():
        outputs, shape = tree_flatten(func(*tree_unflatten(points, form)))
        reached = [output for output in outputs if isinstance(output, Tensor) and output.requires_grad]
        vectors = [aten.zeros_like(output).requires_grad_() for output in reached]
        products = gradients_of(reached, inputs, vectors, create_graph=True, allow_unused=True) if reached else ()
    linear = [(position, product) for position, product in enumerate(products) if product is not None and product.requires_grad]

    def jvp_fn(*tangents: Any) -> Any:
        given = _check_tangents(tangents, form, leaves)
        starts = [given[position] for position, _ in linear]
        found: tuple = (None,) * len(reached)
        if linear:
            chosen = [product for _, product in linear]
            found = gradients_of(chosen, vectors, starts, retain_graph=True, allow_unused=True)
        by_output = dict(zip(map(id, reached), found, strict=True))
        return tree_unflatten([_or_zeros(by_output.get(id(output)), output) for output in outputs], shape)

    values = [output.detach() if isinstance(output, Tensor) else output for output in outputs]
    return tree_unflatten(values, shape), jvp_fn


def _or_zeros(found: Tensor | None, output: Any) -> Any:
    return aten.zeros_like(output) if found is None and isinstance(output, Tensor) else found


def _check_tangents(tangents: tuple, form: Any, leaves: list) -> list[Tensor]:
    """Return the tangents of tensors, in order; RuntimeError where they differ from the primals in form or shape."""
    given, found = tree_flatten(tangents)
    if found != form:
        raise RuntimeError(f"Expected the tangents {found} to have the same argspec as the primals {form}")
    pairs = [(tangent, leaf) for tangent, leaf in zip(given, leaves, strict=True) if isinstance(leaf, Tensor)]
    for position, (tangent, leaf) in enumerate(pairs):
        if not isinstance(tangent, Tensor) or tangent.shape != leaf.shape or tangent.dtype != leaf.dtype:
            shown = (tuple(tangent.shape), tangent.dtype) if isinstance(tangent, Tensor) else type(tangent).__name__
            raise RuntimeError(f"Expected tangent {position} to have shape {tuple(leaf.shape)} and {leaf.dtype}, got {shown}")
    return [tangent for tangent, _ in pairs]
