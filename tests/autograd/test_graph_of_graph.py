"""Gradients of gradients where tensors were written to, hooks were called and gradients were accumulated."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function, grad


@pytest.mark.parametrize("write", [
    lambda x: torch.relu_((x * 2).view(2)),
    lambda x: nn.functional.threshold((x + 1).view(2), 0.0, 0.0, True),
    lambda x: (x * 2).view(2).exp_(),
    lambda x: nn.Sequential(nn.InstanceNorm2d(2), nn.ReLU(True))(x.view(1, 1, 1, 2)).view(2),
])  # fmt: skip
def test_a_gradient_of_what_was_written_to_a_view(write):
    x = torch.tensor([1.0, 0.5], requires_grad=True)
    (first,) = grad(write(x).pow(2), x, torch.ones(2), create_graph=True)
    (second,) = grad(first.sum(), x)
    assert second.isfinite().all()


def test_its_values():
    x = torch.tensor([1.0, 0.5], requires_grad=True)
    (first,) = grad((x * 2).view(2).exp_().pow(2).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    torch.testing.assert_close(second, 16 * torch.exp(4 * x.detach()))


def test_the_output_of_a_function_that_writes_to_a_view():
    class Write(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.exp_()
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

    x = torch.tensor([0.1, 0.2], requires_grad=True)
    (first,) = grad(Write.apply((x * 1).view(2)).sum(), x, create_graph=True)
    torch.testing.assert_close(grad(first.sum(), x)[0], x.detach().exp())


def test_module_hooks_see_first_gradients_alone():
    x, calls, module = torch.rand(1, requires_grad=True), [], nn.MSELoss()
    module.register_full_backward_hook(lambda *_: calls.append(1))
    (gradient,) = grad(module(x, torch.ones(1)), x, create_graph=True)
    grad(gradient, x)
    assert len(calls) == 1


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_add_up_in_place_unless_a_graph_is_made(create_graph):
    x = torch.ones(2, requires_grad=True)
    y = x + 2
    y.backward(torch.ones(2), retain_graph=True)
    before = x.grad
    y.backward(torch.ones(2), create_graph=create_graph)
    assert (x.grad is before) is not create_graph and x.grad.tolist() == [2, 2]


def test_zeros_for_unused_inputs_can_be_differentiated():
    x, a = torch.tensor(0.5, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    first = grad(x * a, x, create_graph=True)
    second = grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].item() == 0 and grad(second, x, materialize_grads=True)[0].item() == 0


def test_rows_of_another_size_are_named():
    x = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        grad(x * 2, x, torch.ones(2, 2), is_grads_batched=True)


def test_a_function_may_write_to_a_view_of_its_own():
    class Part(Function):
        @staticmethod
        def forward(ctx, x):
            part = x.clone()[:3]
            part += 2
            return part

        @staticmethod
        def backward(ctx, gradient):
            return torch.cat([gradient, torch.zeros(2)])

    x = torch.ones(5, requires_grad=True)
    Part.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 0, 0]


def test_printing_a_view_without_a_valid_history():
    base = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        view = base[:]
        view *= 2
    assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"


def test_modes_around_classes_are_deprecated():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                self.enabled = torch.is_grad_enabled()

    assert not Made().enabled
