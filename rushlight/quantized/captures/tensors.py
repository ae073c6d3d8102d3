"""Quantized tensors in captured graphs, and the registration of rules that decompose their operators.

In: calls that a capture meets. Out: calls of `rushlight::byte_layer`, `rushlight::quantize_bytes` and of operators of aten,
whose results equal the eager kernels' integers. Scales and zero points are constants of the graph, as 0-dim tensors, so that
layers which differ only in them share a kernel; for dynamic layers the graph computes them.

An operator without a rule is not captured; neither are 32-bit integers, activations with a scale per channel, and graphs with
quantized inputs or outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import dtype, float32, int8, int32, qint8, quint8, uint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.wrapper_subclasses import PYTHON_BIT, disabled_torch_dispatch, make_wrapper_subclass
from rushlight.ops.capture_rules import CAPTURE_RULES
from rushlight.ops.modes import SuspendModes
from rushlight.ops.packet import namespaces
from rushlight.quantized.creation import check_zero_point
from rushlight.quantized.layout import QUANTIZED_BIT
from rushlight.quantized.packed import GraphConstants
from rushlight.quantized.quantizer import TensorQuantizer

own = namespaces.namespace("rushlight")
PLAIN = {quint8: uint8, qint8: int8}


class CapturedQuantized(Tensor):
    """A quantized tensor with one scale during capture: its integers, a tensor of the graph, and its quantizer."""

    integers: Tensor
    quantizer: TensorQuantizer

    def __new__(cls, integers: Tensor, kind: dtype, quantizer: TensorQuantizer) -> CapturedQuantized:
        made = make_wrapper_subclass(cls, integers.shape, integers.stride(), dtype=kind)
        made._impl.fake = True
        # With these keys, composites that have a quantized kernel reach `__torch_dispatch__` undecomposed.
        made._impl.key_set = QUANTIZED_BIT | PYTHON_BIT
        made.integers, made.quantizer = integers, quantizer
        return made

    def __init__(self, *parts: object) -> None:
        pass

    __torch_function__ = classmethod(disabled_torch_dispatch)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{func} of quantized tensors has no form in captured graphs")

    def with_integers(self, integers: Tensor) -> CapturedQuantized:
        """Return other integers with the same quantizer."""
        return CapturedQuantized(integers, self.dtype, self.quantizer)

    def shifted(self) -> Tensor:
        """Return the integers minus the zero point, int32."""
        return self.integers.to(int32) - zero_of(self.quantizer)

    def numbers(self) -> Tensor:
        """Return the dequantized numbers, float32."""
        return own.rounded_mul(self.shifted().to(float32), constant(np.float32(self.quantizer.scale)))

    def numbers_rounded_once(self) -> Tensor:
        """Return the dequantized numbers as `dequantize_rounding_once` does."""
        factor = np.float32(self.quantizer.scale)
        offset = -(factor * np.float32(self.quantizer.zero_point))
        return own.multiply_add(self.integers.to(float32), constant(factor), constant(offset))


RULES: dict[str, Callable] = {}  # by operator name


def install() -> None:
    """Register the rules with captures, once all operators are defined."""
    CAPTURE_RULES.update((operator_named(name), rule) for name, rule in RULES.items())


def operator_named(name: str) -> Callable:
    """Return the overload or packet of an operator's name, such as `quantized::add` or `aten::max_pool2d`."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(namespaces.namespace(namespace), packet), overload or "default")


def rule(*names: str) -> Callable:
    """Register a function as the rule of operators."""

    def decorate(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return decorate


def of_quantized(*names: str) -> Callable:
    """Register a function of a quantized tensor as a rule; calls whose first argument is another tensor are recorded
    unchanged."""

    def decorate(function: Callable) -> Callable:
        def checked(self, *args, **kwargs):
            return function(self, *args, **kwargs) if isinstance(self, CapturedQuantized) else NotImplemented

        rule(*names)(checked)
        return function

    return decorate


def require_captured(value: Tensor, name: str) -> CapturedQuantized:
    """Return a quantized operand; NotImplementedError for one that the capture did not make."""
    if not isinstance(value, CapturedQuantized):
        raise NotImplementedError(f"{name} of a quantized tensor from outside the captured graph")
    return value


def constant(value: np.ndarray | np.generic) -> Tensor:
    """Return a tensor that the graph holds as a constant."""
    with SuspendModes():
        return tensor_from_array(np.array(value, order="C"))


def zero_of(quantizer: TensorQuantizer) -> Tensor:
    """Return the zero point as a constant, int32."""
    return constant(np.int32(quantizer.zero_point))


def rounded(
    values: Tensor, factor: Tensor | float, kind: dtype, target: TensorQuantizer, rounds_first: bool = False
) -> Tensor:  # fmt: skip
    """Multiply float32 numbers by a factor, add the zero point, and round to integers; `rounds_first` rounds before adding the
    zero point."""
    check_zero_point(target.zero_point, kind, "quantize_tensor_per_tensor_affine")
    by = factor if isinstance(factor, Tensor) else constant(np.float32(factor))
    return own.quantize_bytes(values, by, zero_of(target), PLAIN[kind], rounds_first)


def requantized(values: Tensor, factor: Tensor | float, kind: dtype, target: TensorQuantizer) -> CapturedQuantized:
    """Multiply float32 numbers by a factor, round, and add the zero point."""
    return CapturedQuantized(rounded(values, factor, kind, target, True), kind, target)


def target_of(scale: float, zero_point: int) -> TensorQuantizer:
    """Return the quantizer of an operator's result."""
    return TensorQuantizer(float(scale), int(zero_point))


def derived_from(packed: GraphConstants, *recipe: str | float) -> Tensor:
    """Return a tensor derived from packed weights (`GraphConstants.constant`)."""
    with SuspendModes():
        return packed.constant(*recipe)
