"""A recurrent cell whose forward and backward are C++, under a user's autograd.Function, against the same in Python."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension
from tests.utils.cpp_extension import sources

BATCH, INPUTS, STATE = 5, 7, 4


@pytest.fixture(scope="module")
def cell():
    extension = cpp_extension.load_inline("rl_lltm", sources.LLTM)

    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, hidden, state):
            outputs = extension.forward(input, weights, bias, hidden, state)
            new_hidden, new_state = outputs[:2]
            ctx.save_for_backward(*outputs[1:], weights)
            return new_hidden, new_state

        @staticmethod
        def backward(ctx, grad_hidden, grad_state):
            return tuple(extension.backward(grad_hidden.contiguous(), grad_state.contiguous(), *ctx.saved_tensors))

    return Cell.apply


def in_python(input, weights, bias, hidden, state):
    raw = torch.addmm(bias, torch.cat([hidden, input], 1), weights.t())
    first, second, third = raw.chunk(3, 1)
    new_state = state + torch.nn.functional.elu(third) * torch.sigmoid(first)
    return torch.tanh(new_state) * torch.sigmoid(second), new_state


def values(dtype=torch.float64):
    torch.manual_seed(0)
    sizes = [(BATCH, INPUTS), (3 * STATE, STATE + INPUTS), (1, 3 * STATE), (BATCH, STATE), (BATCH, STATE)]
    return [torch.randn(*size, dtype=dtype, requires_grad=True) for size in sizes]


def test_results_and_gradients_match_python(cell):
    ours, theirs = values(), values()
    got, expected = cell(*ours), in_python(*theirs)
    for a, b in zip(got, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)
    (got[0].sin().sum() + got[1].sum()).backward()
    (expected[0].sin().sum() + expected[1].sum()).backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad.shape == b.grad.shape and torch.allclose(a.grad, b.grad, rtol=1e-10, atol=1e-12)


def test_numerical_gradients(cell):
    assert torch.autograd.gradcheck(cell, values())


def test_steps_in_a_row_train(cell):
    input, weights, bias, hidden, state = values(torch.float32)
    optimizer = torch.optim.SGD([weights, bias], lr=2.0)
    losses = []
    for _ in range(20):
        h, s = hidden.detach(), state.detach()
        for _ in range(3):
            h, s = cell(input.detach(), weights, bias, h, s)
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
