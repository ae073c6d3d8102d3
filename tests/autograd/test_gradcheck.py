"""gradcheck and gradgradcheck: they pass right derivatives and find wrong ones."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.autograd import Function, GradcheckError, gradcheck, gradgradcheck


def inputs(*shapes: tuple[int, ...]) -> tuple[rl.Tensor, ...]:
    rl.manual_seed(0)
    return tuple(rl.rand(shape, dtype=rl.float64).add_(0.5).requires_grad_() for shape in shapes)


class WrongCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x**2


class WrongTwice(Function):
    """Right once; its second derivative is 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * (x**2).detach()


def test_right_derivatives_pass():
    assert gradcheck(lambda x, w: rl.tanh(x @ w).sum(0), inputs((3, 4), (4, 2)))
    assert gradcheck(lambda x: (x.exp(), x.sin()), inputs((3,)))
    assert gradcheck(lambda x, n: x * n, (*inputs((2,)), 3))
    assert gradgradcheck(lambda x, w: rl.tanh(x @ w), inputs((2, 3), (3, 2)))
    assert gradgradcheck(lambda x: x**3, inputs((3,))[0])


def test_wrong_derivatives_are_found():
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(WrongCube.apply, inputs((2,)))
    assert gradcheck(WrongCube.apply, inputs((2,)), raise_exception=False) is False
    assert gradcheck(WrongTwice.apply, inputs((2,)))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongTwice.apply, inputs((2,)))


def test_the_second_input_is_named():
    with pytest.raises(GradcheckError, match="with respect to input 1"):
        gradcheck(lambda x, y: x * 2 + WrongCube.apply(y), inputs((2,), (2,)))


def test_values_are_left_as_they_were():
    (x,) = inputs((3,))
    before = x.tolist()
    gradcheck(lambda value: value * value, x)
    assert x.tolist() == before and x.grad is None


def test_something_must_require_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, rl.ones(2))
