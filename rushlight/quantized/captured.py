"""Quantized tensors in captured graphs: operators on them are recorded as operators on their integers, tensors of bytes.

In: calls that a capture meets. Out: calls of `rushlight::byte_layer`, `rushlight::quantize_bytes` and of operators of aten,
whose results are the integers that eager kernels give. Scales and zero points are constants of the graph, tensors without
dimensions, so that layers which differ in nothing else become one kernel; those of layers that quantize their input are
calculated in it.

An operator without a rule is not captured; neither are integers of 32 bits, scales per channel of activations, and graphs that
take or give quantized tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import dtype, float32, int8, int32, int64, qint8, quint8, uint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.wrapper_subclasses import PYTHON_BIT, disabled_torch_dispatch, make_wrapper_subclass
from rushlight.ops.capture_rules import CAPTURE_RULES
from rushlight.ops.modes import SuspendModes
from rushlight.ops.packet import namespaces
from rushlight.quantized.creation import check_zero_point
from rushlight.quantized.layout import QUANTIZED_BIT, make_quantized, one_scale
from rushlight.quantized.linear import unwrapped
from rushlight.quantized.packed import (
    CellParams,
    ConvPackedParams,
    EmbeddingPackedParams,
    GraphConstants,
    LinearPackedParams,
    PackedWeight,
)
from rushlight.quantized.quantizer import TensorQuantizer, inverse_of, limits
from rushlight.quantized.registration import aten

own = namespaces.namespace("rushlight")
_PLAIN = {quint8: uint8, qint8: int8}


class CapturedQuantized(Tensor):
    """A quantized tensor of one scale in a capture: its integers, which the graph has, and its quantizer."""

    integers: Tensor
    quantizer: TensorQuantizer

    def __new__(cls, integers: Tensor, kind: dtype, quantizer: TensorQuantizer) -> CapturedQuantized:
        made = make_wrapper_subclass(cls, integers.shape, integers.stride(), dtype=kind)
        made._impl.fake = True
        made._impl.key_set = QUANTIZED_BIT | PYTHON_BIT  # composites with a kernel for quantized tensors come here whole
        made.integers, made.quantizer = integers, quantizer
        return made

    def __init__(self, *parts: object) -> None:
        pass

    __torch_function__ = classmethod(disabled_torch_dispatch)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{func} of quantized tensors has no form in captured graphs")

    def with_integers(self, integers: Tensor) -> CapturedQuantized:
        """Other integers of the same quantizer."""
        return CapturedQuantized(integers, self.dtype, self.quantizer)

    def shifted(self) -> Tensor:
        """The integers less the zero point, int32."""
        return self.integers.to(int32) - _zero(self.quantizer)

    def numbers(self) -> Tensor:
        """The numbers that they stand for, float32."""
        return own.rounded_mul(self.shifted().to(float32), _constant(np.float32(self.quantizer.scale)))


_RULES: dict[str, Callable] = {}  # by the names of operators


def install() -> None:
    """Have captures follow the rules, once all operators are defined."""
    CAPTURE_RULES.update((_operator(name), rule) for name, rule in _RULES.items())


def _operator(name: str) -> Callable:
    """`quantized::add` or `aten::max_pool2d`."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(namespaces.namespace(namespace), packet), overload or "default")


def _rule(*names: str) -> Callable:
    """Make a function the rule of operators."""

    def decorate(function: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return decorate


def _of_quantized(*names: str) -> Callable:
    """The same for a function of a quantized tensor; calls with another tensor first are recorded as they are."""

    def decorate(function: Callable) -> Callable:
        def rule(self, *args, **kwargs):
            return function(self, *args, **kwargs) if isinstance(self, CapturedQuantized) else NotImplemented

        _rule(*names)(rule)
        return function

    return decorate


def _taken(value: Tensor, name: str) -> CapturedQuantized:
    if not isinstance(value, CapturedQuantized):
        raise NotImplementedError(f"{name} of a quantized tensor from outside the captured graph")
    return value


def _constant(value: np.ndarray | np.generic) -> Tensor:
    with SuspendModes():
        return tensor_from_array(np.array(value, order="C"))


def _zero(quantizer: TensorQuantizer) -> Tensor:
    return _constant(np.int32(quantizer.zero_point))


def _rounded(
    values: Tensor, factor: Tensor | float, kind: dtype, target: TensorQuantizer, rounds_first: bool = False
) -> Tensor:  # fmt: skip
    """float32 numbers times a factor, plus the zero point, as integers; rounded before that is added, if so."""
    check_zero_point(target.zero_point, kind, "quantize_tensor_per_tensor_affine")
    by = factor if isinstance(factor, Tensor) else _constant(np.float32(factor))
    return own.quantize_bytes(values, by, _zero(target), _PLAIN[kind], rounds_first)


def _made(values: Tensor, factor: Tensor | float, kind: dtype, target: TensorQuantizer) -> CapturedQuantized:
    """float32 numbers times a factor, rounded, plus the zero point."""
    return CapturedQuantized(_rounded(values, factor, kind, target, True), kind, target)


def _target(scale: float, zero_point: int) -> TensorQuantizer:
    return TensorQuantizer(float(scale), int(zero_point))


# Between floats and integers


@_rule("aten::quantize_per_tensor", "aten::quantize_per_tensor.tensor_qparams")
def quantize_per_tensor(self, scale, zero_point, dtype):
    if dtype not in _PLAIN or self.dtype is not float32:
        return NotImplemented
    quantizer = _target(*map(_number, (scale, zero_point)))
    return CapturedQuantized(_rounded(self, inverse_of(quantizer.scale), dtype, quantizer), dtype, quantizer)


def _number(value: Tensor | float) -> float:
    """A scale or a zero point. NotImplementedError for a tensor whose value is not known."""
    if not isinstance(value, Tensor):
        return value
    if value._impl.fake:
        raise NotImplementedError("quantize_per_tensor by a scale or a zero point that is calculated")
    with SuspendModes():
        return value.item()


@_of_quantized("aten::dequantize.self")
def dequantize(self):
    return self.numbers()


@_of_quantized("aten::int_repr")
def int_repr(self):
    return self.integers.clone()


@_of_quantized("aten::q_scale")
def q_scale(self):
    return self.quantizer.scale


@_of_quantized("aten::q_zero_point")
def q_zero_point(self):
    return self.quantizer.zero_point


# Layers


def _layer(packed: PackedWeight, images: Tensor, zero_point: Tensor) -> Tensor:
    """Images of bytes (batch, height, width, channels) through a layer: the sums, as float32."""
    with SuspendModes():
        geometry = packed.geometry
    if geometry is None:
        raise NotImplementedError("a layer whose weight is not of two dimensions, or needs more than a byte")
    return own.byte_layer(images, _derived(packed, "weight"), zero_point, *geometry).to(float32)


def _derived(packed: GraphConstants, *recipe: str | float) -> Tensor:
    with SuspendModes():
        return packed.constant(*recipe)


def _rounded_sums(
    packed: PackedWeight, images: Tensor, source: CapturedQuantized, target: TensorQuantizer, relu: bool
) -> CapturedQuantized:  # fmt: skip
    """The results of a layer with a scale and a zero point, (batch, height, width, channels)."""
    scales = source.quantizer.scale, target.scale
    made = _layer(packed, images, _zero(source.quantizer)) + _derived(packed, "bias", *scales)
    return _made(made.relu() if relu else made, _derived(packed, "factor", *scales), source.dtype, target)


def _scaled_sums(packed: PackedWeight, images: Tensor, scale: Tensor, zero_point: Tensor, relu: bool) -> Tensor:
    """The same in float32, for images whose scale is calculated."""
    sums = _layer(packed, images, zero_point)
    made = own.rounded_mul(sums, scale * _derived(packed, "scale")) + _derived(packed, "plain bias")
    return made.relu() if relu else made


def _quantized_input(x: Tensor, reduce_range: bool) -> tuple[Tensor, Tensor, Tensor]:
    """A float32 tensor as unsigned bytes, with their scale, float32, and zero point, int32."""
    if x.dtype is not float32 or isinstance(x, CapturedQuantized):
        raise NotImplementedError(f"a layer that quantizes its input, of {x.dtype}")
    scale, zero_point = own.choose_quantization(x, 127 if reduce_range else 255)
    return own.quantize_bytes(x, 1 / scale, zero_point, uint8), scale, zero_point


def _rows(x: Tensor) -> Tensor:
    """Rows (..., width) as one image of a pixel for each, (1, 1, rows, width)."""
    return x.reshape(1, 1, -1, x.shape[-1])


def _linear_weight(held: object, x: Tensor, name: str) -> LinearPackedParams:
    packed = unwrapped(held, LinearPackedParams, name)
    if x.dim() == 0 or x.shape[-1] != packed.weight.size(1):
        raise NotImplementedError(f"quantized::{name} of the shape {list(x.shape)}")
    return packed


def _define_linear(suffix: str, relu: bool) -> None:
    name = f"linear{suffix}"

    @_rule(f"quantized::{name}")
    def static(X, W_prepack, Y_scale_i, Y_zero_point_i):
        x, packed = _taken(X, name), _linear_weight(W_prepack, X, name)
        made = _rounded_sums(packed, _rows(x.integers), x, _target(Y_scale_i, Y_zero_point_i), relu)
        return made.with_integers(made.integers.reshape(*x.shape[:-1], made.shape[-1]))

    @_rule(f"quantized::{name}_dynamic", f"quantized::{name}_dynamic_fp16")
    def dynamic(X, W_prepack, reduce_range=False):
        return _product(X, _linear_weight(W_prepack, X, name), reduce_range, relu)


def _product(x: Tensor, packed: LinearPackedParams, reduce_range: bool, relu: bool = False) -> Tensor:
    """A float32 tensor through a layer, which quantizes it, or whose weight was rounded to float16."""
    if packed.is_float16:
        made = aten.linear(x, _derived(packed, "halves"), _derived(packed, "bias of halves"))
        return made.relu() if relu else made
    integers, scale, zero_point = _quantized_input(x, reduce_range)
    made = _scaled_sums(packed, _rows(integers), scale, zero_point, relu)
    return made.reshape(*x.shape[:-1], made.shape[-1])


def _last(images: Tensor) -> Tensor:
    """Images (batch, channels, ...) with channels last, of one dimension as of two."""
    return images.permute(0, 2, 3, 1) if images.dim() == 4 else images.permute(0, 2, 1).unsqueeze(1)


def _first(images: Tensor, rank: int) -> Tensor:
    """The reverse."""
    return images.permute(0, 3, 1, 2) if rank == 2 else images.squeeze(1).permute(0, 2, 1)


def _filters(held: object, x: Tensor, rank: int, name: str) -> ConvPackedParams:
    packed = unwrapped(held, ConvPackedParams, name)
    if packed.transpose or x.dim() != rank + 2 or x.shape[1] != packed.weight.size(1) * packed.groups:
        raise NotImplementedError(f"quantized::{name} of the shape {list(x.shape)}")
    return packed


def _define_convolution(rank: int, suffix: str) -> None:
    name, relu = f"conv{rank}d{suffix}", bool(suffix)

    def static(qx, packed_weight, output_scale, output_zero_point):
        x, packed = _taken(qx, name), _filters(packed_weight, qx, rank, name)
        made = _rounded_sums(packed, _last(x.integers), x, _target(output_scale, output_zero_point), relu)
        return made.with_integers(_first(made.integers, rank))

    def former(qx, weight, stride, padding, dilation, groups, output_scale, output_zero_point):
        return static(qx, weight, output_scale, output_zero_point)

    if rank == 1:
        _rule(f"quantized::{name}")(static)
    else:
        _rule(f"quantized::{name}.new")(static)
        _rule(f"quantized::{name}")(former)


def _define_dynamic_convolution(rank: int) -> None:
    name = f"conv{rank}d_dynamic"

    @_rule(f"quantized::{name}")
    def dynamic(qx, packed_weight, reduce_range=False):
        packed = _filters(packed_weight, qx, rank, name)
        integers, scale, zero_point = _quantized_input(qx, reduce_range)
        return _first(_scaled_sums(packed, _last(integers), scale, zero_point, False), rank)


for _suffix, _relu in (("", False), ("_relu", True)):
    _define_linear(_suffix, _relu)
    for _rank in (1, 2):
        _define_convolution(_rank, _suffix)
for _rank in (1, 2):
    _define_dynamic_convolution(_rank)


# Recurrent layers, whose steps are written out

_MOST_STEPS = 128  # a graph of more would take long to compile
State = tuple[Tensor, ...]


def _sigmoid(x: Tensor) -> Tensor:
    return ((x * 0.5).tanh() + 1.0) * 0.5


def _lstm_step(products: Tensor, state: State, held: Tensor) -> State:
    """One step, of the products with the input, the state, and its products: gates in the order input, forget, cell, output."""
    take, forget, new, show = (held + products).chunk(4, -1)
    memory = _sigmoid(forget) * state[1] + _sigmoid(take) * new.tanh()
    return _sigmoid(show) * memory.tanh(), memory


def _gru_step(products: Tensor, state: State, held: Tensor) -> State:
    """The same for gates in the order reset, update, new."""
    given, kept = products.chunk(3, -1), held.chunk(3, -1)
    reset, update = _sigmoid(given[0] + kept[0]), _sigmoid(given[1] + kept[1])
    new = (given[2] + kept[2] * reset).tanh()
    return ((state[0] - new) * update + new,)


def _run(x: Tensor, state: State, cell: CellParams, step: Callable, backwards: bool) -> tuple[Tensor, State]:
    """A layer in one direction over (time, batch, features): outputs of all steps, and the last state."""
    products, outputs = _product(x, cell.input_layer, cell.reduce_range), []
    times = range(x.shape[0])
    for time in reversed(times) if backwards else times:
        state = step(products[time], state, _product(state[0], cell.state_layer, cell.reduce_range))
        outputs.append(state[0])
    return aten.stack(outputs[::-1] if backwards else outputs), state


def _sequence(
    x: Tensor, states: Sequence[Tensor], params: Sequence, step: Callable, settings: tuple, batch_first: bool
) -> tuple[Tensor, ...]:  # fmt: skip
    """All layers: the last one's outputs, and the states (layers * directions, batch, hidden). Eager checks what is wrong."""
    layers, dropout, is_bidirectional = settings
    cells, directions = [unwrapped(each, CellParams, "a recurrent layer") for each in params], 1 + bool(is_bidirectional)
    fits = x.dim() == 3 and all(each.dim() == 3 and each.shape[0] == layers * directions for each in states)
    if not fits or dropout or len(cells) != layers * directions or any(each.dtype is not float32 for each in (x, *states)):
        raise NotImplementedError("a quantized recurrent layer with dropout, or of these arguments")
    x = x.transpose(0, 1) if batch_first else x
    if not 0 < x.shape[0] * len(cells) <= _MOST_STEPS:
        raise NotImplementedError(f"a quantized recurrent layer of more than {_MOST_STEPS} steps")
    finals = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            output, final = _run(x, tuple(each[place] for each in states), cells[place], step, direction == 1)
            outputs.append(output)
            finals.append(final)
        x = aten.cat(outputs, -1) if directions > 1 else outputs[0]
    made = x.transpose(0, 1) if batch_first else x
    return made, *(aten.stack(list(each)) for each in zip(*finals, strict=True))


@_rule("aten::quantized_lstm.input")
def quantized_lstm(
    input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, *, dtype=None, use_dynamic=False
):
    return _sequence(input, hx, params, _lstm_step, (num_layers, train and dropout, bidirectional), batch_first)


@_rule("aten::quantized_gru.input")
def quantized_gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    return _sequence(input, [hx], params, _gru_step, (num_layers, train and dropout, bidirectional), batch_first)


def _cell_step(input: Tensor, states: State, w_ih: object, w_hh: object, step: Callable) -> State:
    taking, holding = _linear_weight(w_ih, input, "cell"), _linear_weight(w_hh, states[0], "cell")
    return step(_product(input, taking, True), states, _product(states[0], holding, True))


@_rule("quantized::quantized_lstm_cell_dynamic")
def lstm_cell(input, hx, w_ih, w_hh, bias_ih, bias_hh):
    return _cell_step(input, tuple(hx), w_ih, w_hh, _lstm_step)


def _define_cell(name: str, step: Callable) -> None:
    @_rule(f"quantized::{name}")
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _cell_step(input, (hx,), w_ih, w_hh, step)[0]


_define_cell("quantized_gru_cell_dynamic", _gru_step)
_define_cell("quantized_rnn_relu_cell_dynamic", lambda products, state, held: ((held + products).relu(),))
_define_cell("quantized_rnn_tanh_cell_dynamic", lambda products, state, held: ((held + products).tanh(),))


# Sums, products and concatenations


def _define_pairs(suffix: str, relu: bool) -> None:
    def kept(values: Tensor) -> Tensor:
        return values.relu() if relu else values

    @_rule(f"quantized::add{suffix}")
    def add(qa, qb, scale, zero_point):
        a, b = _pair(qa, qb, "quantized::add")
        return _made(kept(a.numbers() + b.numbers()), inverse_of(scale), a.dtype, _target(scale, zero_point))

    @_rule(f"quantized::mul{suffix}")
    def mul(qa, qb, scale, zero_point):
        a, b = _pair(qa, qb, "quantized::mul")
        quantum = float(np.float32(a.quantizer.scale * b.quantizer.scale * (1 / scale)))
        return _made(kept((a.shifted() * b.shifted()).to(float32)), quantum, a.dtype, _target(scale, zero_point))

    @_rule(f"quantized::cat{suffix}")
    def cat(qx, dim, scale=None, zero_point=None):
        held = [_taken(each, "quantized::cat") for each in qx]
        first = held[0].quantizer
        target = TensorQuantizer(
            first.scale if scale is None else float(scale), first.zero_point if zero_point is None else int(zero_point)
        )
        return _concatenated(held, dim, target, relu)


for _suffix, _relu in (("", False), ("_relu", True)):
    _define_pairs(_suffix, _relu)


def _pair(qa: Tensor, qb: Tensor, name: str) -> tuple[CapturedQuantized, CapturedQuantized]:
    a, b = _taken(qa, name), _taken(qb, name)
    if a.dtype is not b.dtype:
        raise NotImplementedError(f"{name} of {a.dtype} and {b.dtype}")
    return a, b


def _concatenated(held: Sequence[CapturedQuantized], dim: int, target: TensorQuantizer, relu: bool) -> CapturedQuantized:
    kind, parts = held[0].dtype, []
    for each in held:
        if each.dtype is not kind:
            raise NotImplementedError(f"cat of {kind} and {each.dtype}")
        if each.quantizer == target and not relu:
            parts.append(each.integers)
        else:
            numbers = each.numbers().relu() if relu else each.numbers()
            parts.append(_rounded(numbers, inverse_of(target.scale), kind, target))
    return CapturedQuantized(aten.cat(parts, dim), kind, target)


@_rule("aten::cat")
def cat(tensors, dim=0):
    if not any(isinstance(each, CapturedQuantized) for each in tensors):
        return NotImplemented
    held = [_taken(each, "cat") for each in tensors]
    return _concatenated(held, dim, held[0].quantizer, False)


# Element by element


def _clipped(self: CapturedQuantized, low: float | None, high: float | None) -> CapturedQuantized:
    def integer(bound: float) -> int:
        return int(self.quantizer.quantize(np.full((), bound, np.float32), self.dtype))

    return self.with_integers(self.integers.clamp(*(None if bound is None else integer(bound) for bound in (low, high))))


@_of_quantized("aten::relu")
def relu(self):
    return _clipped(self, 0.0, None)


@_of_quantized("aten::relu6", "quantized::relu6")
def relu6(self, inplace=False):
    if inplace:
        raise NotImplementedError("quantized::relu6 in place")
    return _clipped(self, 0.0, 6.0)


@_of_quantized("aten::hardtanh", "aten::clamp", "quantized::clamp")
def clamp(self, min=None, max=None, *, min_val=None, max_val=None):
    return _clipped(self, min if min_val is None else min_val, max if max_val is None else max_val)


def _looked_up(op: Callable, self: CapturedQuantized, *args: object, **kwargs: object) -> CapturedQuantized:
    """A function of each element, from a table of its results for all integers."""
    low, high = limits(self.dtype)
    with SuspendModes():
        every = make_quantized(np.arange(low, high + 1).astype(self.dtype.numpy), self.dtype, self.quantizer)
        table = op(every, *args, **kwargs)
    places = self.integers.to(int64) - low if low else self.integers.to(int64)
    return CapturedQuantized(aten.index(_constant(table._impl.array), [places]), self.dtype, one_scale(table))


def _tabled(name: str) -> None:
    _of_quantized(name)(lambda self, *args, **kwargs: _looked_up(_operator(name), self, *args, **kwargs))


for _name in (
    "aten::sigmoid", "aten::tanh", "aten::hardsigmoid", "aten::leaky_relu", "aten::gelu", "aten::threshold",
    "quantized::threshold", "quantized::hardswish", "quantized::sigmoid", "quantized::elu", "quantized::celu",
    "quantized::add_scalar", "quantized::add_scalar_relu", "quantized::mul_scalar", "quantized::mul_scalar_relu",
    "quantized::add.Scalar", "quantized::add_relu.Scalar", "quantized::mul.Scalar", "quantized::mul_relu.Scalar",
):  # fmt: skip
    _tabled(_name)


@_of_quantized("quantized::leaky_relu")
def leaky_relu(self, negative_slope, inplace, output_scale, output_zero_point):
    return _looked_up(_operator("quantized::leaky_relu"), self, negative_slope, False, output_scale, output_zero_point)


# Pooling


def _define_maximum(*names: str) -> None:
    @_of_quantized(*names)
    def maximum(self, *args, **kwargs):
        made = aten.max_pool2d(self.integers.to(float32), *args, **kwargs)
        return self.with_integers(made.to(_PLAIN[self.dtype]))


_define_maximum("aten::max_pool2d", "aten::quantized_max_pool2d", "quantized::max_pool2d")


def _define_mean(name: str) -> None:
    general = getattr(aten, name)

    @_of_quantized(f"aten::{name}")
    def mean(self, *args, **kwargs):
        made = general(self.shifted().to(float32), *args, **kwargs)
        return self.with_integers(_rounded(made, 1.0, self.dtype, self.quantizer))


for _name in ("avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "avg_pool1d"):
    _define_mean(_name)


@_of_quantized("aten::mean.dim")
def mean(self, dim, keepdim=False, *, dtype=None):
    made = self.numbers().mean(dim, keepdim)
    return self.with_integers(_rounded(made, inverse_of(self.quantizer.scale), self.dtype, self.quantizer))


# Normalisation, which is calculated in float32: an integer may be off by one from the eager kernel's where it lies at a half


@_of_quantized("quantized::layer_norm")
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    made = aten.layer_norm(input.numbers(), normalized_shape, weight, bias, eps)
    return _made(made, inverse_of(output_scale), input.dtype, _target(output_scale, output_zero_point))


@_of_quantized("quantized::group_norm")
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    made = aten.group_norm(input.numbers(), num_groups, weight, bias, eps)
    return _made(made, inverse_of(output_scale), input.dtype, _target(output_scale, output_zero_point))


@_of_quantized("quantized::instance_norm")
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    made = aten.instance_norm(input.numbers(), weight, bias, None, None, True, 0.0, eps, False)
    return _made(made, inverse_of(output_scale), input.dtype, _target(output_scale, output_zero_point))


def _define_batch_norm(rank: str, suffix: str) -> None:
    @_of_quantized(f"quantized::batch_norm{rank}{suffix}")
    def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        made = aten.batch_norm(qx.numbers(), weight, bias, mean, var, False, 0.0, eps, False)
        return _made(
            made.relu() if suffix else made, inverse_of(output_scale), qx.dtype, _target(output_scale, output_zero_point)
        )  # fmt: skip


for _rank in ("", "1d", "2d"):
    for _suffix in ("", "_relu"):
        _define_batch_norm(_rank, _suffix)


# Tables


def _rows_of(packed: EmbeddingPackedParams, indices: Tensor) -> Tensor:
    """The dequantized rows of a table at indices."""
    found = aten.embedding(_derived(packed, "numbers"), indices)
    rows = aten.embedding(_derived(packed, "table"), indices).to(float32)
    return own.rounded_mul(rows, found[..., :1]) + found[..., 1:]


def _define_tables(bits: str) -> None:
    @_rule(f"quantized::embedding_{bits}")
    def embedding(weight, indices, pruned_weights=False):
        return _rows_of(unwrapped(weight, EmbeddingPackedParams, f"embedding_{bits}"), indices)

    @_rule(f"quantized::embedding_bag_{bits}")
    def bag(
        weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
        compressed_indices_mapping=None, include_last_offset=False,
    ):  # fmt: skip
        if pruned_weights or compressed_indices_mapping is not None or mode != 0 or indices.dim() != 2:
            raise NotImplementedError(f"quantized::embedding_bag_{bits} of bags that are not rows of indices")
        rows = _rows_of(unwrapped(weight, EmbeddingPackedParams, f"embedding_bag_{bits}"), indices)
        return (rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)).sum(1)


for _bits in ("byte", "4bit"):
    _define_tables(_bits)


# Places


def _moving(name: str) -> None:
    @_of_quantized(f"aten::{name}")
    def rule(self, *args, **kwargs):
        return self.with_integers(_operator(f"aten::{name}")(self.integers, *args, **kwargs))


for _name in (
    "view", "permute", "expand", "select.int", "slice.Tensor", "unsqueeze", "squeeze.dims", "detach", "alias", "clone", "flip",
    "roll", "repeat", "gather", "index.Tensor", "index_select", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d",
):  # fmt: skip
    _moving(_name)
