"""biject_to and transform_to: registries of transforms from all real numbers onto a constraint."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from rushlight.distributions import constraints
from rushlight.distributions.transforms import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    Transform,
    identity_transform,
)

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A registry of functions that make a transform onto a constraint, by the constraint's class."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register `factory` for a constraint's class; without `factory`, a decorator. TypeError for anything but
        constraints."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> Transform:
        """Return the transform onto `constraint`; NotImplementedError where none is known."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_in_both(*kinds: Any) -> Callable[[Factory], Factory]:
    def enter(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return enter


@_register_in_both(constraints.real)
def _to_real(constraint: Any) -> Transform:
    return identity_transform


@_register_in_both(constraints.positive, constraints.nonnegative)
def _to_positive(constraint: Any) -> Transform:
    if constraint.lower_bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


@_register_in_both(constraints.less_than)
def _to_less_than(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_register_in_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Transform:
    return StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Transform:
    return SoftmaxTransform()


@_register_in_both(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Transform:
    return LowerCholeskyTransform()


@_register_in_both(constraints.positive_definite, constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> Transform:
    return PositiveDefiniteTransform()


@_register_in_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Transform:
    return CorrCholeskyTransform()


def _register_composites(registry: ConstraintRegistry) -> None:
    @registry.register(constraints.independent)
    def independent(constraint: Any) -> Transform:
        return IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def cat(constraint: Any) -> Transform:
        return CatTransform([registry(part) for part in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def stack(constraint: Any) -> Transform:
        return StackTransform([registry(part) for part in constraint.cseq], constraint.dim)


_register_composites(biject_to)
_register_composites(transform_to)
