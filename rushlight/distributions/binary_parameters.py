"""The base of families with either `probs` or `logits`."""

from __future__ import annotations

from typing import Any

from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def given_parameter(probs: Any, logits: Any) -> tuple[str, Any]:
    """Return the name and value of the given one; ValueError for none or both."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("probs", probs) if logits is None else ("logits", logits)


class BinaryParameters(Distribution):
    """`probs` and `logits` (log odds); the one not given is computed lazily from the other."""

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs"] if self._is_probs else self.__dict__["logits"]

    @property
    def _is_probs(self) -> bool:
        return self._given == "probs"

    @property
    def param_shape(self) -> Size:
        return self._param.size()

    def _set_parameter(self, probs: Any, logits: Any) -> Tensor:
        self._given, value = given_parameter(probs, logits)
        (value,) = broadcast_all(value)
        setattr(self, self._given, value)
        return value

    def _expand_params(self, cls, batch_shape, instance, **trailing):
        new = super()._expand_params(cls, batch_shape, instance, probs=0, logits=0, **trailing)
        new._given = self._given
        return new
