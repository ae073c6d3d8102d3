"""Operators in torch's archives that the library provides by other means: those that tracing records (`_convolution`), methods
that change a tensor's shape in place, and names of older versions. Each calls the equivalent library function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.device import device
from rushlight.core.dtype import dtype, int8, int16, promote_types, uint8
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_number, dtype_of_number, memory_format_of_number
from rushlight.jit.errors import JitException
from rushlight.jit.operators.registry import declare_operator
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type

aten = namespaces.namespace("aten")
functional = LazyModule("rushlight.nn.functional")


def _register_conversions() -> None:
    register = declare_operator
    register("aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(a|b)",
             lambda self, kind, _, copy: self.to(dtype=None if kind is None else dtype_of_number(kind), copy=copy))  # fmt: skip
    register("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(a|b)",
             lambda self, non_blocking, copy: self.clone() if copy else self)  # fmt: skip
    for name, kind in (("Byte", uint8), ("Char", int8), ("Short", int16)):
        register(f"aten::_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor",
                 lambda self, non_blocking, kind=kind: self.to(kind))  # fmt: skip
    register("aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", lambda self, place: self)
    register("aten::is_pinned(Tensor self, Device? device=None) -> bool", lambda self, place: False)
    register("aten::data(Tensor self) -> Tensor", lambda self: self.data)
    register("aten::set_data(Tensor(a!) self, Tensor new_data) -> ()", _set_data)


def _set_data(self: Tensor, new_data: Tensor) -> None:
    self.data = new_data


_IN_PLACE = ("t_()", "squeeze_()", "squeeze_.dim(int dim)", "squeeze_.dims(int[] dim)", "unsqueeze_(int dim)",
             "transpose_(int dim0, int dim1)", "swapaxes_(int axis0, int axis1)", "swapdims_(int dim0, int dim1)",
             "detach_()", "as_strided_(int[] size, int[] stride, int? storage_offset=None)", 
             "resize_(int[] size, *, MemoryFormat? memory_format=None)",
             "resize_as_(Tensor the_template, *, MemoryFormat? memory_format=None)", "set_()",
             "set_.source_Tensor(Tensor source)",
             "set_.source_Tensor_storage_offset(Tensor source, int storage_offset, int[] size, int[] stride=[])")


def _with_format(method: Callable) -> Callable:
    """Return a method whose last argument is a memory format, given as a number."""

    def call(*args: object) -> Tensor:
        *rest, form = args
        return method(*rest, memory_format=None if form is None else memory_format_of_number(form))

    return call


def _register_in_place() -> None:
    for text in _IN_PLACE:
        name, _, arguments = text.partition("(")
        listed = f", {arguments}" if arguments != ")" else ")"
        method = getattr(Tensor, name.partition(".")[0], None)
        if method is not None:
            function = _with_format(method) if "MemoryFormat" in arguments else method
            declare_operator(f"aten::{name}(Tensor(a!) self{listed} -> Tensor(a!)", function)
    declare_operator("aten::_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)", lambda self: self.detach().zero_())
    declare_operator("aten::zero(Tensor self) -> Tensor", lambda self: self.clone().zero_())


def _convolution_mode(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str,
                      dilation: list[int], groups: int) -> Tensor:  # fmt: skip
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[weight.dim() - 3]
    return convolve(input, weight, bias, stride, padding, dilation, groups)


def _register_convolutions() -> None:
    declare_operator("aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, "
                      "int[] dilation, int groups) -> Tensor", _convolution_mode)  # fmt: skip
    declare_operator("aten::_nnpack_available() -> bool", lambda: False)


def _make_padder(mode: str) -> Callable:
    return lambda self, padding: functional.pad(self, list(padding), mode)


def _register_padding() -> None:
    for name, mode in (("reflection", "reflect"), ("replication", "replicate")):
        for dims in (1, 2, 3):
            declare_operator(f"aten::{name}_pad{dims}d(Tensor self, int[{2 * dims}] padding) -> Tensor", _make_padder(mode))
    declare_operator("aten::max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
                      lambda self, indices, size: functional.max_unpool2d(self, indices, 1, 1, 0, list(size)))  # fmt: skip


def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, by_frequency: bool, mode: int, sparse: bool,
                   weights: Tensor | None, last: bool, padding_idx: int | None = None) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the sums, means or maxima of bags; the other three results are for the derivative, and empty here."""
    made = functional.embedding_bag(indices, weight, offsets, None, 2.0, by_frequency, ("sum", "mean", "max")[mode], sparse,
                                    weights, last, padding_idx)  # fmt: skip
    nothing = tensor([], dtype=indices.dtype)
    return made, nothing, nothing, nothing


def _register_embeddings() -> None:
    shared = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq"
    result = "(Tensor, Tensor, Tensor, Tensor)"
    declare_operator(f"aten::embedding_bag({shared}=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
                      f"bool include_last_offset=False) -> {result}", _embedding_bag)  # fmt: skip
    declare_operator(f"aten::embedding_bag.padding_idx({shared}, int mode, bool sparse, Tensor? per_sample_weights, "
                      f"bool include_last_offset, int? padding_idx) -> {result}", _embedding_bag)  # fmt: skip
    declare_operator("aten::_no_grad_embedding_renorm_(Tensor weight, Tensor input, float max_norm, float norm_type)"
                      " -> Tensor", _renormalize_rows)  # fmt: skip


def _renormalize_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the used rows down to `max_norm`, in place."""
    rows = indices.reshape(-1).unique()
    data = weight.detach()
    lengths = data[rows].norm(norm_type, 1, True)
    scale = (max_norm / (lengths + 1e-7)).clamp(max=1.0)
    data[rows] = data[rows] * scale
    return weight


def _inclusive_range(start: float, end: float, step: float = 1, kind: int | None = None, form: object = None,
                     place: device | None = None, pinned: object = None) -> Tensor:  # fmt: skip
    """Return the old `range`, which includes the end."""
    chosen = None if kind is None else dtype_of_number(kind)
    made = aten.arange(start, end + (step if step * (int((end - start) / step)) == end - start else 0), step, dtype=chosen)
    return made if kind is not None else made.float()


def _register_ranges() -> None:
    options = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    declare_operator(f"aten::range.step(Scalar start, Scalar end, Scalar step=1, {options}) -> Tensor", _inclusive_range)
    declare_operator(f"aten::range(Scalar start, Scalar end, {options}) -> Tensor",
                      lambda start, end, *rest: _inclusive_range(start, end, 1, *rest))  # fmt: skip
    declare_operator("aten::_dim_arange(Tensor like, int dim) -> Tensor", lambda like, dim: aten.arange(like.size(dim)))


def _register_single_operators() -> None:
    """Register the operators that belong to none of the other groups."""
    declare_operator("aten::_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor",
                      lambda self, shape: self.reshape(shape.tolist()))  # fmt: skip
    declare_operator("aten::nonzero_numpy(Tensor self) -> Tensor[]", lambda self: list(self.nonzero(as_tuple=True)))
    declare_operator("aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
                      "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)"
                      " -> Tensor", _stft)  # fmt: skip


def _stft(self: Tensor, n_fft: int, hop: int | None, length: int | None, window: Tensor | None, normalized: bool,
          onesided: bool | None, as_complex: bool | None, align: bool | None) -> Tensor:  # fmt: skip
    """Compute `stft` without centring. Unless complex results are requested, real and imaginary parts are the last dimension.
    """
    made = self.stft(n_fft, hop, length, window, center=False, normalized=normalized, onesided=onesided, return_complex=True)
    return made if as_complex else aten.view_as_real(made)


def _register_indexing() -> None:
    """Register indexing with lists that contain no None."""
    register = declare_operator
    register("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", aten.index.Tensor)
    register("aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
             aten.index_put)  # fmt: skip
    register("aten::index_put_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False)"
             " -> Tensor(a!)", aten.index_put_)  # fmt: skip
    register("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", aten.index.Tensor)
    register("aten::_infer_size(int[] a, int[] b) -> int[]", _broadcast)
    register("aten::broadcast_shapes(int[] a, int[] b) -> int[]", _broadcast)


def _broadcast(a: Sequence[int], b: Sequence[int]) -> list[int]:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    padded = [1] * (len(longer) - len(shorter)) + list(shorter)
    for own, other in zip(longer, padded, strict=True):
        if own != other and 1 not in (own, other):
            raise RuntimeError(f"the sizes {list(a)} and {list(b)} do not broadcast: {own} and {other} differ")
    return [other if own == 1 else own for own, other in zip(longer, padded, strict=True)]


def _register_arithmetic() -> None:
    register = declare_operator
    for name, method in (("div", "div"), ("divide", "div")):
        register(f"aten::{name}.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
                 lambda self, other, mode, method=method: getattr(self, method)(other, rounding_mode=mode))  # fmt: skip
        register(f"aten::{name}_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
                 lambda self, other, mode, method=method: getattr(self, f"{method}_")(other, rounding_mode=mode))  # fmt: skip
    register("prim::abs(Tensor x) -> Tensor", lambda x: x.abs())
    register("aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", lambda self, other: self << other)
    register("aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", lambda self, other: self >> other)
    register("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType", _promote_types)
    for overload, arguments in (("Scalar", "Tensor tensor, Scalar other"), ("Scalar_Tensor", "Scalar scalar, Tensor tensor"),
                                ("Scalar_Scalar", "Scalar scalar1, Scalar scalar2")):  # fmt: skip
        register(f"aten::result_type.{overload}({arguments}) -> ScalarType",
                 lambda a, b: dtype_number(result_type(a, b)))  # fmt: skip


def _promote_types(first: int, second: int) -> int:
    found: dtype = promote_types(dtype_of_number(first), dtype_of_number(second))
    return dtype_number(found)


def _register_queries_and_assertions() -> None:
    register = declare_operator
    for name in ("is_xla", "is_xpu", "is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_mkldnn", "is_mps", "is_nested", "is_ort"):
        register(f"prim::{name}(Tensor a) -> bool", lambda a: False)
    register("aten::is_coalesced(Tensor self) -> bool", lambda self: False)
    register("aten::is_autocast_enabled() -> bool", lambda: False)
    register("aten::is_autocast_cpu_enabled() -> bool", lambda: False)
    register("aten::output_nr(Tensor self) -> int", lambda self: self.output_nr)
    register("aten::_assert_async(Tensor self) -> ()", lambda self: _require(self, ""), has_side_effects=True)
    register("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", _require, has_side_effects=True)
    register("aten::wait(Future(t) self) -> t", lambda self: self.wait())
    register("aten::len.any(Any[] a) -> int", len)
    register("prim::RaiseException(str msg, str? cls=None) -> ()", _raise, has_side_effects=True)


def _require(self: Tensor, message: str) -> None:
    if not bool(self):
        raise RuntimeError(message or "Expected Tensor with single nonzero value, but got zero")


def _raise(message: str, python_class: str | None) -> None:
    raise JitException(message, python_class or "")


_register_conversions()
_register_in_place()
_register_convolutions()
_register_padding()
_register_embeddings()
_register_ranges()
_register_single_operators()
_register_indexing()
_register_arithmetic()
_register_queries_and_assertions()
