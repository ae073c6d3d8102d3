"""`out=`: the results of an operator, written to tensors that the caller provides.

In: results and their targets. Out: the targets, of the results' shapes, holding their values. The checks are torch's: no
autograd, a dtype that the result can be cast to, and no memory shared with an input in a way that leaves the result undefined.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from rushlight.core.dtype import can_cast, int64
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.meta.checks import check_writable, shared_memory

# Operators that require `out` to have exactly the result's dtype; all others cast.
_SAME_DTYPE = frozenset(
    {"gather", "mm", "bmm", "addmm", "baddbmm", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "topk",
     "sort", "linear", "multinomial", "nonzero", "take", "msort", "aminmax", "kthvalue", "max", "min", "median", "nanmedian",
     "mode"}
)  # fmt: skip
# Operators that read inputs after they have started to write: no input may share memory with a target.
_READS_LATER = frozenset(
    {"gather", "index_select", "masked_select", "cat", "concat", "concatenate", "take", "scatter", "scatter_add", "index_copy",
     "index_add", "scatter_reduce", "index_reduce"}
)  # fmt: skip


# Operators that fill a target of any shape with the right number of elements, in order.
_SEQUENCES = frozenset({"arange", "linspace", "logspace", "range"})


def check_target(name: str, out: object) -> None:
    """Reject early a target that the operator can never write: `multinomial` gives only int64."""
    if name == "multinomial" and isinstance(out, Tensor) and out.dtype is not int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")


def write_out(name: str, out: Tensor | Sequence[Tensor], results: Tensor | tuple, inputs: Sequence[object]) -> Tensor | tuple:
    """Copy the results of the operator `name` to `out`, which is resized if its shape differs; `inputs` are the call's
    arguments.

    TypeError where `out` is no tensor or has the wrong number of tensors, RuntimeError where it can't hold the result.
    """
    several = isinstance(results, tuple)
    targets = tuple(out) if several and isinstance(out, list | tuple) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    values = results if several else (results,)
    if len(targets) != len(values):
        raise TypeError(f"{name}(): argument 'out' must be tuple of {len(values)} Tensors, got {len(targets)}")
    read = list(_tensors(inputs))
    for target, value in zip(targets, values, strict=True):
        _check(name, target, value, read)
        if name in _SEQUENCES and target.numel() == value.numel():
            value = value.view(target.shape)
        _resize(target, value)
        target.copy_(value)
    return targets if several else out


def _tensors(values: Sequence[object]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _is_dual(tensor: Tensor) -> bool:
    impl = tensor._impl
    owner = impl if impl.view is None else impl.view.base._impl
    return any(impl in level.tangents or owner in level.tangents for level in state.dual_levels)


def _check(name: str, target: Tensor, value: Tensor, inputs: list[Tensor]) -> None:
    if state.grad_enabled and (target.requires_grad or any(tensor.requires_grad for tensor in inputs)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    if state.dual_levels and any(_is_dual(tensor) for tensor in (target, *inputs)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if target.device != value.device:
        raise RuntimeError(f"{name}(): Expected out tensor to be on device {value.device}, but got {target.device} instead")
    _check_dtype(name, target, value)
    check_writable(target, name)
    for tensor in inputs:
        shared = shared_memory(target._impl, tensor._impl)
        if shared == "partly" or (shared and name in _READS_LATER):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                f"location. Please clone() the tensor before performing the operation. ({name})"
            )


def _check_dtype(name: str, target: Tensor, value: Tensor) -> None:
    if target.dtype is value.dtype or name == "bernoulli":
        return
    if name in ("complex", "polar"):
        raise RuntimeError(
            f"Expected object of scalar type {value.dtype.scalar_name} but got scalar type {target.dtype.scalar_name} for "
            "argument 'out'"
        )
    if name in ("amax", "amin"):
        raise RuntimeError(
            f"{name}(): Expected the dtype for input and out to match, but got {value.dtype.scalar_name} for input's dtype and "
            f"{target.dtype.scalar_name} for out's dtype."
        )
    if name in ("cummax", "cummin", "logcumsumexp"):
        raise RuntimeError(f"expected scalar_type {value.dtype.scalar_name} but found {target.dtype.scalar_name}")
    if name in ("quantile", "nanquantile"):
        raise RuntimeError(f"{name}() out tensor must be same dtype as the input tensor, {value.dtype}, got {target.dtype}")
    if name in _SAME_DTYPE:
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {value.dtype}, but got {target.dtype} instead")
    if not can_cast(value.dtype, target.dtype):
        raise RuntimeError(
            f"{name}(): result type {value.dtype.scalar_name} can't be cast to the desired output type "
            f"{target.dtype.scalar_name}"
        )


def _resize(target: Tensor, value: Tensor) -> None:
    if target.shape == value.shape:
        return
    if target.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(target.shape)}, which does not match "
            f"the required output shape {list(value.shape)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. Give an empty tensor (out.resize_(0)) to have it "
            "resized.",
            UserWarning,
            stacklevel=4,
        )
    target.resize_(value.shape)
