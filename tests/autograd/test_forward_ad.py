"""Dual tensors: tangents of what is computed from them, and their errors, as PyTorch has them."""

import pytest

import rushlight as rl
from rushlight.autograd import forward_ad


def values(*numbers):
    return rl.tensor(numbers)


def test_a_tangent_follows_operators():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(values(1.0, 2.0), values(1.0, 0.5))
        primal, tangent = forward_ad.unpack_dual((dual**2).exp())
    expected = values(1.0, 4.0).exp() * 2 * values(1.0, 2.0) * values(1.0, 0.5)
    assert rl.allclose(primal, values(1.0, 4.0).exp())
    assert rl.allclose(tangent, expected)
    assert not primal.requires_grad and not tangent.requires_grad


def test_several_duals_add_up():
    with forward_ad.dual_level():
        a = forward_ad.make_dual(values(2.0), values(1.0))
        b = forward_ad.make_dual(values(3.0), values(10.0))
        assert forward_ad.unpack_dual(a * b).tangent.item() == 3.0 + 20.0


def test_no_tangent_without_duals():
    plain = values(1.0)
    assert forward_ad.unpack_dual(plain) == (plain, None)
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(plain).tangent is None
        dual = forward_ad.make_dual(plain, plain)
        assert forward_ad.unpack_dual(dual).tangent.item() == 1.0
        assert forward_ad.unpack_dual(dual.detach()).tangent is None
        assert forward_ad.unpack_dual(dual > 0).tangent is None
    assert forward_ad.unpack_dual(dual).tangent is None


def test_gradients_reach_the_primal():
    point = values(3.0).requires_grad_()
    with forward_ad.dual_level():
        (forward_ad.make_dual(point, values(1.0)) ** 2).backward()
    assert point.grad.item() == 6.0


@pytest.mark.parametrize(
    "primal, tangent, error, text",
    [
        (values(1.0), values(1.0, 2.0), RuntimeError, "different size"),
        (values(1), values(1.0), ValueError, "Expected primal to be floating point or complex"),
        (values(1.0), values(1), ValueError, "Expected tangent to be floating point or complex"),
    ],
)
def test_errors_of_make_dual(primal, tangent, error, text):
    with forward_ad.dual_level(), pytest.raises(error, match=text):
        forward_ad.make_dual(primal, tangent)


def test_errors_of_levels():
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(values(1.0), values(1.0))
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        forward_ad.exit_dual_level()
    with forward_ad.dual_level() as level:
        assert level == 0
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            forward_ad.enter_dual_level()
        dual = forward_ad.make_dual(values(1.0), values(1.0))
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            forward_ad.make_dual(dual, values(1.0))


def test_what_has_no_tangent():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(values(2.0), values(1.0))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            forward_ad.make_dual(values(1.0), dual)
        for call in (lambda: rl.add(values(1.0), 1, out=dual), lambda: rl.add(dual, 1, out=values(1.0))):
            with pytest.raises(NotImplementedError, match="out= function"):
                call()
        alone = dual.clone().detach_()
        assert forward_ad.unpack_dual(alone * 2).tangent is None
