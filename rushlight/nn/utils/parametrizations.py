"""Predefined parametrizations: weight normalisation, spectral normalisation and orthogonal matrices."""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import register_parametrization
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_MAPS = ("matrix_exp", "cayley", "householder")


class _WeightNorm(Module):
    """A weight from its norms (original0) and directions (original1)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return aten._weight_norm.default(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Norms and directions of a weight."""
        return aten.norm_except_dim.default(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the weight's norms over all dimensions but `dim` (all of them for None) and its directions separately.

    (Salimans and Kingma 2016.) State dicts of the deprecated `torch.nn.utils.weight_norm` can be loaded.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict, prefix: str, *_: Any) -> None:
        for suffix, index in (("g", 0), ("v", 1)):
            former = f"{prefix}{name}_{suffix}"
            if former in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{index}"] = state_dict.pop(former)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iteration estimates in training (Miyato et al. 2018)."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, {weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = self._as_matrix(weight)
                left, right = (matrix.new_empty([size]).normal_(0, 1) for size in matrix.shape)
                self.register_buffer("_u", F.normalize(left, dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(right, dim=0, eps=eps))
                self._iterate(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    @no_grad()
    def _iterate(self, matrix: Tensor, count: int) -> None:
        for _ in range(count):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copy them: later iterations update them in place, and this graph saves them.
        left, right = self._u.clone(), self._v.clone()
        return weight / left.dot(matrix.mv(right))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself, assumed to be normalised already."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide the weight, as a matrix with the rows of dimension `dim`, by its largest singular value.

    `dim` defaults to the output's dimension. Raises ValueError if there is no such weight.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    """An orthogonal (or unitary) matrix from an unconstrained one, times a fixed `base` with trivialization."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        # `right_inverse`, which registering calls, overwrites it with the initial matrix.
        self.register_buffer("base", weight.detach() if use_trivialization else None)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        wide = rows < columns
        tall = X.mT if wide else X
        if self.orthogonal_map == "householder":
            lower = tall.tril(-1)
            scales = 2.0 / (1.0 + (lower * lower).sum([-2]))
            result = aten.linalg_householder_product.default(lower, scales) * tall.diagonal(0, -2, -1).int().unsqueeze(-2)
        else:
            result = self._from_skew(tall)
        if self.base is not None:
            result = self.base.matmul(result)
        return result.mT if wide else result

    def _from_skew(self, tall: Tensor) -> Tensor:
        rows, columns = tall.shape[-2:]
        lower = tall.tril()
        if rows != columns:
            lower = F.pad(lower, [0, rows - columns])
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            result = aten.linalg_matrix_exp.default(skew)
        else:
            identity = aten.eye.default(rows, dtype=skew.dtype, device=skew.device)
            result = aten.linalg_solve.default(identity + skew * -0.5, identity + skew * 0.5)
        return result.narrow(-1, 0, columns)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return the unconstrained matrix for an orthogonal one; NotImplementedError where none can be found."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if self.base is not None:
            self.base = _complete_to_square(tall)
            # Every map takes this point to the identity.
            unconstrained = Q.new_zeros(Q.shape)
            unconstrained.diagonal(0, -2, -1).fill_(-1.0)
            return unconstrained
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                "when use_trivialization=False."
            )
        factors, scales = aten.geqrf.default(tall)
        # Reflections with scale 0 are the identity; -1 on the diagonal marks them.
        diagonal = factors.diagonal(0, -2, -1)
        diagonal.copy_(aten.where.self(scales == 0, -diagonal.sign(), diagonal.sign()))
        return factors.mT if wide else factors


def _complete_to_square(tall: Tensor) -> Tensor:
    """Return a square orthogonal matrix whose first columns span those of `tall`, and equal them if they are orthonormal."""
    rows, columns = tall.shape[-2:]
    if rows != columns:
        more = tall.new_empty([*tall.shape[:-2], rows, rows - columns]).normal_()
        tall = aten.cat.default([tall, more], -1)
    elif _is_orthogonal(tall):
        return tall.clone()
    q, r = aten.linalg_qr.default(tall)
    return q * r.diagonal(0, -2, -1).sgn().unsqueeze(-2)


def _is_orthogonal(matrix: Tensor) -> bool:
    size = matrix.shape[-1]
    identity = aten.eye.default(size, dtype=matrix.dtype, device=matrix.device)
    return bool(((matrix.mH.matmul(matrix) - identity).abs() <= 10 * size * finfo(matrix.dtype).eps).all())


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep the last two dimensions of a tensor orthogonal: Q^T Q = 1, or Q Q^T = 1 for wide ones (unitary if complex).

    `orthogonal_map` is "matrix_exp" or "cayley", of a skew-symmetric matrix, or "householder", of reflections; by default the
    first for square and complex tensors, the last for others. With `use_trivialization` the map acts around a fixed
    orthogonal matrix (Lezcano-Casado 2019). Raises ValueError for tensors of less than two dimensions and unknown maps.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
