"""Sparse COO tensors: `sparse_coo_tensor`, conversions, products, and what gradients of embeddings need."""

from rushlight.sparse import compressed_operators, methods, operators
from rushlight.sparse.compressed import sparse_compressed_tensor, sparse_csc_tensor, sparse_csr_tensor
from rushlight.sparse.functions import addmm, mm, softmax, sparse_coo_tensor, sum  # noqa: A004

methods.install()

__all__ = [
    "addmm", "compressed_operators", "methods", "mm", "operators", "softmax", "sparse_compressed_tensor", "sparse_coo_tensor",
    "sparse_csc_tensor", "sparse_csr_tensor", "sum",
]  # fmt: skip
