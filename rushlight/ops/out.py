"""`out=`: the results of an operator, written to tensors that the caller provides.

In: results and their targets. Out: the targets, of the results' shapes, holding their values. The checks are torch's: no
autograd, a dtype that the result can be cast to, and no memory shared with an input in a way that leaves the result undefined.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from rushlight.core.dtype import can_cast, dtype, int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.meta.checks import check_writable, shared_memory

# Operators that require `out` to have exactly the result's dtype; all others cast.
_SAME_DTYPE = frozenset(
    """
    gather scatter scatter_add scatter_reduce index_add index_copy index_reduce index_select masked_select take take_along_dim
    nonzero nonzero_static narrow_copy slice_scatter tril triu diag renorm
    abs ceil conj_physical floor frac frexp nan_to_num neg round sgn sign trunc isneginf isposinf signbit isin hash_tensor
    mm bmm addmm addmv baddbmm mv dot vdot inner matmul tensordot linear cross multinomial
    topk sort argsort msort aminmax kthvalue median nanmedian mode argmax argmin bucketize searchsorted histc histogram
    softmax log_softmax norm gelu softplus logsigmoid hardshrink softshrink avg_pool2d avg_pool3d
    native_batch_norm _native_batch_norm_legit
    alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy split_copy split_with_sizes_copy squeeze_copy
    t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy
    lu_solve lu_unpack ormqr qr svd triangular_solve
    linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex
    linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve
    linalg_matrix_norm linalg_matrix_power linalg_multi_dot linalg_norm linalg_qr linalg_slogdet linalg_solve linalg_solve_ex
    linalg_solve_triangular linalg_svd linalg_svdvals linalg_vecdot linalg_vector_norm
    """.split()
)
# Operators that give numbers and their indices by dimension, and only then require the numbers' dtype.
_SAME_DTYPE_WITH_INDICES = frozenset({"max", "min"})
# Operators that read inputs after they have started to write: no input may share memory with a target.
_READS_LATER = frozenset(
    {"gather", "index_select", "masked_select", "cat", "concat", "concatenate", "take", "scatter", "scatter_add", "index_copy",
     "index_add", "scatter_reduce", "index_reduce"}
)  # fmt: skip


# Operators that make an empty target contiguous; others give it the strides of their result.
_CONTIGUOUS = frozenset(
    """
    cholesky lu linalg_tensorinv fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_rfft fft_rfft2 fft_rfftn fft_irfft
    fft_irfft2 fft_irfftn fft_ihfft2 fft_ihfftn
    """.split()
)
# Operators that compute in the dtype of `out` where `dtype` is not given.
_IN_TARGETS_DTYPE = frozenset({"sum", "nansum", "prod", "cumsum", "cumprod"})
# Operators that fill a target of any shape with the right number of elements, in order.
_SEQUENCES = frozenset({"arange", "linspace", "logspace", "range"})


def dtype_by_target(name: str, out: object) -> dtype | None:
    """Return the dtype that the operator computes in because `out` has it; None if the target decides nothing."""
    return out.dtype if name in _IN_TARGETS_DTYPE and isinstance(out, Tensor) else None


def check_target(name: str, out: object) -> None:
    """Reject early a target that the operator can never write: `multinomial` gives only int64."""
    if name == "multinomial" and isinstance(out, Tensor) and out.dtype is not int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")


def finish(name: str, out: Tensor | Sequence[Tensor] | None, result: Tensor | tuple, *inputs: object) -> Tensor | tuple:
    """Return the result of the operator `name`, or `out` with the result written to it if one is given."""
    return result if out is None else write_out(name, out, result, inputs)


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
        _check(name, target, value, read, several)
        if name in _SEQUENCES and target.numel() == value.numel():
            value = value.view(target.shape)
        _resize(name, target, value)
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


def _check(name: str, target: Tensor, value: Tensor, inputs: list[Tensor], several: bool) -> None:
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
    _check_dtype(name, target, value, several)
    check_writable(target, name)
    for tensor in inputs:
        shared = shared_memory(target._impl, tensor._impl)
        if shared == "partly" or (shared and name in _READS_LATER):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                f"location. Please clone() the tensor before performing the operation. ({name})"
            )


def _check_dtype(name: str, target: Tensor, value: Tensor, several: bool) -> None:
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
    if name in ("all", "any"):
        if target.dtype is not uint8:
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {target.dtype.scalar_name}")
        return
    if name in _SAME_DTYPE or (several and name in _SAME_DTYPE_WITH_INDICES):
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {value.dtype}, but got {target.dtype} instead")
    if not can_cast(value.dtype, target.dtype):
        raise RuntimeError(
            f"{name}(): result type {value.dtype.scalar_name} can't be cast to the desired output type "
            f"{target.dtype.scalar_name}"
        )


def _resize(name: str, target: Tensor, value: Tensor) -> None:
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
    is_empty = not target.numel()
    target.resize_(value.shape)
    if is_empty and name not in _CONTIGUOUS and value.is_non_overlapping_and_dense():
        target.as_strided_(value.shape, value.stride())
