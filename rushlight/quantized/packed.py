"""Packed weights for the operators, and their serialized state in archives.

In: a quantized weight with its bias and settings, or the state that an archive has. Out: objects with the weight's integers as
float32, by which sums of products of bytes are exact, and with everything needed to write the state again. Each `class_name` is
torch's, below `__torch__.torch.classes`; `state_types` are the possible types of the state in archives, newest first, as schema
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from rushlight.core.dtype import float16, float32, int16, qint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.layout import is_quantized, quantizer_of
from rushlight.quantized.native import FLOAT, LayerWeight, layer, pack
from rushlight.quantized.quantizer import ChannelQuantizer, TensorQuantizer

MAX_SUM_LENGTH = 32768  # at most this many products of two bytes stay below 2^31


class PackedError(RuntimeError):
    """The state of packed weights is malformed."""


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise PackedError(problem)


def _check_bias(bias: Tensor | None, channels: int, name: str) -> None:
    _require(bias is None or isinstance(bias, Tensor), f"{name}: the bias must be a tensor or None")
    if bias is not None and (bias.dtype is not float32 or tuple(bias.shape) != (channels,)):
        raise RuntimeError(f"{name}: expected a float32 bias of {channels} elements, got {bias.dtype} of {list(bias.shape)}")


def _check_weight(weight: Tensor, dims: int, axis: int, name: str) -> None:
    _require(isinstance(weight, Tensor) and is_quantized(weight), f"{name}: the weight must be a quantized tensor")
    if weight.dtype is not qint8 or weight.dim() != dims:
        raise RuntimeError(f"{name}: expected a qint8 weight of {dims} dimensions, got {weight.dtype} of {weight.dim()}")
    held = quantizer_of(weight)
    if isinstance(held, ChannelQuantizer) and (held.axis != axis or held.zero_points.dtype.kind == "f"):
        raise RuntimeError(f"{name}: scales per channel must lie along dimension {axis}, with integers for zero points")


class GraphConstants:
    """Base of packed weights. Captured graphs hold tensors derived from the weight as constants, each created once. `derived`
    computes the elements of such a tensor from its name and numbers."""

    def derived(self, name: str, *numbers: float) -> np.ndarray:
        """Return the elements of the derived tensor `name`."""
        raise NotImplementedError

    @cached_property
    def constants(self) -> dict[tuple, Tensor]:
        """The derived tensors so far, by the arguments of `constant`."""
        return {}

    def constant(self, *recipe: str | float) -> Tensor:
        """Return the derived tensor of this name and these numbers; each call returns the same object."""
        found = self.constants.get(recipe)
        if found is None:
            made = tensor_from_array(np.array(self.derived(*recipe), order="C"))
            found = self.constants.setdefault(recipe, made)
        return found


@dataclass(eq=False)
class PackedWeight(GraphConstants):
    """A qint8 weight (channels, ...) and its float32 bias, or None."""

    weight: Tensor
    bias: Tensor | None

    def less_zero_points(self) -> np.ndarray:
        """Return the weight's integers minus their zero points, float32."""
        return dequantized_by_one(self.weight._impl.array, quantizer_of(self.weight))

    @cached_property
    def integers(self) -> np.ndarray:
        """The same, cached for products without a kernel."""
        return self.less_zero_points()

    @cached_property
    def scales(self) -> np.ndarray:
        """The scale, or that of each channel; float32."""
        held = quantizer_of(self.weight)
        return np.asarray(held.scales if isinstance(held, ChannelQuantizer) else held.scale, np.float32)

    @cached_property
    def bias_array(self) -> np.ndarray | None:
        """The bias."""
        return None if self.bias is None else self.bias.detach()._impl.array

    @property
    def rows(self) -> tuple[np.ndarray, tuple[int, ...]] | None:
        """The integers as a weight (outputs, channels / groups, height, width), and the settings of `native.LayerWeight`; None
        for unsupported layers."""
        return None

    @cached_property
    def native(self) -> LayerWeight | None:
        """The weight for native kernels, if they support it."""
        return None if self.rows is None else pack(*self.rows)

    @cached_property
    def geometry(self) -> tuple[list[int], list[int], list[int], int] | None:
        """Strides, paddings and dilations of height and width, and groups, for captured graphs; None where the weight needs
        more than a byte, sums more than 31 bits, or the layer is unsupported."""
        if self.rows is None:
            return None
        integers, settings = self.rows
        if not integers.size or integers[0].size > MAX_SUM_LENGTH or integers.min() < -128 or integers.max() > 127:
            return None
        return *(list(settings[start : start + 2]) for start in (2, 4, 6)), settings[8]

    def derived(self, name: str, *numbers: float) -> np.ndarray:
        """Return the constants of a layer in captured graphs: "weight", int8 (outputs, height, width, channels / groups); the
        "bias" and the "factor" of sums for an input scale and a result scale; "plain bias" and "scale" for float32 results."""
        if name == "weight":
            return self.rows[0].transpose(0, 2, 3, 1).astype(np.int8)
        made = self.rescaling(*numbers) if numbers else self.scaling(1.0)
        return made[0 if name.endswith("bias") else 1]

    def rescaling(self, input_scale: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """For results with a scale, return the bias in quanta of the sums, and the factor of the sums; float32, one per
        output."""
        if self._rescaling is None or self._rescaling[0] != (input_scale, scale):
            quantum = np.float32(input_scale) * self.scales
            bias = np.float32(0) if self.bias_array is None else self.bias_array / quantum
            factors = quantum / np.float32(scale)
            self._rescaling = (input_scale, scale), (self._broadcast_to_outputs(bias), self._broadcast_to_outputs(factors))
        return self._rescaling[1]

    _rescaling: ClassVar[tuple | None] = None  # each instance caches its last call, because scales seldom change

    def scaling(self, input_scale: float) -> tuple[np.ndarray, np.ndarray]:
        """For float32 results, return the bias and the factor of the sums, one per output."""
        return self._bias_of_outputs, self._broadcast_to_outputs(np.float32(input_scale) * self.scales)

    @cached_property
    def _bias_of_outputs(self) -> np.ndarray:
        return self._broadcast_to_outputs(np.float32(0) if self.bias_array is None else self.bias_array)

    def applied(
        self, x: np.ndarray, sizes: Sequence[int], kind: np.dtype, held: TensorQuantizer, target: TensorQuantizer | None,
        relu: bool,
    ) -> np.ndarray | None:  # fmt: skip
        """Apply the layer to bytes (batch, height, width, channels) of `held`: (batch, *sizes, outputs) as bytes `kind` of
        `target`, or float32 without one. None if no kernel supports it."""
        if self.native is None:
            return None
        if target is None:
            return layer(x, self.native, sizes, FLOAT, *self.scaling(held.scale), held.zero_point, 0, relu)
        numbers = self.rescaling(held.scale, target.scale)
        return layer(x, self.native, sizes, kind, *numbers, held.zero_point, target.zero_point, relu)

    def _broadcast_to_outputs(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(values, (self.weight.size(0),)), np.float32)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """Return the weight and the bias."""
        return self.weight, self.bias

    def exact_parts(self, reach: int) -> list[tuple[slice, Tensor]]:
        """Return ranges of the weight's second dimension, and the integers of each range, row-major. Within a range, float32
        sums of products with integers up to `reach` are exact."""
        found = self._parts.get(reach)
        if found is None:
            ranges = self._exact_ranges(reach)
            is_all = len(ranges) == 1
            parts = (self.integers if is_all else np.ascontiguousarray(self.integers[:, each]) for each in ranges)
            tensors = [tensor_from_array(each, float32) for each in parts]
            found = self._parts[reach] = list(zip(ranges, tensors, strict=True))
        return found

    @cached_property
    def _parts(self) -> dict[int, list[tuple[slice, Tensor]]]:
        return {}

    def _exact_ranges(self, reach: int) -> list[slice]:
        most, totals = ((1 << 24) - 1) // max(reach, 1), self._running_sums
        ranges, start, before = [], 0, np.zeros((len(totals), 1), np.int64)
        while start < totals.shape[1]:
            fits = (totals[:, start:] - before).max(0, initial=0) <= most
            count = len(fits) if fits.all() else max(int(fits.argmin()), 1)
            ranges.append(slice(start, start + count))
            start += count
            before = totals[:, start - 1 : start].astype(np.int64)
        return ranges or [slice(0, 0)]

    @property
    def _running_sums(self) -> np.ndarray:
        """Cumulative sums of the integers' magnitudes along the second dimension, for each index of the first."""
        flat = np.abs(self.integers).reshape(*self.integers.shape[:2], -1)
        return flat.sum(2, dtype=np.int64).cumsum(1)


def dequantized_by_one(integers: np.ndarray, held: object) -> np.ndarray:
    """Return integers minus their zero points, float32."""
    if isinstance(held, ChannelQuantizer):
        shape = [1] * integers.ndim
        shape[held.axis] = -1
        return integers.astype(np.float32) - held.zero_points.astype(np.float32).reshape(shape)
    return integers.astype(np.float32) - np.float32(held.zero_point)


@dataclass(eq=False)
class LinearPackedParams(PackedWeight):
    """The weight (out features, in features) of a linear layer: qint8, or float32 numbers that were rounded to float16."""

    class_name = "quantized.LinearPackedParamsBase"
    state_types = ("(Tensor, Tensor?)",)

    def __post_init__(self) -> None:
        _require(isinstance(self.weight, Tensor), "a packed linear layer has a tensor as its weight")
        if self.is_float16:
            limit = np.float32(65504)
            halves = np.clip(self.weight.detach().to(float32)._impl.array, -limit, limit).astype(np.float16)
            self.weight = tensor_from_array(halves.astype(np.float32), float32)
            if self.weight.dim() != 2:
                raise RuntimeError(f"linear: expected a weight of 2 dimensions, got {self.weight.dim()}")
        else:
            _check_weight(self.weight, 2, 0, "linear")
        _check_bias(self.bias, self.weight.size(0), "linear")

    @property
    def rows(self) -> tuple[np.ndarray, tuple[int, ...]] | None:
        return None if self.is_float16 else (self.less_zero_points()[:, :, None, None], (1, 1, 1, 1, 0, 0, 1, 1, 1))

    def derived(self, name: str, *numbers: float) -> np.ndarray:
        """Compute, besides the base class's constants, "halves", the weight rounded to float16, and "bias of halves", both
        float32."""
        if name == "halves":
            return self.weight.detach()._impl.array
        if name == "bias of halves":
            return np.zeros(self.weight.size(0), np.float32) if self.bias_array is None else self.bias_array
        return super().derived(name, *numbers)

    @property
    def is_float16(self) -> bool:
        """Whether the weight is rounded to float16, and not quantized."""
        return self.weight.dtype in (float16, float32)

    def state(self) -> tuple:
        """Return the state for an archive."""
        return self.unpack()

    @classmethod
    def of_state(cls, state: object) -> LinearPackedParams:
        """Return the layer from an archive's state; PackedError where it is malformed."""
        _require(isinstance(state, tuple) and len(state) == 2, "the state of a packed linear layer is a weight and a bias")
        return cls(*state)


@dataclass(eq=False)
class ConvPackedParams(PackedWeight):
    """The weight (channels out, channels in / groups, ...) of a convolution, and its settings, one int per dimension.

    A transposed one has the weight (channels in, channels out / groups, ...). 1-D convolutions are stored as 2-D with a first
    size of 1.
    """

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int
    output_padding: list[int] = field(default_factory=list)
    transpose: bool = False

    rank = 2
    class_name = "quantized.Conv2dPackedParamsBase"
    state_types = (
        "(str, Tensor[], Tensor?[])", "(int, int[], Tensor?[])", "(Tensor, Tensor?, Tensor[], Tensor[], Tensor[], Tensor)",
    )  # fmt: skip

    def __post_init__(self) -> None:
        self.output_padding = self.output_padding or [0] * self.rank
        name = f"conv{self.rank}d"
        _check_weight(self.weight, self.rank + 2, 1 if self.transpose else 0, name)
        settings = (self.stride, self.padding, self.dilation, self.output_padding)
        if any(len(each) != self.rank for each in settings):
            raise RuntimeError(f"{name}: stride, padding, dilation and output padding must have {self.rank} numbers each")
        if self.groups < 1 or min(self.stride) < 1 or min(self.dilation) < 1 or min(*self.padding, *self.output_padding) < 0:
            raise RuntimeError(f"{name}: stride, dilation and groups must be at least 1, paddings at least 0")
        _check_bias(self.bias, self.channels, name)

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return self.weight.size(1) * self.groups if self.transpose else self.weight.size(0)

    @property
    def rows(self) -> tuple[np.ndarray, tuple[int, ...]] | None:
        if self.transpose or self.rank != 2 or self.weight.size(0) % self.groups:
            return None
        settings = (*self.weight.shape[2:], *self.stride, *self.padding, *self.dilation, self.groups)
        return self.less_zero_points(), tuple(int(each) for each in settings)

    def state(self) -> tuple:
        """Return the state for an archive: a version, settings and weight, and the bias."""
        numbers = (*self.stride, *self.padding, *self.dilation, *self.output_padding)
        settings = np.array([self.rank, *numbers, self.groups, int(self.transpose)], np.int16)
        return ("2", [tensor_from_array(settings, int16), self.weight], [self.bias])

    @classmethod
    def of_state(cls, state: object) -> ConvPackedParams:
        """Return the convolution from an archive's state, of any version; PackedError where it is malformed."""
        _require(isinstance(state, tuple) and len(state) > 1, "the state of a packed convolution is a tuple")
        if isinstance(state[0], Tensor):
            return cls._of_first_version(state)
        if state[0] == "2":
            _require(len(state) == 3 and len(state[1]) == 2 and len(state[2]) == 1, "a packed convolution has 3 tensors")
            return cls._of_numbers(_read_numbers(state[1][0]), state[1][1], state[2][0])
        _require(state[0] in (3, "3"), f"the state of a packed convolution has the unknown version {str(state[0])[:20]!r}")
        _require(len(state) == 3 and len(state[2]) == 3, "the state of a packed convolution has a list of 3 tensors")
        return cls._of_numbers(list(state[1]), state[2][1], state[2][2])

    @classmethod
    def _of_first_version(cls, state: tuple) -> ConvPackedParams:
        """Read a state of the first version: weight, bias, a list of tensors for stride, padding and dilation, and a tensor for
        groups."""
        _require(len(state) == 6, "the state of a packed convolution of the first version has 6 parts")
        weight, bias, stride, padding, dilation, groups = state
        parts = [[number for tensor in each for number in _read_numbers(tensor)] for each in (stride, padding, dilation)]
        return cls(weight, bias, *parts, _read_numbers(groups)[0])

    @classmethod
    def _of_numbers(cls, numbers: list[int], weight: Tensor, bias: Tensor | None) -> ConvPackedParams:
        count = numbers[0] if numbers else 0
        _require(1 <= count <= 3 and len(numbers) == 4 * count + 3, "the settings of a packed convolution are malformed")
        parts = [list(numbers[1 + start : 1 + start + count]) for start in range(0, 4 * count, count)]
        groups, flags = numbers[-2:]
        return cls(weight, bias, *parts[:3], groups, parts[3], bool(flags & 1))


def _read_numbers(tensor: object) -> list[int]:
    _require(isinstance(tensor, Tensor) and tensor.dim() < 2 and tensor.dtype.is_integral, "settings must be a tensor of ints")
    return [int(each) for each in tensor.reshape(-1).tolist()]


class Conv3dPackedParams(ConvPackedParams):
    """The weight of a convolution of three dimensions, and its settings."""

    rank = 3
    class_name = "quantized.Conv3dPackedParamsBase"


@dataclass(eq=False)
class EmbeddingPackedParams(GraphConstants):
    """The table (rows, columns) of an embedding: quint8 or quint4x2, with a float32 scale and zero point per row."""

    weight: Tensor

    class_name = "quantized.EmbeddingPackedParamsBase"
    state_types = ("(int, Tensor[], float[], int[])",)

    def __post_init__(self) -> None:
        _require(isinstance(self.weight, Tensor) and is_quantized(self.weight), "the table must be a quantized tensor")
        held = quantizer_of(self.weight)
        if self.weight.dim() != 2 or not isinstance(held, ChannelQuantizer) or held.axis != 0:
            raise RuntimeError(
                "embedding: expected a table of 2 dimensions with a scale for each row, got "
                f"{self.weight.dim()} dimensions, quantized by {held.scheme}"
            )

    def derived(self, name: str) -> np.ndarray:
        """Return the "table" of integers, or the "numbers" (factor and offset) of its rows, float32."""
        if name == "table":
            return self.weight._impl.array
        return self.numbers()

    def numbers(self) -> np.ndarray:
        """Return factor and offset of each row, float32. Rows of 4 bits keep them in float16, as ATen's packed tables do."""
        held = quantizer_of(self.weight)
        scales = np.asarray(held.scales, np.float32)
        made = np.stack([scales, -held.zero_points.astype(np.float32) * scales], 1)
        with np.errstate(over="ignore"):
            return made if self.bit_rate == 8 else made.astype(np.float16).astype(np.float32)

    @property
    def bit_rate(self) -> int:
        """The bits per element."""
        return {"quint4x2": 4, "quint2x4": 2}.get(self.weight.dtype.name, 8)

    def unpack(self) -> Tensor:
        """Return the table."""
        return self.weight

    def state(self) -> tuple:
        """Return the state for an archive."""
        return (1, [self.weight], [], [self.bit_rate])

    @classmethod
    def of_state(cls, state: object) -> EmbeddingPackedParams:
        """Return the table from an archive's state; PackedError where it is malformed."""
        is_known = isinstance(state, tuple) and len(state) == 4 and state[0] == 1 and len(state[1]) == 1
        _require(is_known, "the state of a packed embedding is of an unknown version")
        return cls(state[1][0])


@dataclass(eq=False)
class CellParams:
    """The weights of a recurrent step: packed linear layers, with biases, for the input and the state. `kind`:
    "quantized_dynamic", or "quantized_fp16" for float16 weights."""

    kind: str
    input_layer: LinearPackedParams
    state_layer: LinearPackedParams
    input_bias: Tensor | None = None
    state_bias: Tensor | None = None
    reduce_range: bool = False

    class_name = "rnn.CellParamsBase"
    state_types = ("(str, Tensor[], float[], int[], __torch__.torch.classes.quantized.LinearPackedParamsBase[])",)

    def state(self) -> tuple:
        """Return the state for an archive."""
        is_dynamic = self.kind == "quantized_dynamic"
        biases, flags = ([self.input_bias, self.state_bias], [int(self.reduce_range)]) if is_dynamic else ([], [])
        return (self.kind, biases, [], flags, [self.input_layer, self.state_layer])

    @classmethod
    def of_state(cls, state: object) -> CellParams:
        """Return the cell from an archive's state; PackedError where it is malformed or of an unsupported kind."""
        _require(isinstance(state, tuple) and len(state) == 5, "the state of a cell has 5 parts")
        kind, biases, _, flags, layers = state
        _require(kind in ("quantized_dynamic", "quantized_fp16"), f"cells of kind {str(kind)[:40]!r} are not supported")
        _require(_is_list_of(layers, LinearPackedParams, 2), "the state of a cell has two packed linear layers")
        if kind == "quantized_fp16":
            return cls(kind, *layers)
        _require(_is_list_of(biases, Tensor, 2), "the state of a cell has two biases")
        return cls(kind, *layers, *biases, bool(flags and flags[0]))


def _is_list_of(values: Sequence, kind: type, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(isinstance(each, kind) for each in values)


CLASSES = {
    each.class_name: each
    for each in (LinearPackedParams, ConvPackedParams, Conv3dPackedParams, EmbeddingPackedParams, CellParams)
}
