"""Callbacks at the end of a backward pass."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.autograd.engine import queue_callback


def test_callbacks_run_when_all_gradients_are_there():
    seen = []
    first, second = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def check():
        seen.append((first.grad is not None, second.grad is not None))
        if len(seen) == 1:
            queue_callback(check)

    product = first * second
    product.register_hook(lambda grad: queue_callback(check))
    product.sum().backward()
    assert seen == [(True, True)] * 2


def test_callbacks_of_an_inner_pass_run_at_the_end_of_the_outer_one():
    seen, leaf = [], torch.ones(2, requires_grad=True)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                inner = torch.ones(2, requires_grad=True)
                product = inner * 3
                product.register_hook(lambda _: queue_callback(lambda: seen.append(leaf.grad is not None)))
                product.sum().backward()
            assert seen == []
            return grad * 2

    Inner.apply(leaf).sum().backward()
    assert seen == [True]


def test_callbacks_need_a_backward_pass_and_end_with_it():
    with pytest.raises(RuntimeError, match="during backward pass"):
        queue_callback(lambda: None)
    leaf = torch.ones(2, requires_grad=True)
    called, product = [], leaf * 2

    def fail(grad):
        queue_callback(lambda: called.append(1))
        raise ValueError("stop")

    product.register_hook(fail)
    with pytest.raises(ValueError, match="stop"):
        product.sum().backward()
    (leaf * 2).sum().backward()
    assert called == []
