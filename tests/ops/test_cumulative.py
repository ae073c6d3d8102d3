"""Running products, extrema and log-sums; differences and integrals."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

NAN = float("nan")


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("dim", (0, 1, -1))
def test_cumprod_and_logcumsumexp(dim):
    values = array(3, 4)
    tensor = rl.from_numpy(values)
    np.testing.assert_allclose(tensor.cumprod(dim).numpy(), np.cumprod(values, dim))
    np.testing.assert_allclose(rl.logcumsumexp(tensor, dim).numpy(), np.log(np.cumsum(np.exp(values), dim)))


def test_cumprod_of_integers_is_int64_and_works_in_place():
    x = rl.tensor([1, 2, 3], dtype=rl.int32)
    assert x.cumprod(0).dtype is rl.int64
    y = rl.tensor([1.0, 2.0, 3.0])
    assert y.cumprod_(0) is y
    assert y.tolist() == [1, 2, 6]


def test_logcumsumexp_of_nothing_and_of_large_numbers():
    x = rl.tensor([-float("inf"), -float("inf"), 1000.0, 1000.0])
    np.testing.assert_allclose(rl.logcumsumexp(x, 0).numpy(), [-np.inf, -np.inf, 1000, 1000 + np.log(2)])


def test_logcumsumexp_of_complex_numbers():
    values = array(2, 5) + 1j * array(5, 2).T
    found = rl.logcumsumexp(rl.from_numpy(values), 1).numpy()
    np.testing.assert_allclose(np.exp(found), np.cumsum(np.exp(values), 1))


def test_running_extrema_take_the_last_of_equal_values_and_keep_nan():
    values, places = rl.cummax(rl.tensor([1.0, 3.0, 3.0, 2.0, NAN, 5.0]), 0)
    np.testing.assert_array_equal(values.numpy(), [1, 3, 3, 3, np.nan, np.nan])
    assert places.tolist() == [0, 1, 2, 2, 4, 4]
    values, places = rl.cummin(rl.tensor([[2, 1, 1, 3]]), 1)
    assert (values.tolist(), places.tolist()) == ([[2, 1, 1, 1]], [[0, 1, 2, 2]])


@pytest.mark.parametrize("name", ("cumprod", "cummax", "cummin", "logcumsumexp"))
def test_scalars_stay_as_they_are(name):
    found = getattr(rl, name)(rl.tensor(2.5), 0)
    assert (found[0] if isinstance(found, tuple) else found).item() == 2.5


@pytest.mark.parametrize("dim", (0, 1))
def test_derivatives(dim):
    values = array(3, 4)
    values[1, 2] = values[0, 2] = values[2, 3] = 0
    x = rl.from_numpy(values).requires_grad_()
    for function in (rl.cumprod, rl.logcumsumexp):
        assert gradcheck(lambda x, f=function: f(x, dim), (x,))
        assert gradgradcheck(lambda x, f=function: f(x, dim), (x,))
    y = rl.from_numpy(array(3, 5)).requires_grad_()
    assert gradcheck(lambda y: rl.cummax(y, dim)[0] + rl.cummin(y, dim)[0], (y,))


def test_the_gradient_of_logcumsumexp_where_nothing_is_summed_up_yet():
    x = rl.tensor([-float("inf"), 0.0, 1.0], requires_grad=True)
    rl.logcumsumexp(x, 0)[2].backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([-np.inf, 0, 1]) / (1 + np.e), rtol=1e-6)


@pytest.mark.parametrize("n", (0, 1, 2, 5))
def test_diff(n):
    values = array(3, 4)
    np.testing.assert_allclose(rl.diff(rl.from_numpy(values), n).numpy(), np.diff(values, min(n, 4)))


def test_diff_with_more_values_at_the_ends_and_of_bools():
    x = rl.tensor([1, 4, 9])
    assert rl.diff(x, prepend=rl.tensor([0]), append=rl.tensor([16])).tolist() == [1, 3, 5, 7]
    assert rl.diff(rl.tensor([True, False, False])).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="at least one-dimensional"):
        rl.diff(rl.tensor(1.0))
    with pytest.raises(RuntimeError, match="same dimension as input"):
        rl.diff(x, prepend=rl.zeros(1, 1))


@pytest.mark.parametrize("edge_order", (1, 2))
def test_gradient_agrees_with_numpy(edge_order):
    values, places = array(4, 5), np.array([0.0, 1.0, 3.0, 4.0, 7.0])
    x = rl.from_numpy(values)
    for got, want in zip(rl.gradient(x, edge_order=edge_order), np.gradient(values, edge_order=edge_order), strict=True):
        np.testing.assert_allclose(got.numpy(), want)
    (got,) = rl.gradient(x, spacing=(rl.from_numpy(places),), dim=1, edge_order=edge_order)
    np.testing.assert_allclose(got.numpy(), np.gradient(values, places, axis=1, edge_order=edge_order))
    got = rl.gradient(x, spacing=[2.0, 0.5], edge_order=edge_order)
    for one, want in zip(got, np.gradient(values, 2.0, 0.5, edge_order=edge_order), strict=True):
        np.testing.assert_allclose(one.numpy(), want)


def test_gradient_refuses_what_it_cannot_do():
    with pytest.raises(RuntimeError, match="only supports edge_order=1 and edge_order=2"):
        rl.gradient(rl.zeros(4), edge_order=3)
    with pytest.raises(RuntimeError, match="at least edge_order"):
        rl.gradient(rl.zeros(2), edge_order=2)
    with pytest.raises(RuntimeError, match="spacing"):
        rl.gradient(rl.zeros(3, 3), spacing=[1.0])


def test_trapezoids():
    y, x = array(3, 5), np.cumsum(np.abs(array(5)))
    ours, places = rl.from_numpy(y), rl.from_numpy(x)
    np.testing.assert_allclose(rl.trapezoid(ours, places).numpy(), np.trapezoid(y, x))
    np.testing.assert_allclose(rl.trapz(ours, dx=0.5, dim=0).numpy(), np.trapezoid(y, dx=0.5, axis=0))
    np.testing.assert_allclose(rl.cumulative_trapezoid(ours, places)[:, -1].numpy(), np.trapezoid(y, x))
    assert rl.trapezoid(rl.zeros(3, 0)).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="one `x` value for each sample point"):
        rl.trapezoid(ours, rl.zeros(4))


def test_complex_log_sums_spread_nan_to_both_parts():
    values = rl.tensor([complex(1, NAN), 1, complex(2, 1)])
    assert rl.view_as_real(rl.logcumsumexp(values, 0)).isnan().all()
    found = rl.logcumsumexp(rl.tensor([1 + 0j, complex(NAN, 1)]), 0)
    assert found[0] == 1 and rl.view_as_real(found[1]).isnan().all()
