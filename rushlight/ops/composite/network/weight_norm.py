"""Weight normalisation (Salimans and Kingma 2016): a weight as a direction and a length."""

from __future__ import annotations

from rushlight.ops.registry import composite


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
def norm_except_dim(v, pow=2, dim=0):
    """Return the `pow`-norm over all dimensions but `dim`, which keep size 1; over all of them for -1."""
    if dim == -1:
        return v.norm(pow)
    others = [index for index in range(v.dim()) if index != dim % v.dim()]
    return v.norm(pow, others, True) if others else v.abs()


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
def weight_norm(v, g, dim=0):
    """Return `v` scaled to the norms `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


@composite("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
def weight_norm_interface(v, g, dim=0):
    norms = norm_except_dim(v, 2, dim)
    return v * (g / norms), norms
