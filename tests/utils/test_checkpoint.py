"""Checkpointing: the same values and gradients as without it, second runs, random numbers, nesting, and errors."""

from __future__ import annotations

import functools
import gc
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ops.modes import DispatchMode
from rushlight.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

pytestmark = pytest.mark.usefixtures("small_heap")

BOTH = pytest.mark.parametrize("reentrant", [False, True])


def block(width: int = 4):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.5), nn.Linear(width, width))


def gradients(module, run):
    module.zero_grad()
    torch.manual_seed(7)
    x = torch.ones(3, 4, requires_grad=True)
    y = run(x)
    torch.rand(3)  # numbers drawn in between don't matter
    y.exp().sum().backward()
    return [x.grad.tolist(), *(parameter.grad.tolist() for parameter in module.parameters())]


@BOTH
def test_gradients_are_those_without_it(reentrant):
    module = block()
    assert gradients(module, lambda x: checkpoint(module, x, use_reentrant=reentrant)) == gradients(module, module)


@BOTH
def test_the_function_runs_twice_and_its_inside_is_not_kept(reentrant):
    runs, inner = [], []

    def function(x):
        y = x.exp()
        runs.append(1)
        inner.append(weakref.ref(y._impl))
        return y.sin()

    x = torch.ones(2, requires_grad=True)
    y = checkpoint(function, x, use_reentrant=reentrant)
    gc.collect()
    assert (len(runs), inner[0]()) == (1, None)
    y.sum().backward()
    assert len(runs) == 2


def test_early_stop():
    runs = []

    def function(x):
        y = x.exp().exp()
        runs.append("end")
        return y

    for enabled, expected in ((True, 1), (False, 2)):
        runs.clear()
        x = torch.ones(2, requires_grad=True)
        with set_checkpoint_early_stop(enabled):
            y = checkpoint(lambda a: function(a) * 2, x, use_reentrant=False)
        y.sum().backward()
        assert len(runs) == expected


def test_keywords_several_outputs_and_double_backward():
    def function(a, scale=None):
        return {"x": (a * scale).exp(), "y": a**3}

    a, scale = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    out = checkpoint(function, a, scale=scale, use_reentrant=False)
    (first,) = torch.autograd.grad(out["x"] + out["y"], a, create_graph=True)
    (second,) = torch.autograd.grad(first, a, retain_graph=True)
    assert second.item() == pytest.approx(4 * 7.389056 + 6, rel=1e-4)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(function, a, scale=scale, use_reentrant=True)


def test_a_kept_graph_runs_again():
    x = torch.ones(2, requires_grad=True)
    y = checkpoint(lambda a: a.exp().sin(), x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert torch.allclose(x.grad, first * 2)


def test_nested():
    x, runs = torch.ones(2, requires_grad=True), []

    def inner(a):
        runs.append("inner")
        return a.exp().sin()

    def outer(a):
        runs.append("outer")
        return checkpoint(inner, a * 2, use_reentrant=False).exp()

    y = checkpoint(outer, x, use_reentrant=False).sum()
    plain = (x * 2).exp().sin().exp().sum()
    (expected,) = torch.autograd.grad(plain, x)
    y.backward()
    assert torch.allclose(x.grad, expected)
    assert runs[:2] == ["outer", "inner"]


def test_contexts_and_autocast():
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *error):
            pass

    x = torch.ones(2, 2, requires_grad=True)

    def function(a):
        seen.append((a @ a).dtype)
        return (a @ a).exp()

    with torch.autocast("cpu"):
        y = checkpoint(function, x, use_reentrant=False, context_fn=lambda: (Note("first"), Note("second")))
    y.float().sum().backward()
    assert seen == ["first", torch.bfloat16, "second", torch.bfloat16]


def test_a_second_run_that_differs_is_an_error():
    runs = []

    def shorter(a):
        runs.append(1)
        return a.exp().sin() if len(runs) == 1 else a.exp()

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(CheckpointError, match="different number of tensors was saved"):
        checkpoint(shorter, x, use_reentrant=False).sum().backward()
    runs.clear()

    def smaller(a):
        runs.append(1)
        return a.exp() if len(runs) == 1 else a[:1].exp()

    with pytest.raises(CheckpointError, match="tensor at position 0"):
        checkpoint(smaller, x, use_reentrant=False).sum().backward()


def test_what_the_reentrant_way_refuses():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="should be passed explicitly"):
        y = checkpoint(lambda a: a * 2, x)
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\)"):
        torch.autograd.grad(y.sum(), x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(lambda a: a * 2, torch.ones(2), use_reentrant=True)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(lambda a: a, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(lambda a: a, x, use_reentrant=False, determinism_check="sometimes")


@BOTH
def test_sequential(reentrant):
    torch.manual_seed(0)
    module = nn.Sequential(*[part for _ in range(5) for part in (nn.Linear(4, 4), nn.Tanh())])
    run = gradients(module, lambda x: checkpoint_sequential(module, 3, x, use_reentrant=reentrant))
    assert run == gradients(module, module)


def test_without_recording_it_is_the_function():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert checkpoint(lambda a: a * 2, x, use_reentrant=False).tolist() == [2.0, 2.0]


# Selective checkpointing

SAVED = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.max.dim]
POLICIES = {
    "operators": SAVED, "all": lambda context, op, *args, **kwargs: True,
    "choices": lambda context, op, *args, **kwargs:
        CheckpointPolicy.MUST_SAVE if op in SAVED else CheckpointPolicy.PREFER_RECOMPUTE,
}  # fmt: skip


def selective(policy, **options):
    return functools.partial(create_selective_checkpoint_contexts, policy, **options)


class Calls(DispatchMode):
    """The operators that were called below it."""

    def __init__(self):
        self.ops = []

    def __torch_dispatch__(self, op, types, args, kwargs):
        self.ops.append(op)
        return op(*args, **kwargs)


def inner(x, w):
    h = (x @ w).sin().exp()
    return (h.max(1).values.view(2, 2) @ w[:2, :2]) * h[0, 0] + h.t().sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_selected_results_are_kept(name, compiled):
    found, again = [], Calls()
    for options in ({}, {"context_fn": selective(POLICIES[name])}):
        x, w = (torch.linspace(-1, 1, 16).view(4, 4).requires_grad_() for _ in range(2))

        def run(x, w, options=options):
            return checkpoint(inner, x, w, use_reentrant=False, **options)

        run = torch.compile(run, backend="aot_eager") if compiled else run
        y = run(x, w)
        with again:
            y.square().sum().backward()
        found.append((y.detach(), x.grad, w.grad))
        again.ops.append(None)
    for mine, other in zip(found[1], found[0], strict=True):
        assert torch.equal(mine, other)
    if not compiled:
        before, now = again.ops[: again.ops.index(None)], again.ops[again.ops.index(None) :]
        mm = torch.ops.aten.mm.default
        assert before.count(mm) == now.count(mm) + 2  # besides those of the gradients
        assert (torch.ops.aten.exp.default in now) == (name != "all")


def test_one_second_run_of_selected_results():
    x = torch.ones(2, 2, requires_grad=True)
    y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=selective(SAVED))
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward an extra time"):
        y.sum().backward()


def test_selected_results_that_are_written_to():
    def function(x):
        y = x @ x
        y.add_(1)
        return y.sin()

    x = torch.ones(2, 2, requires_grad=True)
    y = checkpoint(function, x, use_reentrant=False, context_fn=selective(SAVED))
    with pytest.raises(RuntimeError, match="has been mutated"):
        y.sum().backward()
    y = checkpoint(function, x, use_reentrant=False, context_fn=selective(SAVED, allow_cache_entry_mutation=True))
    y.sum().backward()


def test_what_is_no_policy():
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts(5)
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got: 1"):
        create_selective_checkpoint_contexts([1])
