"""Compares a compiled function's results with eager's: values, sizes, dtypes, strides, aliases, effects on inputs."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from rushlight.core.pytree import tree_flatten

# Tolerances relative to the largest element, for a few operations done in another order.
TOLERANCE = {"float64": 1e-9, "float32": 2e-4, "float16": 2e-2, "bfloat16": 1e-1}


def difference(eager, compiled, make_inputs, precision: str = "float32") -> str:
    """The difference between two functions on equal inputs; "" if there is none. Each may write to its inputs.

    `precision` is the coarsest floating dtype of any intermediate result.
    """
    ours, theirs = make_inputs(), make_inputs()
    wanted, error = _call(eager, theirs)
    got, other = _call(compiled, ours)
    if error is not None or other is not None:
        same = type(error) is type(other)
        return "" if same else f"eager raised {error!r}, compiled raised {other!r}"
    left, spec = tree_flatten(wanted)
    right, other_spec = tree_flatten(got)
    if spec != other_spec:
        return f"the result has structure {other_spec}, expected {spec}"
    theirs, ours = tree_flatten(theirs)[0], tree_flatten(ours)[0]
    for position, (want, have) in enumerate(zip([*left, *theirs], [*right, *ours], strict=True)):
        found = _difference(want, have, TOLERANCE[precision])
        if found:
            return f"{'output' if position < len(left) else 'input after the call'} {position}: {found}"
    return _alias_difference([*left, *theirs], [*right, *ours])


def assert_frozen_model_agrees(model, *inputs) -> None:
    """Asserts that a model whose parameters are constants, run by two threads, matches eager."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with torch.no_grad():
            got, want = torch.compile(model)(*inputs), model(*inputs)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(threads)


def _call(function, inputs):
    try:
        return function(*inputs), None
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return None, error


def _difference(want: object, have: object, limit: float) -> str:
    if not isinstance(want, torch.Tensor):
        return "" if type(want) is type(have) and want == have else f"{have!r} instead of {want!r}"
    if (want.shape, want.dtype, _steps(want)) != (have.shape, have.dtype, _steps(have)):
        return (
            f"{have.dtype} {tuple(have.shape)} strides {have.stride()} instead of "
            f"{want.dtype} {tuple(want.shape)} strides {want.stride()}"
        )
    return _value_difference(want, have, limit if want.dtype.is_floating_point else 0.0)


def _steps(tensor: torch.Tensor) -> list[int]:
    """The strides that matter: those of dimensions with several elements."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1 and tensor.numel()]


def _value_difference(want: torch.Tensor, have: torch.Tensor, limit: float) -> str:
    a, b = _numbers(want), _numbers(have)
    finite = a[np.isfinite(a)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size and limit else 1.0
    with np.errstate(invalid="ignore"):
        wrong = ~(np.isclose(a, b, rtol=limit, atol=limit * scale, equal_nan=True))
    if not wrong.any():
        return ""
    at = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: "
        f"{np.atleast_1d(b)[at]} instead of {np.atleast_1d(a)[at]}"
    )


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    detached = tensor.detach()
    return (detached.to(torch.float64) if detached.dtype.is_floating_point else detached).numpy()


def _alias_difference(want: list, have: list) -> str:
    pairs = [
        (first, second)
        for first in range(len(want)) for second in range(first)
        if _share(want[first], want[second]) != _share(have[first], have[second])
    ]  # fmt: skip
    return f"results (then inputs) {pairs[0]} share memory in one of the two only" if pairs else ""


def _share(left: object, right: object) -> bool:
    if not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)) or not left.numel() or not right.numel():
        return False
    return left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr()
