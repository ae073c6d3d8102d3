"""`autograd.functional`: products with Jacobians and Hessians of functions of tensors, and those matrices as a whole.

Inputs and outputs of the functions are tensors or tuples of tensors, and so are results: a Jacobian has the shape of the output
followed by that of the input, with an outer tuple over outputs and an inner one over inputs where those are tuples. With
`create_graph` results can be differentiated. With `strict`, RuntimeError for outputs that do not depend on inputs, which
otherwise count as 0. `vectorize` is accepted and changes nothing but speed in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.backward import grad
from rushlight.autograd.grad_mode import enable_grad, set_grad_enabled
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

aten = namespaces.namespace("aten")
Tensors = Tensor | tuple[Tensor, ...]
Function = Callable[..., Tensors]
_SECOND = ("hessian", "hvp", "vhp")  # they differentiate a gradient
_differentiates = runs_as_it_is("it differentiates what its function does, in eager")


@_differentiates
def vjp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Return the outputs of `func`, and the product of `v` (shaped as they are; None for one number) and its Jacobian."""
    with enable_grad():
        points, outputs, alone, single = _run(func, inputs, "vjp", create_graph, strict)
        vector = _vector(v, outputs, "user-provided function returns", "vjp")
    with set_grad_enabled(_must_record(create_graph)):
        found = _grad(outputs, points, vector, create_graph)
    result = _fill_missing_gradients(found, points, strict, create_graph, "vjp")
    return _pack_results(outputs, single, create_graph), _pack_results(result, alone, create_graph)


@_differentiates
def jvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Return the outputs of `func`, and the product of its Jacobian and `v` (shaped as the inputs are; None for one number).

    It is the derivative of a vector-Jacobian product with respect to the vector.
    """
    with enable_grad():
        points, outputs, alone, single = _run(func, inputs, "jvp", create_graph, strict)
        vector = _vector(v, points, "input to the user-provided function is", "jvp")
        dummies = tuple(aten.zeros_like(output).requires_grad_() for output in outputs)
        reached = _grad(outputs, points, dummies, True)
        if strict:
            _check_reached(reached, "jvp")
    with set_grad_enabled(_must_record(create_graph)):
        pairs = [(value, start) for value, start in zip(reached, vector, strict=True) if _is_recorded(value)]
        values, starts = tuple(value for value, _ in pairs), tuple(start for _, start in pairs)
        found = _grad(values, dummies, starts, create_graph) if pairs else (None,) * len(dummies)
    result = _fill_missing_gradients(found, dummies, strict, create_graph, "jvp")
    return _pack_results(outputs, single, create_graph), _pack_results(result, single, create_graph)


@_differentiates
def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func`, row by row, whatever the strategy and `vectorize`, which are PyTorch's.

    ValueError for a strategy that is not "reverse-mode" or "forward-mode"; NotImplementedError for "forward-mode" without
    `vectorize`; RuntimeError for `vectorize` with `strict`.
    """
    return _jacobian(func, inputs, create_graph, strict, vectorize, strategy, "jacobian")


def _jacobian(
    func: Function, inputs: Tensors, create_graph: bool, strict: bool, vectorize: bool, strategy: str, name: str
) -> Any:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(f'Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy!r}')
    if vectorize and strict:
        raise RuntimeError(f"{name}: strict=True and vectorize=True are not supported together. Leave one of them out.")
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(f'{name}: the strategy "forward-mode" needs vectorize=True')
    with enable_grad():
        points, outputs, alone, single = _run(func, inputs, name, create_graph, strict)
        rows = tuple(jacobian_rows(output, points, create_graph, n if strict else None) for n, output in enumerate(outputs))
    rows = tuple(_pack_results(row, alone, create_graph) for row in rows)
    return rows[0] if single else rows


def jacobian_rows(
    output: Tensor, points: tuple[Tensor, ...], create_graph: bool, strict: int | None = None
) -> tuple[Tensor, ...]:
    """Return for each point the derivatives of an output with respect to it.

    With `strict`, the index of this output, RuntimeError names the output where it does not depend on a point.
    """
    flat, rows = output.reshape(-1), []
    for position in range(flat.numel()):
        found = _grad((flat[position],), points, (None,), create_graph, keep=True)
        if strict is not None:
            _check_row(found, strict, create_graph)
        rows.append([aten.zeros_like(p) if g is None else g for g, p in zip(found, points, strict=True)])
    if not rows:
        return tuple(point.new_zeros([*output.shape, *point.shape]) for point in points)
    columns = zip(*rows, strict=True)
    return tuple(
        aten.stack(column, 0).view([*output.shape, *point.shape]) for column, point in zip(columns, points, strict=True)
    )


@_differentiates
def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of `func`, whose output is one number: the Jacobian of its gradient."""
    alone = isinstance(inputs, Tensor)

    def gradient(*points: Tensor) -> tuple[Tensor, ...]:
        _, output = _call_function(func, points, "hessian", strict)
        _check_scalar(output, "hessian")
        found = _grad(output, points, (None,), True)
        return _fill_missing_gradients(found, points, strict, True, "hessian")

    result = _jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy, "hessian")
    return result[0] if alone else result


@_differentiates
def vhp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Return the output of `func`, which is one number, and the product of `v` (shaped as the inputs are) and its Hessian."""
    with enable_grad():
        points, outputs, alone, _ = _run(func, inputs, "vhp", create_graph, strict)
        vector = _vector(v, points, "input to the user-provided function is", "vhp")
        _check_scalar(outputs, "vhp")
        gradient = _fill_missing_gradients(_grad(outputs, points, (None,), True), points, strict, True, "vhp")
    with set_grad_enabled(_must_record(create_graph)):
        pairs = [(value, start) for value, start in zip(gradient, vector, strict=True) if _is_recorded(value)]
        values, starts = tuple(value for value, _ in pairs), tuple(start for _, start in pairs)
        found = _grad(values, points, starts, create_graph) if pairs else (None,) * len(points)
    result = _fill_missing_gradients(found, points, strict, create_graph, "vhp")
    return _pack_results(outputs, True, create_graph), _pack_results(result, alone, create_graph)


@_differentiates
def hvp(
    func: Function, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Return the output of `func`, which is one number, and the product of its Hessian and `v` (shaped as the inputs are).

    The derivative of the gradient in the direction `v`, which does not rely on the Hessian's symmetry.
    """
    with enable_grad():
        points, outputs, alone, _ = _run(func, inputs, "hvp", create_graph, strict)
        vector = _vector(v, points, "input to the user-provided function is", "hvp")
        _check_scalar(outputs, "hvp")
        gradient = _fill_missing_gradients(_grad(outputs, points, (None,), True), points, strict, True, "hvp")
        dummies = tuple(aten.zeros_like(value).requires_grad_() for value in gradient)
        recorded = [(value, dummy) for value, dummy in zip(gradient, dummies, strict=True) if _is_recorded(value)]
        values, starts = tuple(value for value, _ in recorded), tuple(dummy for _, dummy in recorded)
        double = _grad(values, points, starts, True) if recorded else (None,) * len(points)
    with set_grad_enabled(_must_record(create_graph)):
        pairs = [(value, start) for value, start in zip(double, vector, strict=True) if _is_recorded(value)]
        values, starts = tuple(value for value, _ in pairs), tuple(start for _, start in pairs)
        found = _grad(values, dummies, starts, create_graph) if pairs else (None,) * len(dummies)
    result = _fill_missing_gradients(found, points, strict, create_graph, "hvp")
    return _pack_results(outputs, True, create_graph), _pack_results(result, alone, create_graph)


def _run(func: Function, inputs: Tensors, name: str, create_graph: bool, strict: bool) -> tuple:
    """Return the inputs as fresh leaves, the outputs for them, and whether each side is a single tensor instead of a tuple."""
    alone, given = _as_tuple(inputs, "inputs", name)
    points = tuple(_point(value, create_graph) for value in given)
    single, outputs = _call_function(func, points, name, strict)
    return points, outputs, alone, single


def _call_function(func: Function, points: tuple[Tensor, ...], name: str, strict: bool) -> tuple[bool, tuple[Tensor, ...]]:
    single, outputs = _as_tuple(func(*points), "outputs of the user-provided function", name)
    for number, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {number} of the user-provided function does not require gradients. The outputs must be computed in a "
                f"differentiable manner from the input when running {name} in strict mode."
            )
    return single, outputs


def _as_tuple(values: Tensors, what: str, name: str) -> tuple[bool, tuple[Tensor, ...]]:
    alone = not isinstance(values, tuple)
    values = (values,) if alone else values
    for number, value in enumerate(values):
        if not isinstance(value, Tensor):
            where = "the given" if alone else f"the value at index {number} of the"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but {where} {what} has type "
                f"{type(value)}."
            )
    return alone, values


def _point(value: Tensor, create_graph: bool) -> Tensor:
    if not create_graph:
        return value.detach().requires_grad_()
    return value.view_as(value) if value.requires_grad else value.clone().requires_grad_()


def _vector(v: Tensors | None, like: tuple[Tensor, ...], owner: str, name: str) -> tuple[Tensor, ...]:
    """The vector of a product, checked against the shapes of `like`, which messages call `owner`; 1 for a single number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {owner} a single Tensor with a single element.")
        return (aten.ones_like(like[0]),)
    _, vector = _as_tuple(v, "v", name)
    if len(vector) != len(like):
        if len(like) == 1:
            raise RuntimeError(f"The given v should contain a single Tensor. It is a tuple of {len(vector)}.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
    for number, (value, wanted) in enumerate(zip(vector, like, strict=True)):
        if value.shape != wanted.shape:
            where = "" if len(like) == 1 else f"Entry {number} in "
            raise RuntimeError(f"{where}v has invalid size: should be {wanted.shape} but got {value.shape}.")
    return vector


def _grad(outputs: tuple, points: tuple, starts: tuple, create_graph: bool, keep: bool = False) -> tuple:
    """Return the gradients; None for a leaf that no output depends on."""
    pairs = [(output, start) for output, start in zip(outputs, starts, strict=True) if output.requires_grad]
    if not pairs:
        return (None,) * len(points)
    chosen, vectors = (tuple(part) for part in zip(*pairs, strict=True))
    return grad(chosen, points, vectors, create_graph or keep or None, create_graph, allow_unused=True)


def _fill_missing_gradients(found: tuple, like: tuple, strict: bool, create_graph: bool, name: str) -> tuple[Tensor, ...]:
    """Return the gradients with missing ones replaced by zeros; RuntimeError instead in strict mode."""
    if strict:
        _check_reached(found, name)
        for number, value in enumerate(found):
            if create_graph and not value.requires_grad:
                first = f"is independent of input {number}"
                second = f"with respect to input {number} is independent of the input"
                raise RuntimeError(
                    f"The jacobian of the user-provided function {second if name in _SECOND else first}. "
                    f"This is not allowed in strict mode of {name} when create_graph=True."
                )
    return tuple(aten.zeros_like(to) if value is None else value for value, to in zip(found, like, strict=True))


def _check_reached(found: tuple, name: str) -> None:
    for number, value in enumerate(found):
        if value is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {number}. This is not allowed in strict "
                f"mode of {name}."
            )


def _check_row(found: tuple, output: int, create_graph: bool) -> None:
    for number, value in enumerate(found):
        if value is None:
            raise RuntimeError(
                f"Output {output} of the user-provided function is independent of input {number}. This is not allowed in "
                "strict mode."
            )
        if create_graph and not value.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {number}. This is not allowed in strict "
                "mode when create_graph=True."
            )


def _check_scalar(outputs: tuple[Tensor, ...], name: str) -> None:
    if len(outputs) != 1:
        raise RuntimeError(f"The function given to {name} should return a single Tensor, but returned {len(outputs)}.")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element, but has "
            f"{outputs[0].numel()}."
        )


def _is_recorded(value: Tensor | None) -> bool:
    return value is not None and value.requires_grad


def _must_record(create_graph: bool) -> bool:
    return create_graph or state.grad_enabled


def _pack_results(values: tuple[Tensor, ...], alone: bool, create_graph: bool) -> Tensors:
    values = values if create_graph else tuple(value.detach() for value in values)
    return values[0] if alone else values
