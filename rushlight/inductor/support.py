"""Support: decides which nodes inductor compiles. A node is compiled if its operator has a lowering that covers its arguments;
other nodes run as eager kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable

from rushlight.core.dtype import ALL, bfloat16, bool_, complex64, complex128, float16, float32, float64, int32, int64
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.symbolic import SymFloat, SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node
from rushlight.inductor.lowering import LOWERINGS
from rushlight.inductor.lowering.adaptive_pooling import MAX_UNROLLED
from rushlight.inductor.lowering.complex_numbers import COMPLEX, takes_complex_numbers, tensors_of
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.meta.adaptive_pooling import longest_window
from rushlight.ops.registry import aten

MAX_CONCATENATED_TENSORS = 64  # concatenations of more tensors run in eager: they are chains of nested conditions
MAX_SORTED_VALUES = 1024  # a median of more values runs in eager, which selects instead of sorting
MAX_DEPTH_TAPS = 8  # deeper 3-D kernels are not rewritten as 2-D convolutions


def _argument(node: Node, name: str) -> object:
    """Return the value of a node's argument, by its schema name."""
    op: OpOverload = node.target
    position = op._schema.positions[name]
    if position < len(node.args):
        return node.args[position]
    return node.kwargs.get(name, op._schema.arguments[position].default)


def _fake_value(node: Node, name: str) -> Tensor | None:
    argument = _argument(node, name)
    return argument.meta["val"] if isinstance(argument, Node) else None


def _has_small_float_result(node: Node) -> bool:
    return _first_result(node).dtype in (float32, bfloat16, float16)


def _first_result(node: Node) -> Tensor:
    value = node.meta["val"]
    return next(item for item in value if item is not None) if isinstance(value, tuple) else value


def _supports_attention(node: Node) -> bool:
    return _supports_attention_backward(node) and _is_used(node, 0)


def _supports_attention_backward(node: Node) -> bool:
    mask = _fake_value(node, "attn_mask")
    good_mask = mask is None or mask.dtype in (float32, bool_, bfloat16, float16)
    query, value = _fake_value(node, "query"), _fake_value(node, "value")
    same_depth = query.size(-1) == value.size(-1) and 0 < query.size(-1) <= 256
    plain = _has_small_float_result(node) and not _argument(node, "dropout_p") and query.numel() > 0 and value.numel() > 0
    return plain and good_mask and same_depth


def _supports_recurrent(node: Node) -> bool:
    """Return whether a recurrent layer, or its backward, has a nonempty input and a known hidden size."""
    name = "weight1" if node.target is aten("mkldnn_rnn_layer") else "weight2"
    source, weight = _fake_value(node, "input"), _fake_value(node, name)
    return source.dtype is float32 and isinstance(weight.size(1), int) and 0 not in (source.numel(), weight.numel())


def _is_used(node: Node, item: int) -> bool:
    return any(user.args[1] == item for user in node.users if user.target is operator.getitem)


def _uses_only_first(node: Node) -> bool:
    return all(user.args[1] == 0 for user in node.users if user.target is operator.getitem)


def _supports_convolution(node: Node) -> bool:
    """Return whether a convolution is 2-D, or can be rewritten as at most MAX_DEPTH_TAPS 2-D ones, for which sizes must be
    known. Empty tensors are not supported."""
    source, weight = _fake_value(node, "input"), _fake_value(node, "weight")
    if not _has_small_float_result(node) or 0 in (_first_result(node).numel(), source.numel(), weight.numel()):
        return False
    if source.dim() == 4 and not _argument(node, "transposed"):
        return True
    known = all(isinstance(size, int) for size in (*source.shape, *weight.shape))
    return known and (source.dim() < 5 or weight.size(2) <= MAX_DEPTH_TAPS)


def _supports_convolution_backward(node: Node) -> bool:
    """Check the conditions of `_supports_convolution` for a convolution's gradients."""
    grad, source, weight = (_fake_value(node, name) for name in ("grad_output", "input", "weight"))
    if grad.dtype not in (float32, bfloat16, float16) or 0 in (grad.numel(), source.numel(), weight.numel()):
        return False
    if source.dim() == 4 and _argument(node, "groups") == 1:
        return True
    known = all(isinstance(size, int) for size in (*grad.shape, *source.shape, *weight.shape))
    return known and (source.dim() < 5 or weight.size(2) <= MAX_DEPTH_TAPS)


def _has_float_result(node: Node) -> bool:
    return _first_result(node).dtype.is_floating_point


def _has_real_result(node: Node) -> bool:
    kind = _first_result(node).dtype
    return not kind.is_complex and kind is not bool_


def _supports_adaptive_pool(node: Node) -> bool:
    """Return whether the windows of an adaptive pool, or of its gradient, have known nonzero sizes."""
    tensors = [argument.meta["val"] for argument in node.args if isinstance(argument, Node)]
    sizes = [*_first_result(node).shape[-2:], *(size for tensor in tensors for size in tensor.shape[-2:])]
    return _first_result(node).dtype.is_floating_point and all(isinstance(size, int) and size > 0 for size in sizes)


def _supports_adaptive_max_pool(node: Node) -> bool:
    """Check the conditions of `_supports_adaptive_pool`. If indices are used, also require windows small enough to unroll."""
    if not _supports_adaptive_pool(node):
        return False
    inputs, outputs = node.args[0].meta["val"].shape[-2:], _first_result(node).shape[-2:]
    return _uses_only_first(node) or max(map(longest_window, inputs, outputs)) <= MAX_UNROLLED


def _supports_embedding_backward(node: Node) -> bool:
    gradient, positions = _fake_value(node, "grad_output"), _fake_value(node, "indices")
    plain = not _argument(node, "scale_grad_by_freq") and positions.dtype in (int64, int32)
    return plain and gradient.numel() > 0 and _first_result(node).numel() > 0


def _supports_scatter(node: Node) -> bool:
    kind = _first_result(node).dtype
    has_int_index = _fake_value(node, "index").dtype in (int64, int32)
    return _first_result(node).numel() > 0 and _fake_value(node, "src").dtype is kind and has_int_index


def _supports_scatter_reduce(node: Node) -> bool:
    kind = _first_result(node).dtype
    if not _supports_scatter(node) or kind in (bfloat16, float16):
        return False
    return kind is not bool_ or _argument(node, "reduce") != "mean"


def _supports_index_put(node: Node) -> bool:
    """Return whether all indices are integers, or the only index is a mask and the value a number."""
    if _first_result(node).numel() == 0 or _fake_value(node, "values").dtype is not _first_result(node).dtype:
        return False
    indices = [index.meta["val"] for index in _argument(node, "indices") if index is not None]
    if len(indices) == 1 and indices[0].dtype is bool_:
        return _fake_value(node, "values").numel() == 1 and indices[0].dim() > 0
    return bool(indices) and all(index.dtype in (int64, int32) for index in indices)


def _supports_searchsorted(node: Node) -> bool:
    return _fake_value(node, "sorted_sequence").dtype is _fake_value(node, "self").dtype


def _has_no_gaps(node: Node) -> bool:
    size, stride = node.args[:2]
    known = all(isinstance(number, int) for number in (*size, *stride))
    return known and is_non_overlapping_and_dense(tuple(size), tuple(stride))


def _has_wide_float_result(node: Node) -> bool:
    return _first_result(node).dtype in (float32, float64)


def _supports_as_strided(node: Node) -> bool:
    source = node.args[0].meta["val"]
    return source.is_contiguous() and source.storage_offset() == 0 and source.numel() > 0


def _supports_as_strided_scatter(node: Node) -> bool:
    """Return whether a view is of a row-major tensor, has known sizes, and provably shows no element twice."""
    source, size, stride = _first_argument(node), _argument(node, "size"), _argument(node, "stride")
    if not all(isinstance(number, int) for number in (*size, *stride, *source.shape)) or 0 in size:
        return False
    reach = 0
    for step, extent in sorted(zip(stride, size, strict=True)):
        if extent > 1 and step <= reach:
            return False
        reach += step * (extent - 1)
    return _supports_as_strided(node) and _fake_value(node, "src").dtype is source.dtype


def _is_written_natively(node: Node) -> bool:
    """Return whether all users are native: an eager user allocates its result itself."""
    return all(user.op == "call_function" and is_supported(user) for user in node.users)


def _has_few_values(node: Node) -> bool:
    """Return whether sorting all values is faster than eager's selection of the middle one."""
    count = _first_argument(node).numel()
    return isinstance(count, int) and 0 < count <= MAX_SORTED_VALUES


def _has_nonempty_reduction(node: Node) -> bool:
    return _fake_value(node, "self").numel() > 0


def _has_nonempty_source(node: Node) -> bool:
    """Return whether the source is nonempty or nothing is read from it."""
    return 0 in _first_result(node).shape or _first_argument(node).numel() > 0


def _has_integer_indices(node: Node) -> bool:
    """Return whether all indices are integers; masks make data-dependent sizes."""
    kinds = {index.meta["val"].dtype for index in node.args[1] if index is not None}
    return _has_nonempty_source(node) and bool(kinds) and kinds <= {int64, int32}


def _has_few_tensors(node: Node) -> bool:
    """Return whether a concatenation has few enough tensors to select among by nested conditions."""
    return len(node.args[0]) <= MAX_CONCATENATED_TENSORS


def _has_nonzero_divisor(node: Node) -> bool:
    """Return whether an integer quotient is not by the number 0, for which eager raises; tensors are checked in the loop."""
    divisor = node.args[1].meta["val"] if isinstance(node.args[1], Node) else node.args[1]
    return _first_result(node).dtype.is_floating_point or isinstance(divisor, Tensor) or divisor != 0


def _first_argument(node: Node) -> Tensor:
    return node.args[0].meta["val"]


def _supports_product(node: Node) -> bool:
    return _first_result(node).dtype is not bool_


def _has_nonempty_matrices(node: Node) -> bool:
    """Return whether all input matrices are nonempty."""
    return all(argument.meta["val"].numel() > 0 for argument in node.all_input_nodes)


_PRODUCTS = tuple(map(aten, ("mm", "addmm", "bmm")))
_MATRICES = tuple(map(aten, (
    "linalg_cholesky_ex", "linalg_lu_factor_ex", "lu_unpack", "linalg_solve_ex", "linalg_inv_ex", "linalg_det",
    "linalg_slogdet", "linalg_solve_triangular", "cholesky_solve", "linalg_qr", "_linalg_eigh", "_linalg_svd",
    "linalg_pinv.atol_rtol_tensor",
)))  # fmt: skip
CONDITIONS: dict[OpOverload, Callable[[Node], bool]] = {
    **dict.fromkeys(_PRODUCTS, _supports_product),
    aten("convolution"): _supports_convolution,
    aten("convolution_backward"): _supports_convolution_backward,
    aten("_scaled_dot_product_flash_attention_for_cpu"): _supports_attention,
    aten("_scaled_dot_product_flash_attention_for_cpu_backward"): _supports_attention_backward,
    aten("mkldnn_rnn_layer"): _supports_recurrent,
    aten("mkldnn_rnn_layer_backward"): _supports_recurrent,
    aten("_native_batch_norm_legit_no_training"): _uses_only_first,
    aten("max_pool2d_with_indices"): _has_real_result,
    aten("avg_pool2d"): _has_float_result,
    aten("max_pool2d_with_indices_backward"): _has_float_result,
    aten("avg_pool2d_backward"): _has_float_result,
    **dict.fromkeys(_MATRICES, _has_nonempty_matrices),
    aten("mode"): _has_nonempty_matrices,
    aten("_adaptive_avg_pool2d"): _supports_adaptive_pool,
    aten("_adaptive_avg_pool2d_backward"): _supports_adaptive_pool,
    aten("adaptive_max_pool2d"): _supports_adaptive_max_pool,
    aten("adaptive_max_pool2d_backward"): _supports_adaptive_pool,
    aten("embedding_dense_backward"): _supports_embedding_backward,
    aten("scatter.src"): _supports_scatter,
    aten("scatter_add"): _supports_scatter,
    aten("scatter_reduce.two"): _supports_scatter_reduce,
    aten("index_put"): _supports_index_put,
    aten("searchsorted.Tensor"): _supports_searchsorted,
    aten("empty_strided"): _has_no_gaps,
    aten("_cdist_forward"): _has_wide_float_result,
    aten("_cdist_backward"): _has_wide_float_result,
    aten("_pdist_forward"): _has_wide_float_result,
    aten("_pdist_backward"): _has_wide_float_result,
    aten("as_strided_scatter"): _supports_as_strided_scatter,
    aten("empty.memory_format"): _is_written_natively,
    aten("median"): _has_few_values,
    aten("nanmedian"): _has_few_values,
    aten("erfinv"): _has_small_float_result,
    aten("as_strided"): _supports_as_strided,
    aten("cat"): _has_few_tensors,
    aten("div.Tensor_mode"): _has_nonzero_divisor,
    aten("remainder.Tensor"): _has_nonzero_divisor,
    aten("fmod.Tensor"): _has_nonzero_divisor,
    aten("embedding"): _has_nonempty_source,
    aten("index_select"): _has_nonempty_source,
    aten("gather"): _has_nonempty_source,
    aten("index.Tensor"): _has_integer_indices,
    aten("amax"): _has_nonempty_reduction,
    aten("amin"): _has_nonempty_reduction,
    aten("argmax"): _has_nonempty_reduction,
    aten("argmin"): _has_nonempty_reduction,
}


# Operators with several valid results (singular vectors may have either sign); compiled code must give the same ones as eager.
_AS_IN_EAGER = tuple(map(aten, ("_linalg_eigh", "_linalg_svd", "linalg_pinv.atol_rtol_tensor")))
MAX_MATRIX_SIZE = 64  # for larger matrices LAPACK and BLAS, which work in blocks, are faster than loops over rows


def is_better_in_eager(node: Node) -> bool:
    """Return whether an eager kernel is better: it is faster, or native code would give another result (other vectors, or a
    copy instead of a view). Programs without eager use native code anyway."""
    if node.target in _AS_IN_EAGER:
        return True
    if node.target is aten("_conj"):
        return any(user.op == "output" for user in node.users)
    if node.target in _MATRICES:
        return any(size > MAX_MATRIX_SIZE for size in _first_argument(node).shape[-2:])
    if node.target in _PRODUCTS and _first_result(node).dtype is float64:
        return any(size > MAX_MATRIX_SIZE for size in node.all_input_nodes[-1].meta["val"].shape[-2:])
    return False


# Arithmetic that the native headers do not define for booleans.
NOT_FOR_BOOLEANS = ("neg", "sub", "div", "remainder", "fmod", "pow")


def is_supported(node: Node) -> bool:
    """Return whether inductor can compile a call_function node."""
    if is_size_arithmetic(node):
        return True
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and is_supported(node.args[0])
    if takes_complex_numbers(node):
        return _supports_complex(node)
    if node.target not in LOWERINGS or not _has_plain_types(node):
        return False
    if node.target._schema.name in NOT_FOR_BOOLEANS and _first_result(node).dtype is bool_:
        return False
    condition = CONDITIONS.get(node.target)
    return condition is None or condition(node)


def _supports_complex(node: Node) -> bool:
    """Return whether there is a rule for complex tensors, and the tensors are nonempty with components of float or double."""
    tensors = tensors_of(node)
    is_plain = all(tensor.dtype in _REAL or tensor.dtype in (complex64, complex128) for tensor in tensors)
    return node.target in COMPLEX and is_plain and all(tensor.numel() > 0 for tensor in tensors)


def is_size_arithmetic(node: Node) -> bool:
    """Return whether a node's result is a size or follows from sizes, which symbols give without running it."""
    return isinstance(node.meta.get("val"), SymInt | SymFloat | int)


_REAL = frozenset(kind for kind in ALL if not kind.is_complex)


def _has_plain_types(node: Node) -> bool:
    """Return whether generated code supports all tensors' dtypes."""
    return all(tensor.dtype in _REAL for tensor in tensors_of(node))
