"""torchao's `quantize_`: replace the weights of a model's linear layers by low-bit tensors, in place.

`torch.ao.quantization.quantize_(model, Int8WeightOnlyConfig())`. The layers stay `nn.Linear`; their `weight` is a parameter of
class `IntegerWeight` or `BlockTensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rushlight.core.blocks import format_named
from rushlight.core.dtype import bfloat16, float16, float32
from rushlight.core.tensor import Tensor
from rushlight.nn import Embedding, Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.quantized.blocks import BlockTensor
from rushlight.quantized.weights import IntegerWeight

__all__ = [
    "BlockWeightOnlyConfig", "Int4WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "Int8WeightOnlyConfig",
    "int4_weight_only", "int8_dynamic_activation_int8_weight", "int8_weight_only", "quantize_",
]  # fmt: skip


GROUP_SIZES = (32, 64, 128, 256)  # the allowed group sizes of 4-bit weights


@dataclass(frozen=True)
class Int8WeightOnlyConfig:
    """8-bit weights with a scale for each row; products in floats."""

    def quantized(self, weight: Tensor) -> Tensor | None:
        """Return a weight in this form; None where that is impossible."""
        return IntegerWeight.quantize(weight, "int8")


@dataclass(frozen=True)
class Int8DynamicActivationInt8WeightConfig:
    """8-bit weights with a scale for each row, and activations quantized to 8 bits by each row's range."""

    def quantized(self, weight: Tensor) -> Tensor | None:
        """Return a weight in this form; None where that is impossible."""
        return IntegerWeight.quantize(weight, "int8_dynamic")


@dataclass(frozen=True)
class Int4WeightOnlyConfig:
    """4-bit weights with a scale and an offset for each group of `group_size` elements of a row: 32, 64, 128 or 256.

    Layers whose width is no multiple of the group size, or of 16, are unchanged, as in torchao.
    """

    group_size: int = 128

    def __post_init__(self) -> None:
        if self.group_size not in GROUP_SIZES:
            raise ValueError(f"group_size is one of {GROUP_SIZES}, got {self.group_size}")

    def quantized(self, weight: Tensor) -> Tensor | None:
        """Return a weight in this form; None where that is impossible."""
        rows, width = weight.shape
        return None if width % self.group_size or rows % 16 else BlockTensor.quantize(weight, f"int4_{self.group_size}")


@dataclass(frozen=True)
class BlockWeightOnlyConfig:
    """Block-quantized weights of 4 to 8 bits in GGUF's layouts: q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k.

    torchao has no such form. Layers whose width is no multiple of the block size are unchanged.
    """

    format: str = "q4_k"

    def __post_init__(self) -> None:
        format_named(self.format)

    def quantized(self, weight: Tensor) -> Tensor | None:
        """Return a weight in this form; None where that is impossible."""
        fills = weight.shape[-1] % format_named(self.format).elements == 0
        return BlockTensor.quantize(weight, self.format) if fills else None


Config = Int8WeightOnlyConfig | Int8DynamicActivationInt8WeightConfig | Int4WeightOnlyConfig | BlockWeightOnlyConfig


def int8_weight_only() -> Int8WeightOnlyConfig:
    """Return an older name of `Int8WeightOnlyConfig()`."""
    return Int8WeightOnlyConfig()


def int8_dynamic_activation_int8_weight() -> Int8DynamicActivationInt8WeightConfig:
    """Return an older name of `Int8DynamicActivationInt8WeightConfig()`."""
    return Int8DynamicActivationInt8WeightConfig()


def int4_weight_only(group_size: int = 128) -> Int4WeightOnlyConfig:
    """Return an older name of `Int4WeightOnlyConfig(group_size)`."""
    return Int4WeightOnlyConfig(group_size)


def quantize_(model: Module, config: Config, filter_fn: Callable[[Module, str], bool] | None = None) -> None:
    """Replace weights of a model by low-bit tensors, in place.

    Args:
        model: its linear layers are changed, those of subclasses, too.
        config: the form of the weights.
        filter_fn: (module, its dotted name) -> whether to change it, in place of "it is linear". It may choose embeddings for
            `BlockWeightOnlyConfig`, whose rows are then read as they lie.

    Weights of dtypes other than float32, bfloat16 and float16 are unchanged.

    TypeError for another config, and where `filter_fn` chooses a module without a matrix as its weight. A weight that two
    modules share is changed once, and stays shared.
    """
    if not isinstance(config, Config):
        raise TypeError(f"quantize_: expected a config such as Int8WeightOnlyConfig(), got {type(config).__name__}")
    chosen = filter_fn or (lambda module, name: isinstance(module, Linear))
    made: dict[int, Parameter] = {}
    for name, module in list(model.named_modules()):
        if chosen(module, name):
            _change(module, name, config, made)


def _change(module: Module, name: str, config: Config, made: dict[int, Parameter]) -> None:
    weight = getattr(module, "weight", None)
    if not isinstance(module, Linear | Embedding) or not isinstance(weight, Tensor):
        raise TypeError(f"quantize_: {name or 'the model'} is a {type(module).__name__}, and only linear layers and embeddings "
                        "have weights that can be changed")  # fmt: skip
    if isinstance(weight, IntegerWeight | BlockTensor):
        return
    if weight.dtype not in (float32, bfloat16, float16):
        return
    if id(weight) not in made:
        quantized = config.quantized(weight.detach())
        if quantized is None:
            return
        made[id(weight)] = Parameter(quantized, requires_grad=False)
        made[id(made[id(weight)])] = made[id(weight)]
    module.weight = made[id(weight)]
