"""Distribution: the base of all families, with shapes, argument checks and expansion."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.following import is_compiling
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.utils import lazy_property


class Distribution:
    """A batch of independent distributions over events.

    `batch_shape` is the shape of the parameters, `event_shape` that of one draw; draws of `sample(sample_shape)` have shape
    sample_shape + batch_shape + event_shape, and `log_prob` drops the event dimensions. With `validate_args` (the default, see
    `set_default_validate_args`), ValueError for parameters outside of `arg_constraints` and values outside of `support`;
    compiled functions skip these checks.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions created from now on check their arguments."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects True or False, but got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args and not is_compiling():
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in limits.items():
            if constraints.is_dependent(constraint) or name not in self.__dict__:
                if constraints.is_dependent(constraint) or isinstance(inspect.getattr_static(self, name), lazy_property):
                    continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _check_instance(self, cls: type, instance: Any = None) -> Any:
        if instance is not None:
            return instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return type(self).__new__(type(self))

    def _expand_params(self, cls: type, batch_shape: Sequence[int], instance: Any, **trailing: int) -> Any:
        """Return an instance with its parameters expanded to `batch_shape`. `trailing` maps each parameter's name to its number
        of event dimensions, which are not expanded."""
        new = self._check_instance(cls, instance)
        batch_shape = Size(batch_shape)
        for name, dims in trailing.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand((*batch_shape, *value.shape[value.dim() - dims :])))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Distribution:
        """Return this distribution with parameters expanded to `batch_shape`."""
        raise NotImplementedError(f"{type(self).__name__} cannot be expanded")

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter."""
        raise NotImplementedError(f"{type(self).__name__} defines no arg_constraints")

    @property
    def support(self) -> constraints.Constraint | None:
        """The values that draws can take."""
        raise NotImplementedError(f"{type(self).__name__} defines no support")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws that are differentiable by the parameters, at fixed random numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no reparameterized draws")

    def sample_n(self, n: int) -> Tensor:
        """Return `sample((n,))`; deprecated."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or probability of `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of draws up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of `cdf`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that a discrete distribution takes, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} cannot enumerate its support")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """Return exp(entropy)."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*Size(sample_shape), *self._batch_shape, *self._event_shape))

    def _shape_support(self, values: Tensor, expand: bool) -> Tensor:
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError unless `value` is a tensor that broadcasts with the shapes and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        dims = value.dim() - len(self._event_shape)
        if value.shape[max(dims, 0) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        expected = Size((*self._batch_shape, *self._event_shape))
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}.")
        support = None if is_compiling() else self._support_or_none()
        if support is not None and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _support_or_none(self) -> constraints.Constraint | None:
        try:
            return self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return None

    def __repr__(self) -> str:
        shown = [name for name in self.arg_constraints if name in self.__dict__]
        parts = (
            f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in ((k, self.__dict__[k]) for k in shown)
        )
        return f"{type(self).__name__}({', '.join(parts)})"
