"""Layers whose weights are fake-quantized in training."""

from rushlight.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from rushlight.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from rushlight.ao.nn.qat.modules.linear import Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
