"""Transform: differentiable maps between constrained spaces, their inverses and compositions."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.utils import sum_rightmost
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Transform:
    """A map from `domain` to `codomain` with `log_abs_det_jacobian`; `transform.inv` is its inverse.

    With `cache_size` 1 the last input and output are kept, so that the inverse of an output is the very input.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Callable[[], Transform | None] = lambda: None
        self._cached_x_y: tuple = (None, None)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": None}

    def __setstate__(self, saved: dict) -> None:
        self.__dict__.update(saved)
        self._inv = lambda: None

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse, whose own inverse is this transform."""
        inverse = self._inv()
        if inverse is None:
            inverse = InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> int | Tensor:
        """The sign of the derivative, for monotone scalar maps."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return this transform with the given cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no map")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |dy/dx|, without the event dimensions."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of outputs for inputs of `shape`."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of inputs for outputs of `shape`."""
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class InverseTransform(Transform):
    """The inverse of a transform; keeps no cache of its own."""

    def __init__(self, transform: Transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = lambda: transform

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": self.inv}

    def __setstate__(self, saved: dict) -> None:
        self.__dict__.update(saved)
        transform = saved["_inv"]
        self._inv = lambda: transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self.inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self.inv.domain

    @property
    def bijective(self):
        return self.inv.bijective

    @property
    def sign(self):
        return self.inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and self.inv == other.inv

    __hash__ = Transform.__hash__

    def __call__(self, x):
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self.inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self.inv!r})"


class ComposeTransform(Transform):
    """Several transforms, the first applied first."""

    def __init__(self, parts: list[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        return _with_event_dim(self.parts[0].domain, _compose_dims(self.parts)[0])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        return _with_event_dim(self.parts[-1].codomain, _compose_dims(self.parts)[1])

    @property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        inverse = self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return aten.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _with_event_dim(constraint: constraints.Constraint, dims: int) -> constraints.Constraint:
    missing = dims - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


def _compose_dims(parts: list[Transform]) -> tuple[int, int]:
    """Return the event dimensions that a composition takes and gives: enough for each part in turn."""
    dims = parts[-1].codomain.event_dim
    for part in reversed(parts):
        dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
    end = parts[0].domain.event_dim
    for part in parts:
        end = max(end + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
    return dims, max(end, dims + sum(part.codomain.event_dim - part.domain.event_dim for part in parts))


class IndependentTransform(Transform):
    """Another transform, whose last batch dimensions count as event dimensions."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"
