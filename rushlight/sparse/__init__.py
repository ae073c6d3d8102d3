"""Sparse tensors, COO, CSR and CSC: construction, conversions, products, and gradients of embeddings."""

from rushlight.sparse import compressed_operators, methods, operators
from rushlight.sparse.compressed import sparse_compressed_tensor, sparse_csc_tensor, sparse_csr_tensor
from rushlight.sparse.functions import addmm, log_softmax, mm, sampled_addmm, softmax, sparse_coo_tensor, spdiags, sum  # noqa: A004
from rushlight.sparse.invariants import check_sparse_tensor_invariants
from rushlight.sparse.legacy import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

methods.install()

__all__ = [
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor",
    "ShortTensor", "addmm", "check_sparse_tensor_invariants", "compressed_operators", "log_softmax", "methods", "mm",
    "operators", "sampled_addmm", "softmax", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
    "sparse_csr_tensor", "spdiags", "sum",
]  # fmt: skip
