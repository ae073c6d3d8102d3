"""LKJCholesky(dim, concentration)."""

from __future__ import annotations

import math

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import finfo
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.beta import Beta
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class LKJCholesky(Distribution):
    """Cholesky factors (dim, dim) of random correlation matrices with density det**(concentration - 1).

    Draws by the onion method: rows one after the other, each a direction on a sphere times a beta-distributed length. Source:
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion method"
    (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = aten.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = aten.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(LKJCholesky, batch_shape, _instance, concentration=0)
        new.dim = self.dim
        new._beta = self._beta.expand(Size((*batch_shape, self.dim)))
        return new

    def sample(self, sample_shape=()):
        with no_grad():
            shares = self._beta.sample(sample_shape).unsqueeze(-1)
            noise = aten.randn(self._extended_shape(sample_shape), dtype=shares.dtype, device=shares.device).tril(-1)
            directions = noise / aten.linalg_vector_norm(noise, 2, -1, True)
            directions[..., 0, :] = 0.0
            rows = shares.sqrt() * directions
            rest = (1 - rows.square().sum(-1)).clamp(min=finfo(rows.dtype).tiny).sqrt()
            return rows + rest.diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = aten.arange(2, self.dim + 1, device=value.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        rank = self.dim - 1
        alpha = self.concentration + 0.5 * rank
        constant = 0.5 * rank * math.log(math.pi) + aten.mvlgamma(alpha - 0.5, rank) - rank * aten.lgamma(alpha)
        return density - constant
