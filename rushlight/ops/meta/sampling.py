"""Checks and Meta rules of drawing from distributions."""

from __future__ import annotations

from rushlight.core.dtype import bool_, finfo, int64
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import check_writable, not_implemented
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta


def check_uniform(self: Tensor, low: float, high: float) -> None:
    """Raise RuntimeError unless the range and its length fit the dtype; NotImplementedError for integers."""
    if not self.dtype.is_floating_point:
        raise not_implemented("check_uniform_bounds", self.dtype)
    largest = finfo(self.dtype).max
    for name, bound in (("from", low), ("to", high)):
        if not abs(bound) <= largest:
            raise RuntimeError(f"{name} is out of bounds for {self.dtype}, got {bound}")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= {largest:g}, the greatest {self.dtype.name}, but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


def check_normal(self: Tensor, mean: float, std: float) -> None:
    """Raise RuntimeError for a negative deviation; NotImplementedError for integers."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not self.dtype.is_floating_point and not self.dtype.is_complex:
        raise not_implemented("normal_kernel_cpu", self.dtype)


def two_bounds(given: tuple, named: dict, names: tuple[str, str], defaults: tuple, op: str) -> list:
    """Return the two numbers of a call whose first is named by a keyword of Python; TypeError for other arguments."""
    values = dict(zip(names, defaults, strict=True))
    if not given and not named:
        return list(defaults)
    if len(given) > 2 or not set(named) <= set(names[len(given) :]):
        raise TypeError(f"{op} takes {names[0]!r}, {names[1]!r} and generator, but got {given} and {sorted(named)}")
    return list({**values, **dict(zip(names, given, strict=False)), **named}.values())


def check_cauchy(self: Tensor, median: float, sigma: float) -> None:
    """Raise RuntimeError unless sigma is positive, and for integers and complex numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous(self, "Cauchy")


def check_exponential(self: Tensor, lambd: float) -> None:
    """Raise RuntimeError unless lambd is positive, and for integers and complex numbers."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    _check_continuous(self, "Exponential")


def _check_continuous(self: Tensor, name: str) -> None:
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you specified "
            f"{self.dtype}"
        )


def check_geometric(self: Tensor, p: float) -> None:
    """Raise RuntimeError unless 0 < p < 1; NotImplementedError for bool and complex numbers."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self.dtype is bool_ or self.dtype.is_complex:
        raise not_implemented("geometric_cpu", self.dtype)


def check_log_normal(self: Tensor, std: float) -> None:
    """Raise RuntimeError unless std is positive; NotImplementedError for integers and complex numbers."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not self.dtype.is_floating_point:
        raise not_implemented("log_normal_cpu", self.dtype)


def check_multinomial(self: Tensor, num_samples: int, replacement: bool) -> tuple[int, ...]:
    """Return the result's sizes; RuntimeError for probabilities or counts that do not fit."""
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype.scalar_name}")
    if self.dim() not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but got {self.dim()} dimensions")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples: got {num_samples}")
    count = self.shape[-1]
    if not replacement and num_samples > count:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: got {num_samples} of {count}"
        )
    if count > 1 << 24:
        raise RuntimeError(f"number of categories cannot exceed 2^24, but got {count}")
    return (*self._impl.sizes[:-1], num_samples)


def check_bernoulli(self: Tensor, p: Tensor) -> None:
    """Raise RuntimeError unless the probabilities broadcast to the shape of `self`; NotImplementedError for integers."""
    check_writable(self, "bernoulli_")
    if not p.dtype.is_floating_point:
        raise not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    if broadcast_shapes(p._impl.sizes, self._impl.sizes) != self._impl.sizes:
        raise RuntimeError(f"bernoulli_: expected probabilities for shape {list(self.shape)}, but got {list(p.shape)}")


@meta("bernoulli_.Tensor")
def bernoulli_(self, p, *, generator=None):
    check_bernoulli(self, p)
    return self


@meta("uniform_")
def uniform_(self, *bounds, generator=None, **named):
    if not self.dtype.is_complex:
        check_uniform(self, *two_bounds(bounds, named, ("from", "to"), (0.0, 1.0), "uniform_"))
    check_writable(self, "uniform_")
    return self


@meta("normal_")
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    check_normal(self, mean, std)
    check_writable(self, "normal_")
    return self


@meta("cauchy_")
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    check_cauchy(self, median, sigma)
    check_writable(self, "cauchy_")
    return self


@meta("exponential_")
def exponential_(self, lambd=1.0, *, generator=None):
    check_exponential(self, lambd)
    check_writable(self, "exponential_")
    return self


@meta("geometric_")
def geometric_(self, p, *, generator=None):
    check_geometric(self, p)
    check_writable(self, "geometric_")
    return self


@meta("log_normal_")
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    check_log_normal(self, std)
    check_writable(self, "log_normal_")
    return self


@meta("random_")
def random_(self, *args, **kwargs):
    check_writable(self, "random_")
    return self


@meta("multinomial")
def multinomial(self, num_samples, replacement=False, *, generator=None):
    return empty(check_multinomial(self, num_samples, replacement), int64)


@meta("poisson")
def poisson(self, generator=None):
    return like(self)


@meta("binomial")
def binomial(count, prob, generator=None):
    return like(count)
