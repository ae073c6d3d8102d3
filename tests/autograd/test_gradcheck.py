"""gradcheck finds wrong derivatives of real and of complex functions, by the backward, forwards, and for batches."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.autograd import GradcheckError, gradcheck, gradgradcheck

REAL = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64, requires_grad=True)
COMPLEX = torch.tensor([0.3 + 1j, -1.2 - 0.4j, 2.0 + 0.1j], dtype=torch.complex128, requires_grad=True)
ALL = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True, "check_grad_dtypes": True}


def function_of(forward, backward):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return backward(grad, *ctx.saved_tensors)

    return Made.apply


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("function", [
    torch.sin, torch.exp, lambda x: x * x, lambda x: (x.sum(), x * 2), lambda x: x[None].expand(2, 3), lambda x: x.reshape(3, 1) * x,
])  # fmt: skip
@pytest.mark.parametrize("value", [REAL, COMPLEX])
def test_right_derivatives(function, value, fast):
    options = {"check_forward_ad": True, "check_grad_dtypes": True, "fast_mode": True} if fast else ALL
    assert gradcheck(function, value, **options)
    assert gradgradcheck(function, value, fast_mode=fast)


@pytest.mark.parametrize("function", [
    lambda z: z.abs(), lambda z: z.conj() * z, lambda z: (z.real, z.imag**2), lambda z: torch.view_as_real(z), torch.angle,
])  # fmt: skip
def test_functions_between_real_and_complex(function):
    assert gradcheck(function, COMPLEX)
    assert gradcheck(lambda x: torch.complex(x, x * x), REAL)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("wrong, value", [
    (function_of(lambda x: x * 2, lambda grad, x: grad * 3), REAL),
    (function_of(lambda z: z * z, lambda grad, z: grad * 2 * z), COMPLEX),  # without the conjugate
    (function_of(lambda z: z.imag.clone(), lambda grad, z: grad + 0j), COMPLEX),
    (function_of(lambda x: torch.complex(x, x), lambda grad, x: grad.real), REAL),
])  # fmt: skip
def test_wrong_derivatives(wrong, value, fast):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(wrong, value, fast_mode=fast)
    assert not gradcheck(wrong, value, raise_exception=False, fast_mode=fast)


def test_backwards_that_change():
    scales = iter(range(1, 100))
    noisy = function_of(lambda x: x * 2, lambda grad, x: grad * (2 + 1e-7 * next(scales)))
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(noisy, REAL)
    assert gradcheck(noisy, REAL, nondet_tol=1e-3)


def test_outputs_without_a_gradient():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 3

    with pytest.raises((GradcheckError, TypeError)):
        gradcheck(Two.apply, REAL)


def test_second_derivatives():
    once = function_of(lambda x: x**3, lambda grad, x: (grad * 3 * x.detach() ** 2))
    assert gradcheck(once, REAL)
    assert not gradgradcheck(once, REAL, raise_exception=False)
    assert gradgradcheck(lambda x: x**3, REAL, check_fwd_over_rev=True, gen_non_contig_grad_outputs=True)
    assert gradgradcheck(lambda x: x**3, REAL, torch.ones(3, dtype=torch.float64, requires_grad=True))


def test_what_cannot_be_checked():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.raises(ValueError, match="Sparse output"):
        gradcheck(lambda x: x * 2, torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_())
    with pytest.raises(ValueError, match="requires check_forward_ad"):
        gradcheck(torch.sin, REAL, check_batched_forward_grad=True)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(torch.sin, torch.ones(2, requires_grad=True), eps=1e-2, atol=1e-2, rtol=1e-2)
    assert REAL.tolist() == [0.3, -1.2, 2.0]  # as it was


def test_several_inputs():
    x = torch.rand(3, 4, dtype=torch.float64).requires_grad_()
    w = torch.rand(4, 2, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda x, w: torch.tanh(x @ w).sum(0), (x, w)) and gradgradcheck(lambda x, w: torch.tanh(x @ w), (x, w))
    assert gradcheck(lambda x, n: x * n, (REAL, 3)) and x.grad is None
    wrong = function_of(lambda x: x**3, lambda grad, x: grad * 2 * x**2)
    with pytest.raises(GradcheckError, match="with respect to input 1,\nnumerical:"):
        gradcheck(lambda x, y: x * 2 + wrong(y), (REAL, REAL.detach().clone().requires_grad_()))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("fast", [False, True])
def test_sparse_inputs(layout, fast):
    dense = torch.tensor([[0.5, 0.0, 2.0], [0.0, -1.0, 0.0]], dtype=torch.float64)
    value = dense.to_sparse(layout=layout).requires_grad_()
    for masked in (True, False):
        assert gradcheck(lambda x: x.to_dense() * 2, value, masked=masked, fast_mode=fast)
        wrong = function_of(lambda x: x.to_dense() * 2, lambda grad, x: grad * 3)
        assert not gradcheck(wrong, value, masked=masked, fast_mode=fast, raise_exception=False)
    assert torch.equal(value.to_dense(), dense)


def test_gradients_must_be_multiples_of_the_outputs_gradient():
    shifted = function_of(lambda x: x * 2, lambda grad, x: grad * 2 + 1e-3)
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(shifted, REAL, atol=1e-1)


def test_functions_that_depend_on_the_perturbation():
    edge = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="same shape"):
        gradcheck(lambda x: torch.cat([x, x]) if x >= 1 else x, edge)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, edge)


def test_forward_mode_sees_plain_dual_inputs():
    seen = []

    def product(x, y):
        if torch.autograd.forward_ad._current_level >= 0:
            seen.append((x.requires_grad, torch.autograd.forward_ad.unpack_dual(y).tangent is not None))
        return x * y

    assert gradcheck(product, (REAL, REAL.detach().clone().requires_grad_()), check_forward_ad=True, check_backward_ad=False)
    assert (False, True) in seen and (True, True) not in seen
