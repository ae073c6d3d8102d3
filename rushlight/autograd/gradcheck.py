"""gradcheck and gradgradcheck: compare gradients of the backward and of forward mode with central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rushlight.autograd import jacobians
from rushlight.autograd.backward import grad
from rushlight.autograd.gradcheck_steps import (
    GradcheckError,
    check_constant,
    check_multiplied_by_gradient,
    check_outputs,
    check_undefined,
    differentiable_outputs,
    is_checked,
)
from rushlight.core.dtype import complex128, float64
from rushlight.core.layout import strided
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops import aten
from rushlight.ops.batching.levels import Mapping, add_batch_dim, remove_batch_dim

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


_BATCHED_FAILED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


class _Options(NamedTuple):
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    batched: bool
    batched_forward: bool
    forward: bool
    backward: bool
    fast: bool


def gradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return whether the gradients of `func` at `inputs` (float64 or complex128, those that require grad) match central
    differences.

    `func` takes the inputs and returns one or several tensors; integer tensors are ignored. For complex numbers both parts are
    varied and compared. `eps` is the step of the differences, `atol` and `rtol` are the tolerances, and `nondet_tol` is that
    between two runs of the backward. `check_undefined_grad`: outputs may have no gradient. `check_grad_dtypes`: gradients have
    the inputs' dtypes. `check_batched_grad`, `check_batched_forward_grad`: the same under vmap. `check_forward_ad`,
    `check_backward_ad`: which modes are compared. `fast_mode`: one random direction instead of all. `masked`: sparse inputs
    are varied where they have values, instead of everywhere.

    GradcheckError with both Jacobians where they do not match, or False when `raise_exception` is off. ValueError for inputs
    that cannot be checked.
    """
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise ValueError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if not check_backward_ad and not check_forward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    options = _Options(
        eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad,
        check_forward_ad, check_backward_ad, fast_mode,
    )  # fmt: skip
    _check_inputs(given)
    if not masked:
        given = tuple(jacobians.with_all_values(value) if is_checked(value) else value for value in given)
    try:
        _Check(func, given, options).run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_inputs(inputs: tuple) -> None:
    checked = [(index, value) for index, value in enumerate(inputs) if is_checked(value)]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )
    for index, tensor in checked:
        if tensor.dtype not in (float64, complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if tensor.layout is not strided:
            continue
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        if tensor.numel() and any(size > 1 and stride == 0 for size, stride in steps):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs whose elements do not "
                "overlap, which it varies one by one: pass input.contiguous()."
            )


class _Check:
    """One check: a function, its inputs, and the options."""

    def __init__(self, function: Callable, inputs: tuple, options: _Options):
        self.function = function
        self.inputs = inputs
        self.options = options
        self.random = np.random.default_rng(0)
        self.checked = [(index, value) for index, value in enumerate(inputs) if is_checked(value)]

    def run(self) -> None:
        """Raise GradcheckError for the first difference."""
        outputs = self.outputs()
        check_outputs(outputs)
        recorded = [output for output in outputs if output.requires_grad]
        if not recorded:
            check_constant(self.function, self.inputs, [value for _, value in self.checked], self.options.eps)
            return
        compare = self._compare_along_one if self.options.fast else self._compare_all
        if self.options.backward:
            compare(outputs)
        if self.options.forward:
            (self._compare_forward_along_one if self.options.fast else self._compare_forward)()
            for index, tensor in self.checked:
                if self.options.undefined and len(self.checked) > 1:
                    self._check_zero_tangents(tensor, index)
                if self.options.batched_forward:
                    self._check_batched_forward(tensor, index)
        if self.options.backward:
            self._check_gradients(outputs, recorded)

    def outputs(self) -> list[Tensor]:
        return differentiable_outputs(self.function, self.inputs)

    def _compare(self, wanted: np.ndarray, found: np.ndarray, position: int, index: int, kind: str = "") -> None:
        if not np.allclose(found, wanted, rtol=self.options.rtol, atol=self.options.atol, equal_nan=True):
            head = f"Jacobian {kind}mismatch for output {position} with respect to input {index},"
            note = "\nBoth are along a random direction (fast mode)." if self.options.fast else ""
            part = ""
            half = wanted.shape[1] // 2 if wanted.ndim == 2 else 0
            if half and self.is_complex_output[position]:
                same_imaginary = np.allclose(
                    found[:, half:], wanted[:, half:], rtol=self.options.rtol, atol=self.options.atol, equal_nan=True
                )
                part = f"While considering the {'real' if same_imaginary else 'imaginary'} part of complex outputs only, "
            raise GradcheckError(f"{part}{head}\nnumerical:{wanted}\nanalytical:{found}\n{note}")

    def _compare_all(self, outputs: list[Tensor]) -> None:
        self.is_complex_output = [output.is_complex() for output in outputs]
        for index, tensor in self.checked:
            wanted = jacobians.numerical(self.outputs, tensor, self.options.eps)
            for position, output in enumerate(outputs):
                found = jacobians.of_gradients(output, tensor)
                self._check_repeatable(found, jacobians.of_gradients(output, tensor))
                self._compare(wanted[position] if wanted else np.zeros_like(found), found, position, index)

    def _check_repeatable(self, found: np.ndarray, again: np.ndarray) -> None:
        if not np.allclose(found, again, rtol=0, atol=self.options.nondet_tol, equal_nan=True):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                "different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {self.options.nondet_tol}."
            )

    def _compare_along_one(self, outputs: list[Tensor]) -> None:
        """Compare along one random direction of each input and with one random gradient of each output."""
        self.is_complex_output = [False for _ in outputs]
        for index, tensor in self.checked:
            direction = self._direction(tensor)
            differences = jacobians.difference_along(self.outputs, tensor, direction, self.options.eps)
            for position, output in enumerate(outputs):
                start = self._random_like(output)
                wanted = differences[position] @ jacobians.coordinates(start)
                found, again = (jacobians.of_gradients(output, tensor, [start])[:, 0] for _ in range(2))
                self._check_repeatable(found, again)
                self._compare(np.array(wanted), np.array(found @ jacobians.coordinates(direction)), position, index)

    def _direction(self, tensor: Tensor) -> np.ndarray:
        """Return a random direction of the elements that can be varied."""
        direction = self._random_like(tensor)
        if tensor.layout is not strided:
            direction *= jacobians.mask_of(tensor)
        return direction / (np.linalg.norm(direction) or 1.0)  # a step of length eps, however many elements there are

    def _tangents(self, index: int, tangent: Tensor, zeros: bool = True) -> list[Tensor | None]:
        """Return tangents of all inputs: this one of input `index`, and zeros or none for the others."""
        return [
            tangent if position == index else aten.zeros_like(value.detach()) if zeros and is_checked(value) else None
            for position, value in enumerate(self.inputs)
        ]

    def _push(self, index: int, tangent: Tensor, zeros: bool = True) -> list[tuple]:
        inputs = [value.detach() if is_checked(value) else value for value in self.inputs]
        return jacobians.push(
            lambda given: differentiable_outputs(self.function, given), inputs, self._tangents(index, tangent, zeros)
        )

    def _compare_forward(self) -> None:
        kind = "computed with forward mode "
        for index, tensor in self.checked:
            wanted = jacobians.numerical(self.outputs, tensor, self.options.eps)
            rows = [
                jacobians.tangent_coordinates(self._push(index, tensor_from_array(direction)))
                for direction in jacobians.directions(tensor)
            ]
            for position, column in enumerate(zip(*rows, strict=True)):
                self._compare(wanted[position], np.array(column), position, index, kind)

    def _compare_forward_along_one(self) -> None:
        for index, tensor in self.checked:
            direction = self._direction(tensor)
            wanted = jacobians.difference_along(self.outputs, tensor, direction, self.options.eps)
            found = jacobians.tangent_coordinates(self._push(index, tensor_from_array(direction)))
            for position, (one, other) in enumerate(zip(wanted, found, strict=True)):
                self._compare(one, other, position, index, "computed with forward mode ")

    def _check_zero_tangents(self, tensor: Tensor, index: int) -> None:
        """Check that zero tangents of the other inputs have the effect of none."""
        tangent = tensor_from_array(self._random_like(tensor))
        with_zeros, without = (jacobians.tangent_coordinates(self._push(index, tangent, zeros)) for zeros in (True, False))
        for one, other in zip(with_zeros, without, strict=True):
            if not np.allclose(one, other, self.options.rtol, self.options.atol, equal_nan=True):
                raise GradcheckError("Forward mode differs between inputs without a tangent and inputs whose tangent is zero")

    def _check_batched_forward(self, tensor: Tensor, index: int) -> None:
        def push(direction: Tensor) -> list[Tensor]:
            found = self._push(index, direction, zeros=False)
            return [aten.zeros_like(output) if tangent is None else tangent for output, tangent in found]

        tangents = [tensor_from_array(self._random_like(tensor)) for _ in range(2)]
        try:
            with Mapping(len(tangents), "error") as level:
                made = push(add_batch_dim(aten.stack(tangents), 0, level))
                together = [remove_batch_dim(value, level, 0) for value in made]
        except Exception as error:  # anything that an operator raises under vmap
            raise GradcheckError(f"{_BATCHED_FAILED}. While computing batched gradients, got: {error}") from error
        for position, tangent in enumerate(tangents):
            for batch, one in zip(together, push(tangent), strict=True):
                self._compare_batched(batch[position], one)

    def _check_gradients(self, outputs: list[Tensor], recorded: list[Tensor]) -> None:
        """Check what the gradients are like, apart from their values."""
        inputs = [value for _, value in self.checked]
        for output in recorded:
            for tensor in inputs:
                if self.options.batched and output.numel():
                    self._check_batched(output, tensor)
                if self.options.dtypes:
                    self._check_dtype(output, tensor)
        check_multiplied_by_gradient(recorded, inputs)
        if self.options.undefined:
            check_undefined(recorded, inputs)

    def _check_dtype(self, output: Tensor, tensor: Tensor) -> None:
        start = tensor_from_array(self._random_like(output))
        (found,) = grad(output, tensor, start, retain_graph=True, allow_unused=True)
        if found is not None and found.dtype is not tensor.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: {found.dtype} for an input of {tensor.dtype}")

    def _check_batched(self, output: Tensor, tensor: Tensor) -> None:
        starts = [tensor_from_array(self._random_like(output)) for _ in range(2)]
        options = {"retain_graph": True, "allow_unused": True}
        try:
            (together,) = grad(output, tensor, aten.stack(starts), is_grads_batched=True, **options)
        except Exception as error:  # anything that an operator raises under vmap
            raise GradcheckError(f"{_BATCHED_FAILED}. While computing batched gradients, got: {error}") from error
        for position, start in enumerate(starts):
            (one,) = grad(output, tensor, start, **options)
            self._compare_batched(None if together is None else together[position], one)

    def _compare_batched(self, found: Tensor | None, wanted: Tensor | None) -> None:
        arrays = [np.zeros(1) if value is None else jacobians.array_of(value) for value in (found, wanted)]
        if not np.allclose(*arrays, self.options.rtol, self.options.atol):
            raise GradcheckError(f"{_BATCHED_FAILED}. Batched gradients differ from those that are computed one by one")

    def _random_like(self, tensor: Tensor) -> np.ndarray:
        values = self.random.standard_normal(tensor.shape)
        if tensor.is_complex():
            values = values + 1j * self.random.standard_normal(tensor.shape)
        return np.asarray(values).astype(tensor.dtype.numpy)


def gradgradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    grad_outputs: Tensor | Sequence | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return `gradcheck` of the gradients of `func` themselves, as functions of the inputs and of the outputs' gradients.

    `grad_outputs` are these gradients, random ones if none are given; with `gen_non_contig_grad_outputs` they have gaps. Second
    derivatives are compared by the backward of the backward (`check_rev_over_rev`) and by forward mode over it
    (`check_fwd_over_rev`). All else is as in `gradcheck`.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = [value for value in differentiable_outputs(func, given) if value.requires_grad]
    if grad_outputs is None:
        starts = _random_starts(outputs, gen_non_contig_grad_outputs)
    else:
        starts = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def first_order(*values: object) -> tuple[Tensor, ...]:
        points, gradients = values[: len(given)], values[len(given) :]
        points = tuple(_require_grad_if_checked(value, like) for value, like in zip(points, given, strict=True))
        checked = [value for value, like in zip(points, given, strict=True) if is_checked(like)]
        results = [value for value in differentiable_outputs(func, points) if value.requires_grad]
        found = grad(results, checked, gradients, create_graph=True, allow_unused=True)
        return tuple(value for value in found if value is not None)

    return gradcheck(
        first_order, (*given, *starts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _require_grad_if_checked(value: object, like: object) -> object:
    """Return an input recorded by the outer order, even where a dual tensor stands for it."""
    return value.requires_grad_() if is_checked(like) and not value.requires_grad else value


def _random_starts(outputs: list[Tensor], with_gaps: bool) -> tuple[Tensor, ...]:
    random = np.random.default_rng(0)
    made = []
    for value in outputs:
        sizes = (*value.shape, 2) if with_gaps else tuple(value.shape)
        numbers = random.standard_normal(sizes)
        if value.is_complex():
            numbers = numbers + 1j * random.standard_normal(sizes)
        start = tensor_from_array(np.asarray(numbers).astype(value.dtype.numpy))
        made.append((start[..., 0] if with_gaps else start).requires_grad_())
    return tuple(made)
