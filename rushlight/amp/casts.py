"""The kernels of the dispatch key Autocast: how autocast treats each operator.

Matrix products, convolutions and attention run in the lower precision; operators that need range or precision run in float32;
a few that join tensors run in the widest dtype among them; all others take what they get. float64 is never changed. Weights
that require grad are cast once per outermost region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.dtype import dtype, float32, float64, promote_types
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.ops import aten
from rushlight.ops.dispatcher import Kernel, OpOverload
from rushlight.ops.packet import namespaces

_AUTOCAST = bit(DispatchKey.Autocast)
_BLOCKS = namespaces.namespace("rushlight").block_linear.default

LOWER_PRECISION = """
    _addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d convolution linalg_vecdot linear lstm matmul mm prelu
    scaled_dot_product_attention
"""
FLOAT32 = """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky
    cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy_loss ctc_loss fft_fft fft_fft2 fft_fftn fft_hfft
    fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d
    fractional_max_pool3d geqrf grid_sampler grid_sampler_2d grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div
    l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd
    linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d
    mse_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward nanquantile nll_loss nll_loss2d orgqr ormqr
    pinverse poisson_nll_loss polar prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    replication_pad3d smooth_l1_loss soft_margin_loss stft svd trace triangular_solve triplet_margin_loss view_as_complex
"""
WIDEST = "cat index_copy stack"
# Autocast leaves these composites alone, because it casts the operators that they call.
UNCHANGED = "addmv mv"


class WeightCache:
    """Casts of weights in a region, by the weight and whether autograd records. Holds the weights, so that ids stay theirs."""

    def __init__(self):
        self._kept: dict[tuple[int, dtype, bool], tuple[Tensor, Tensor]] = {}

    def cast(self, weight: Tensor, kind: dtype) -> Tensor:
        """Return `weight` as `kind`, cast at the first time."""
        key = (id(weight._impl), kind, state.grad_enabled)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = (weight, weight.to(kind))
        return found[1]

    def clear(self) -> None:
        """Forget all casts."""
        self._kept.clear()


def _is_castable(value: object) -> bool:
    """Return whether autocast may change the dtype of an argument."""
    return isinstance(value, Tensor) and value._impl.dtype.is_floating_point and value._impl.dtype is not float64


def _cast(value: object, kind: dtype | None) -> object:
    if kind is None:
        return value
    if _is_castable(value):
        if value._impl.dtype is kind:
            return value
        settings = state.autocast
        is_weight = value._impl.dtype is float32 and kind is not float32 and value.requires_grad and value.is_leaf
        # While a program is captured, values stand for those of later runs: no cast of one may outlive the capture.
        if is_weight and settings.cache_enabled and value._impl.view is None and not state.modes:
            return settings.cache.cast(value, kind)
        return value.to(kind)
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return type(value)(_cast(item, kind) for item in value)
    return value


def _choose_lower_precision(args: tuple, kwargs: dict) -> dtype:
    return state.autocast.dtype


def _choose_float32(args: tuple, kwargs: dict) -> dtype:
    return float32


def _choose_widest(args: tuple, kwargs: dict) -> dtype:
    kind = state.autocast.dtype
    for tensor in _cast_tensors_in((*args, *kwargs.values())):
        kind = promote_types(kind, tensor.dtype)
    return kind


def _choose_no_dtype(args: tuple, kwargs: dict) -> None:
    return None


def _cast_tensors_in(values: tuple | list) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _cast_tensors_in(value)
        elif _is_castable(value):
            yield value


def _make_kernel(choose: Callable[[tuple, dict], dtype | None]) -> Callable:
    def link(op: OpOverload, below: int) -> Callable:
        lower = op.resolve(below)

        def run(*args, **kwargs):
            kind = choose(args, kwargs)
            with ExcludeKeys(_AUTOCAST):
                args = tuple(_cast(value, kind) for value in args)
                kwargs = {name: _cast(value, kind) for name, value in kwargs.items()}
                return lower(*args, **kwargs)

        return run

    return link


def register(names: str, choose: Callable[[tuple, dict], dtype | None]) -> None:
    """Give every overload of the aten operators a kernel that casts its arguments to the dtype that `choose` tells."""
    kernel = Kernel(_make_kernel(choose), linked=True)
    for name in names.split():
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            getattr(packet, overload).register(DispatchKey.Autocast, kernel)


def register_for(op: OpOverload, kind: dtype) -> None:
    """Have autocast cast the arguments of an operator from outside."""
    op.register(DispatchKey.Autocast, Kernel(_make_kernel(lambda args, kwargs: kind), linked=True))


register(LOWER_PRECISION, _choose_lower_precision)
register(FLOAT32, _choose_float32)
register(WIDEST, _choose_widest)
register(UNCHANGED, _choose_no_dtype)
_BLOCKS.register(DispatchKey.Autocast, Kernel(_make_kernel(_choose_lower_precision), linked=True))
