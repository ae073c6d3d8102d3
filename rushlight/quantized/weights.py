"""8-bit weights as tensors, which linear layers accept in place of floats.

In: floats (rows, width). Out: `IntegerWeight`: integers with a scale for each row. Weights of fewer bits are `BlockTensor`s.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.dtype import bfloat16, dtype, float16, float32, float64, int8
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import make_wrapper_subclass
from rushlight.nn import functional
from rushlight.ops.packet import namespaces
from rushlight.quantized.wrapped import KEEPING, WrappedWeight, dense, rebuilt

aten = namespaces.namespace("aten")
KINDS = ("int8", "int8_dynamic")
_MULTIPLIED = (float32, bfloat16, float16)  # dtypes of inputs that are multiplied by the integers
_FLOATS = (*_MULTIPLIED, float64)
_EPS = 2.0**-23  # the smallest scale
_MIN_RANGE = 1e-5  # rows of activations with a smaller range are quantized as if they had this one


class IntegerWeight(WrappedWeight):
    """A weight (rows, width) as integers.

    `F.linear`, and so `nn.Linear`, multiplies by the integers: by `_weight_int8pack_mm` ("int8"), or by `_int_mm` with each row
    of the input rounded to 8 bits ("int8_dynamic"). Every other function gets the dequantized numbers, in `dtype`. It has no
    gradient; where the input needs one, products use floats.

    Args:
        integers: int8 (rows, width). Not copied.
        scales: (rows,), of `dtype`.
        kind: "int8" or "int8_dynamic".

    RuntimeError where they don't fit each other, ValueError for an unknown kind.
    """

    integers: Tensor
    scales: Tensor
    kind: str

    def __new__(cls, integers: Tensor, scales: Tensor, kind: str) -> IntegerWeight:
        _check_parts(integers, scales, kind)
        made = make_wrapper_subclass(cls, tuple(integers.shape), dtype=scales.dtype, device=integers.device)
        made.integers, made.scales, made.kind = integers, scales, kind
        return made

    @classmethod
    def quantize(cls, tensor: Tensor, kind: str) -> IntegerWeight:
        """Quantize a floating matrix. RuntimeError for another shape."""
        if kind not in KINDS:
            raise ValueError(f"IntegerWeight: kind is one of {KINDS}, got {kind!r}")
        if not tensor.is_floating_point() or tensor.dim() != 2:
            raise RuntimeError(
                f"IntegerWeight.quantize: expected a floating matrix, got {tensor.dtype} of shape {list(tensor.shape)}"
            )
        target, rows = tensor.dtype if tensor.dtype in _FLOATS else float32, tensor.detach().to(float32)
        scale = (rows.abs().amax(1, keepdim=True) / 127.5).clamp(min=_EPS)
        integers = (rows / scale).round().clamp(-128, 127).to(int8)
        return cls(integers, scale.reshape(-1).to(target), kind)

    def dequantize(self) -> Tensor:
        """Return the dequantized numbers, in `dtype`."""
        computed = float64 if self.dtype is float64 else float32
        return (self.integers.to(computed) * self.scales.to(computed).reshape(-1, 1)).to(self.dtype)

    def _parts(self) -> tuple[Tensor, Tensor, str]:
        return self.integers, self.scales, self.kind

    def _replace_content(self, other: IntegerWeight) -> None:
        self.integers, self.scales, self.kind = other._parts()


def rebuild_integer_weight(integers: Tensor, scales: Tensor, kind: str, is_parameter: bool) -> IntegerWeight:
    """Rebuild a saved tensor."""
    return rebuilt(IntegerWeight, (integers, scales, kind), is_parameter)


def _check_parts(integers: Tensor, scales: Tensor, kind: str) -> None:
    """Raise RuntimeError if the parts of a weight don't fit each other."""
    if kind not in KINDS:
        raise ValueError(f"IntegerWeight: kind is one of {KINDS}, got {kind!r}")
    if integers.dtype is not int8 or integers.dim() != 2:
        raise RuntimeError(f"IntegerWeight: {kind} has a matrix of torch.int8, got {integers.dtype} of {list(integers.shape)}")
    if scales.dtype not in _FLOATS or tuple(scales.shape) != (len(integers),):
        raise RuntimeError(
            f"IntegerWeight: expected {len(integers)} floating scales, got {scales.dtype} of shape {list(scales.shape)}"
        )


# Functions that multiply by the integers


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    wants_gradient = state.grad_enabled and (input.requires_grad or (bias is not None and bias.requires_grad))
    if (
        not isinstance(weight, IntegerWeight)
        or isinstance(input, IntegerWeight)
        or input.dtype not in _MULTIPLIED
        or wants_gradient
    ):
        return functional.linear.__wrapped__(*map(dense, (input, weight, bias)))
    made = _product(input.reshape(-1, input.shape[-1]), weight).reshape(*input.shape[:-1], weight.shape[0])
    return made if bias is None else made + bias


def _product(rows: Tensor, weight: IntegerWeight) -> Tensor:
    scales = weight.scales.to(rows.dtype)
    if weight.kind == "int8":
        return aten._weight_int8pack_mm.default(rows, weight.integers, scales)
    scale = rows.abs().amax(1, keepdim=True).to(float32).clamp(min=_MIN_RANGE) / 127
    rounded = (rows / scale).round().clamp(-127, 127).to(int8)
    sums = aten._int_mm.default(rounded, weight.integers.t())
    return (sums.to(float32) * scale * weight.scales.to(float32)).to(rows.dtype)


IntegerWeight._functions = {functional.linear: _linear, Tensor.dequantize: IntegerWeight.dequantize}

# Operators that keep the integers


def _to(self: IntegerWeight, *, dtype: dtype | None = None, device: Any = None, **options: Any) -> Tensor:
    if dtype is not None and dtype not in _FLOATS:
        return self.dequantize().to(dtype)
    integers = self.integers if device is None else self.integers.to(device)
    scales = self.scales.to(dtype or self.dtype)
    return IntegerWeight(integers, scales if device is None else scales.to(device), self.kind)


def _copy(self: IntegerWeight, source: Tensor, non_blocking: bool = False) -> IntegerWeight:
    if tuple(source.shape) != tuple(self.shape):
        raise RuntimeError(f"copy_: the sizes {tuple(self.shape)} and {tuple(source.shape)} must be the same")
    if not isinstance(source, IntegerWeight) or source.kind != self.kind:
        source = IntegerWeight.quantize(dense(source), self.kind)
    self.integers.copy_(source.integers)
    self.scales.copy_(source.scales)
    return self


IntegerWeight._operators = {**KEEPING, aten._to_copy.default: _to, aten.copy_.default: _copy}
IntegerWeight._rebuild = staticmethod(rebuild_integer_weight)
