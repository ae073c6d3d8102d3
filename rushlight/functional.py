"""`torch.functional`: functions that PyTorch defines in Python, under the module in which it has them."""

from rushlight.ops.distinct import unique, unique_consecutive
from rushlight.ops.functional import broadcast_shapes, broadcast_tensors, einsum
from rushlight.ops.functional_linalg import (
    block_diag,
    cartesian_prod,
    cdist,
    chain_matmul,
    lu,
    norm,
    pca_lowrank,
    svd_lowrank,
    tensordot,
)
from rushlight.ops.functional_views import atleast_1d, atleast_2d, atleast_3d, meshgrid

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "einsum", "lu", "meshgrid", "norm", "pca_lowrank", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive",
]  # fmt: skip
