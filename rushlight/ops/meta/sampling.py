"""Checks and Meta rules of drawing from distributions."""

from __future__ import annotations

from rushlight.core.dtype import bool_, int64
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import check_writable, not_implemented
from rushlight.ops.meta.common import empty, like
from rushlight.ops.registry import meta


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


@meta("cauchy_", "exponential_", "geometric_", "log_normal_", "random_")
def overwrite(self, *args, **kwargs):
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
