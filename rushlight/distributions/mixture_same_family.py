"""MixtureSameFamily(mixture_distribution, component_distribution)."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.distribution import Distribution
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class MixtureSameFamily(Distribution):
    """A mixture: the categorical `mixture_distribution` selects along the last batch dimension of `component_distribution`."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        batch = component_distribution.batch_shape
        _check_mixture(mixture_distribution, batch)
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = batch[-1]
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expand_params(MixtureSameFamily, batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand(Size((*batch_shape, self._num_component)))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return new

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _weights(self) -> Tensor:
        """Return the probabilities, with dimensions added for the components' events."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    def _average(self, values: Tensor) -> Tensor:
        return (self._weights() * values).sum(-1 - self._event_ndims)

    @property
    def mean(self):
        return self._average(self._component_distribution.mean)

    @property
    def variance(self):
        between = self._component_distribution.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._average(self._component_distribution.variance) + self._average(between.square())

    def cdf(self, value):
        chances = self._component_distribution.cdf(self._add_component_dim(value))
        return (chances * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self._component_distribution.log_prob(self._add_component_dim(value))
        return (log_prob + aten.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def _add_component_dim(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def sample(self, sample_shape=()):
        with no_grad():
            dim = len(Size(sample_shape)) + len(self._batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            chosen = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            chosen = chosen.expand((*drawn.shape[:dim], 1, *self._event_shape))
            return drawn.gather(dim, chosen).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"


def _check_mixture(mixture: Categorical, batch: Size) -> None:
    for ours, theirs in zip(reversed(mixture.batch_shape), reversed(batch[:-1]), strict=False):
        if ours != 1 and theirs != 1 and ours != theirs:
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                f"`component_distribution.batch_shape`({batch[:-1]})"
            )
    if mixture.logits.shape[-1] != batch[-1]:
        raise ValueError(
            f"`mixture_distribution component` ({mixture.logits.shape[-1]}) does not equal "
            f"`component_distribution.batch_shape[-1]` ({batch[-1]})"
        )
