"""Hooks around forward and in the backward pass."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.nn.modules.module import Module


class Double(Module):
    def forward(self, x, extra=0):
        return x * 2 + extra


class Pair(Module):
    def forward(self, x, y, factor):
        return x * factor, y * 3, "label"


def test_without_hooks():
    assert Double()(3, extra=1) == 7


def test_forward_pre_hooks():
    module = Double()
    first = module.register_forward_pre_hook(lambda owner, args: args[0] + 1)
    assert module(3) == 8
    module.register_forward_pre_hook(lambda owner, args: (args[0] * 10,), prepend=True)
    assert module(3) == 62
    first.remove()
    module.register_forward_pre_hook(lambda owner, args, kwargs: (args, {"extra": 5}), with_kwargs=True)
    assert module(3) == 65
    module.register_forward_pre_hook(lambda owner, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        module(3)


def test_forward_hooks():
    module, seen = Double(), []
    with module.register_forward_hook(lambda owner, args, output: seen.append((args, output))):
        assert module(3) == 6
    assert module(3) == 6 and seen == [((3,), 6)]
    module.register_forward_hook(lambda owner, args, kwargs, output: output + kwargs["extra"], with_kwargs=True)
    module.register_forward_hook(lambda owner, args, output: output * 10, prepend=True)
    assert module(3, extra=1) == 71


def test_always_call():
    module, seen = Double(), []
    module.register_forward_hook(lambda owner, args, output: seen.append("skipped"))
    handle = module.register_forward_hook(lambda owner, args, output: seen.append(output), always_call=True)
    with pytest.raises(TypeError):
        module(None)
    assert seen == [None]
    module(1)
    assert seen == [None, "skipped", 2]
    handle.remove()
    assert not module._forward_hooks_always_called

    def fail(owner, args, output):
        raise KeyError("hook")

    module.register_forward_hook(fail, always_call=True)
    with pytest.warns(UserWarning, match="which is ignored"), pytest.raises(TypeError):
        module(None)


def test_a_hook_that_fails_is_not_called_twice():
    module, calls = Double(), []

    def fail(owner, args, output):
        calls.append(output)
        raise KeyError("hook")

    module.register_forward_hook(fail, always_call=True)
    with pytest.raises(KeyError):
        module(1)
    assert calls == [2]


def test_full_backward_hooks():
    module, seen = Pair(), []
    module.register_full_backward_pre_hook(lambda owner, grad_output: seen.append(("before", grad_output)))
    module.register_full_backward_hook(lambda owner, *grads: seen.append(("after", *grads)))
    x = torch.ones(2, requires_grad=True)
    first, second, label = module(x, torch.ones(2), 4)
    assert label == "label" and not second.requires_grad
    (first * 5).sum().backward()
    assert x.grad.tolist() == [20, 20]
    (before, before_grads), (after, grad_input, grad_output) = seen
    assert (before, after) == ("before", "after")
    assert before_grads[0].tolist() == grad_output[0].tolist() == [5, 5] and grad_output[1:] == (None, None)
    assert grad_input[0].tolist() == [20, 20] and grad_input[1:] == (None, None)


def test_backward_hooks_replace_gradients():
    module = Double()
    module.register_full_backward_pre_hook(lambda owner, grad_output: (grad_output[0] * 10,))
    module.register_full_backward_hook(lambda owner, grad_input, grad_output: (grad_input[0] + 1,))
    module.register_full_backward_hook(lambda owner, grad_input, grad_output: grad_input[0] * 2, prepend=True)
    x = torch.ones(1, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [41]


def test_backward_hook_without_differentiable_inputs():
    module, seen = Double(), []
    weight = torch.ones(1, requires_grad=True)
    module.forward = lambda x: x * weight
    module.register_full_backward_hook(lambda owner, grad_input, grad_output: seen.append((grad_input, grad_output)))
    module(torch.ones(1)).sum().backward()
    assert len(seen) == 1 and seen[0][0] == (None,) and seen[0][1][0].tolist() == [1]
    assert weight.grad.tolist() == [1]


def test_backward_hook_faults():
    module = Double()
    module.register_full_backward_hook(lambda owner, grad_input, grad_output: (1, 2))
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="backward hook returned 2 gradients, expected 1"):
        module(x).sum().backward()
    module.forward = lambda x: {"out": x * 2}
    with pytest.warns(UserWarning, match="not dict"):
        module(x)


def test_backward_hooks_without_grad():
    module, seen = Double(), []
    module.register_full_backward_hook(lambda *args: seen.append(args))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module(torch.ones(1)).tolist() == [2]
    assert seen == []
