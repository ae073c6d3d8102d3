"""Sparse COO tensors: `sparse_coo_tensor`, conversions, products, and what gradients of embeddings need."""

from rushlight.sparse import methods, operators
from rushlight.sparse.functions import addmm, mm, softmax, sparse_coo_tensor, sum  # noqa: A004

methods.install()

__all__ = ["addmm", "methods", "mm", "operators", "softmax", "sparse_coo_tensor", "sum"]
