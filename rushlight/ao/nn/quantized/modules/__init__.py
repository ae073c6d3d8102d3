"""Layers from quantized tensors to quantized tensors."""

from rushlight.ao.nn.quantized.modules.activation import ELU, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from rushlight.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from rushlight.ao.nn.quantized.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.ao.nn.quantized.modules.dropout import Dropout
from rushlight.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from rushlight.ao.nn.quantized.modules.functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from rushlight.ao.nn.quantized.modules.linear import Linear
from rushlight.ao.nn.quantized.modules.normalization import (
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)
from rushlight.ao.nn.quantized.modules.stubs import DeQuantize, Quantize
from rushlight.nn.modules.pooling import MaxPool2d

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "DeQuantize", "Dropout", "ELU", "Embedding", "EmbeddingBag", "FXFloatFunctional", "FloatFunctional", "GroupNorm",
    "Hardswish", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "MaxPool2d",
    "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid", "Softmax",
]  # fmt: skip
