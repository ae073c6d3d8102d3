"""`torch.nn.modules.sparse`: embedding layers, under the module in which PyTorch has them."""

from rushlight.nn.modules.embedding import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
