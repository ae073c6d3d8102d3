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

Rule = Callable[[tuple, dict, dtype], dtype | None]
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
# The GPUs' lists are PyTorch's for CUDA: there, more functions have a range that float16 lacks.
FLOAT32_ON_GPUS = """
    acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity cross_entropy_loss cumprod
    cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log log10 log1p log2
    log_softmax logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d norm
    native_layer_norm poisson_nll_loss pow prod reciprocal renorm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin
    softplus stft sum tan triplet_margin_loss fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2
    fft_rfftn fft_irfft fft_irfft2 fft_irfftn fft_hfft fft_ihfft
"""
WIDEST_ON_GPUS = "addcdiv addcmul atan2 bilinear cat cross dot grid_sampler index_put scatter_add stack tensordot vdot"
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


def _choose_lower_precision(args: tuple, kwargs: dict, lower: dtype) -> dtype:
    return lower


def _choose_float32(args: tuple, kwargs: dict, lower: dtype) -> dtype:
    return float32


def _choose_widest(args: tuple, kwargs: dict, lower: dtype) -> dtype:
    kind = lower
    for tensor in _cast_tensors_in((*args, *kwargs.values())):
        kind = promote_types(kind, tensor.dtype)
    return kind


def _choose_no_dtype(args: tuple, kwargs: dict, lower: dtype) -> None:
    return None


def _cast_tensors_in(values: tuple | list) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _cast_tensors_in(value)
        elif _is_castable(value):
            yield value


def _chosen_dtype(on_cpu: Rule, on_gpu: Rule, args: tuple, kwargs: dict) -> dtype | None:
    """Return the dtype to which a call's arguments are cast, by the rule for the device that they are on; None for no cast."""
    settings = state.autocast
    if settings.gpu and any(tensor._impl.device.type == "cuda" for tensor in _cast_tensors_in((*args, *kwargs.values()))):
        return on_gpu(args, kwargs, settings.gpu_dtype)
    if settings.cpu and not any(tensor._impl.device.type == "cuda" for tensor in _cast_tensors_in((*args, *kwargs.values()))):
        return on_cpu(args, kwargs, settings.dtype)
    return None


def _make_kernel(on_cpu: Rule, on_gpu: Rule) -> Callable:
    def link(op: OpOverload, below: int) -> Callable:
        lower = op.resolve(below)

        def run(*args, **kwargs):
            kind = _chosen_dtype(on_cpu, on_gpu, args, kwargs)
            with ExcludeKeys(_AUTOCAST):
                args = tuple(_cast(value, kind) for value in args)
                kwargs = {name: _cast(value, kind) for name, value in kwargs.items()}
                return lower(*args, **kwargs)

        return run

    return link


def _register(name: str, on_cpu: Rule, on_gpu: Rule) -> None:
    """Give every overload of an aten operator a kernel that casts its arguments to the dtype that a rule tells."""
    kernel = Kernel(_make_kernel(on_cpu, on_gpu), linked=True)
    packet = getattr(aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        getattr(packet, overload).register(DispatchKey.Autocast, kernel)


def register_for(op: OpOverload, kind: dtype) -> None:
    """Have autocast cast the arguments of an operator from outside."""
    rule = lambda args, kwargs, lower: kind  # noqa: E731
    op.register(DispatchKey.Autocast, Kernel(_make_kernel(rule, rule), linked=True))


def _register_all() -> None:
    """Register the operators of both tables."""
    rules = {}
    for device, table in enumerate((_ON_CPU, _ON_GPU)):
        for rule, names in table.items():
            for name in names.split():
                rules.setdefault(name, [_choose_no_dtype, _choose_no_dtype])[device] = rule
    for name, (on_cpu, on_gpu) in rules.items():
        _register(name, on_cpu, on_gpu)


_ON_CPU = {
    _choose_lower_precision: LOWER_PRECISION, _choose_float32: FLOAT32, _choose_widest: WIDEST, _choose_no_dtype: UNCHANGED,
}  # fmt: skip
_ON_GPU = {
    _choose_lower_precision: f"{LOWER_PRECISION} addmv mv", _choose_float32: FLOAT32_ON_GPUS, _choose_widest: WIDEST_ON_GPUS,
}  # fmt: skip
_register_all()
_BLOCKS.register(DispatchKey.Autocast, Kernel(_make_kernel(_choose_lower_precision, _choose_lower_precision), linked=True))
