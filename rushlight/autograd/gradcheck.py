"""gradcheck and gradgradcheck: analytical gradients against central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.autograd.backward import grad
from rushlight.core.tensor import Tensor, tensor_from_array


class GradcheckError(RuntimeError):
    """The analytical and the numerical gradients differ."""


def _outputs(function: Callable, inputs: tuple) -> list[Tensor]:
    result = function(*inputs)
    found = list(result) if isinstance(result, tuple | list) else [result]
    return [value for value in found if isinstance(value, Tensor) and value.is_floating_point()]


def _numerical(function: Callable, inputs: tuple, tensor: Tensor, eps: float) -> list[np.ndarray]:
    """Per output, the Jacobian (elements of `tensor` x elements of the output) by central differences."""
    columns: list[list[np.ndarray]] = []
    array = tensor._impl.array
    for index in np.ndindex(array.shape):
        original = array[index].copy()
        array[index] = original + eps
        high = [value.detach().numpy().copy() for value in _outputs(function, inputs)]
        array[index] = original - eps
        low = [value.detach().numpy().copy() for value in _outputs(function, inputs)]
        array[index] = original
        columns.append([(h - lo).ravel() / (2 * eps) for h, lo in zip(high, low, strict=True)])
    return [np.array(rows).reshape(array.size, -1) for rows in zip(*columns, strict=True)]


def _analytical(outputs: list[Tensor], tensor: Tensor) -> list[np.ndarray]:
    jacobians = []
    for output in outputs:
        rows = []
        if not output.requires_grad:
            jacobians.append(np.zeros((tensor.numel(), output.numel())))
            continue
        for position in range(output.numel()):
            seed = np.zeros(output.shape, output.dtype.numpy)
            seed.ravel()[position] = 1
            (found,) = grad(output, tensor, tensor_from_array(seed), retain_graph=True, allow_unused=True)
            rows.append(np.zeros(tensor.numel()) if found is None else found.detach().numpy().ravel())
        jacobians.append(np.array(rows).reshape(output.numel(), tensor.numel()).T)
    return jacobians


def gradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_undefined_grad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Whether the gradients of `func` at `inputs` (float64 leaves that require grad) match central differences.

    GradcheckError with both Jacobians where they do not, or False when `raise_exception` is off.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have it.")
    for number, tensor in enumerate(checked):
        outputs = _outputs(func, inputs)
        numerical = _numerical(func, inputs, tensor, eps)
        for position, (want, got) in enumerate(zip(numerical, _analytical(outputs, tensor), strict=True)):
            if not np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"Jacobian mismatch for output {position} with respect to input {number},\n"
                    f"numerical:\n{want}\nanalytical:\n{got}\n"
                )
    return True


def gradgradcheck(func: Callable, inputs: Tensor | Sequence, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func` themselves, as functions of the inputs and of the outputs' gradients."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    generator = np.random.default_rng(0)
    outputs = [value for value in _outputs(func, inputs) if value.requires_grad]
    seeds = [tensor_from_array(np.asarray(generator.standard_normal(value.shape))).requires_grad_() for value in outputs]

    def first_order(*values: Tensor) -> tuple[Tensor, ...]:
        points, starts = values[: len(inputs)], values[len(inputs) :]
        checked = [value for value in points if isinstance(value, Tensor) and value.requires_grad]
        results = [value for value in _outputs(func, points) if value.requires_grad]
        found = grad(results, checked, starts, create_graph=True, allow_unused=True)
        return tuple(value for value in found if value is not None)

    return gradcheck(first_order, (*inputs, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
