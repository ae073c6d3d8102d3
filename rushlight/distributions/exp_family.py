"""ExponentialFamily: densities exp(<natural parameters, statistics> - log normaliser) times a carrier measure."""

from __future__ import annotations

from rushlight.autograd.backward import grad
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.tensor import Tensor
from rushlight.distributions.distribution import Distribution


class ExponentialFamily(Distribution):
    """A family with natural parameters and a log normaliser, whose gradient gives the entropy."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} defines no natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no log normaliser")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} defines no mean of the carrier measure")

    def entropy(self) -> Tensor:
        """Return the entropy, A(p) - <p, dA/dp> - mean of the carrier measure, from the gradient of the log normaliser A."""
        with enable_grad():
            parameters = [parameter.detach().requires_grad_() for parameter in self._natural_params]
            normaliser = self._log_normalizer(*parameters)
            slopes = grad(normaliser.sum(), parameters, create_graph=True)
        result = normaliser - self._mean_carrier_measure
        for parameter, slope in zip(parameters, slopes, strict=True):
            result = result - (parameter * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
