"""ContinuousBernoulli(probs, logits)."""

from __future__ import annotations

import math

from rushlight.core.following import is_compiling
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.binary_parameters import BinaryParameters
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import broadcast_all, clamp_probs
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """Numbers of the unit interval with a density proportional to probs**x * (1 - probs)**(1 - x).

    Between the `lims` around 1/2, where the closed forms lose precision, Taylor series replace them. Source: G. Loaiza-Ganem
    and J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders" (2019).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        value = self._set_parameter(probs, logits)
        if self._is_probs:
            checked = self._validate_args if validate_args is None else validate_args
            if checked and not is_compiling() and not self.arg_constraints["probs"].check(value).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(value)
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(ContinuousBernoulli, batch_shape, _instance)
        new._lims = self._lims
        return new

    def _mask_near_half(self):
        """Return where the closed forms are accurate, as a mask, and the probabilities with safe values elsewhere."""
        away = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return away, aten.where(away, self.probs, self._lims[0])

    def _log_constant(self):
        away, safe = self._mask_near_half()
        low = aten.where(safe <= 0.5, safe, 0)
        high = aten.where(safe >= 0.5, safe, 1)
        scale = aten.where(safe <= 0.5, (-2 * low).log1p(), (2 * high - 1).log())
        closed = ((-safe).log1p() - safe.log()).abs().log() - scale
        square = (self.probs - 0.5).square()
        return aten.where(away, closed, math.log(2) + (4 / 3 + 104 / 45 * square) * square)

    @property
    def mean(self):
        away, safe = self._mask_near_half()
        offset = self.probs - 0.5
        closed = safe / (2 * safe - 1) + 1 / ((-safe).log1p() - safe.log())
        return aten.where(away, closed, 0.5 + (1 / 3 + 16 / 45 * offset.square()) * offset)

    @property
    def variance(self):
        away, safe = self._mask_near_half()
        square = (self.probs - 0.5).square()
        closed = safe * (safe - 1) / (1 - 2 * safe).square() + 1 / ((-safe).log1p() - safe.log()).square()
        return aten.where(away, closed, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)

    def rsample(self, sample_shape=()):
        return self.icdf(aten.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -aten.binary_cross_entropy_with_logits(logits, value, reduction=0) + self._log_constant()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        away, safe = self._mask_near_half()
        closed = (safe.pow(value) * (1 - safe).pow(1 - value) + safe - 1) / (2 * safe - 1)
        inside = aten.where(away, closed, value)
        return aten.where(value <= 0, 0.0, aten.where(value >= 1, 1.0, inside))

    def icdf(self, value):
        away, safe = self._mask_near_half()
        log_other = (-safe).log1p()
        closed = ((-safe + value * (2 * safe - 1)).log1p() - log_other) / (safe.log() - log_other)
        return aten.where(away, closed, value)

    def entropy(self):
        log_other = (-self.probs).log1p()
        return self.mean * (log_other - self.probs.log()) - self._log_constant() - log_other

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """Return log of the normaliser (exp(x) - 1) / x, with its Taylor series around 0."""
        away = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = aten.where(away, x, self._lims[0] - 0.5)
        closed = (safe.exp() - 1).abs().log() - safe.abs().log()
        return aten.where(away, closed, 0.5 * x + x.square() / 24 - x.pow(4) / 2880)
