"""Transforms: round trips, Jacobians against autograd, caches, registries; pickling of distributions."""

from __future__ import annotations

import pickle

import pytest

import rushlight
from rushlight import distributions
from rushlight.autograd.functional import jacobian
from rushlight.distributions import constraints

BIJECTIONS = [
    constraints.positive, constraints.less_than(3.0), constraints.interval(-1.0, 2.0), constraints.unit_interval,
    constraints.greater_than(2.0), constraints.real,
]  # fmt: skip


@pytest.mark.parametrize("constraint", BIJECTIONS, ids=repr)
def test_biject_to(constraint):
    transform = distributions.biject_to(constraint)
    x = rushlight.linspace(-2, 2, 5, dtype=rushlight.float64)
    y = transform(x)
    assert constraint.check(y).all()
    assert rushlight.allclose(transform.inv(y), x)
    slope = jacobian(lambda value: transform(value), x).diagonal()
    assert rushlight.allclose(slope.abs().log(), transform.log_abs_det_jacobian(x, y))


@pytest.mark.parametrize(
    "constraint, count",
    [(constraints.simplex, 4), (constraints.corr_cholesky, 6), (constraints.lower_cholesky, None)],
    ids=["simplex", "corr_cholesky", "lower_cholesky"],
)
def test_vectors_and_matrices(constraint, count):
    rushlight.manual_seed(0)
    x = rushlight.randn(*((count,) if count else (3, 3)), dtype=rushlight.float64)
    transform = distributions.transform_to(constraint)
    y = transform(x)
    assert constraint.check(y).all()
    assert rushlight.allclose(transform(transform.inv(y)), y)


def test_stick_breaking_determinant():
    x = rushlight.tensor([0.3, -1.0, 0.5], dtype=rushlight.float64)
    transform = distributions.StickBreakingTransform()
    square = jacobian(lambda value: transform(value)[:-1], x)
    assert rushlight.allclose(rushlight.linalg.slogdet(square)[1], transform.log_abs_det_jacobian(x, transform(x)))


def test_caches_give_back_the_very_input():
    transform = distributions.ExpTransform(cache_size=1)
    x = rushlight.tensor([1.0])
    y = transform(x)
    assert transform(x) is y and transform.inv(y) is x and transform.inv.inv is transform


def test_pickling():
    for distribution in (distributions.Gumbel(0.5, 2.0), distributions.Beta(0.5, 2.0), distributions.LogNormal(0.0, 1.0)):
        again = pickle.loads(pickle.dumps(distribution))
        value = rushlight.tensor(0.3)
        assert again.log_prob(value) == distribution.log_prob(value)


def test_arguments_are_not_checked_when_told_so():
    distributions.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        distributions.Normal(0.0, -1.0)
