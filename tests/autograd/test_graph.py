"""Hooks on saved tensors and on several gradients, gradient edges, and graphs of great depth."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import Function, grad
from rushlight.autograd.graph import (
    GradientEdge,
    Node,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)

pytestmark = pytest.mark.usefixtures("small_heap")


def leaf(*values: float):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def test_saved_tensors_go_through_the_hooks():
    x, packed, unpacked = leaf(), [], []
    with saved_tensors_hooks(lambda t: packed.append(t.clone()) or len(packed) - 1, lambda n: unpacked.append(n) or packed[n]):
        y = (x * x).exp()
    assert len(packed) == 3
    y.sum().backward()
    assert sorted(unpacked) == [0, 1, 2]
    assert np.allclose(x.grad.numpy(), 2 * x.detach().numpy() * np.exp(x.detach().numpy() ** 2))


def test_double_backward_through_hooks():
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy):
        y = x**3 * x.exp()
        (first,) = grad(y, x, create_graph=True)
        (second,) = grad(first, x)
    assert second.item() == pytest.approx((27 + 6 * 9 + 6 * 3) * np.exp(3), rel=1e-5)


def test_the_innermost_hooks_count_and_functions_are_hooked_too():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x, seen = leaf(), []
    with saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            y = Square.apply(x)
        z = y * y
    z.sum().backward()
    assert seen == ["inner", "outer", "outer"]
    assert x.grad.tolist() == [4.0, 32.0]


def test_hooks_by_saved_tensor():
    x = leaf(2.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 10, lambda t: t)
    y.backward()
    assert x.grad.item() == pytest.approx(10 * np.exp(2.0))


def test_wrong_hooks():
    x = leaf()
    with pytest.raises(RuntimeError, match="modifying its input in place"), saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        x.exp()
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
    with saved_tensors_hooks(lambda t: t, lambda t: t), pytest.raises(RuntimeError, match="not here"):
        with disable_saved_tensors_hooks("not here"):
            pass
    x.exp().sum().backward()


def test_save_on_cpu():
    x = leaf()
    with save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_multi_grad_hook_waits_for_all():
    a, b, c, seen = leaf(1.0), leaf(2.0), leaf(3.0), []
    handle = register_multi_grad_hook((a, b, c), lambda grads: seen.append([g if g is None else g.item() for g in grads]))
    (a * b).backward()
    (a * c * 2).backward(inputs=[a, c])
    (a * c).backward(inputs=[a])
    assert seen == [[2.0, 1.0, None], [6.0, None, 2.0], [3.0, None, None]]
    handle.remove()
    (a * b).backward()
    assert len(seen) == 3


def test_multi_grad_hook_takes_the_first():
    a, b, seen = leaf(1.0), leaf(2.0), []
    with register_multi_grad_hook((a, b), lambda g: seen.append(g.item()), mode="any"):
        (a * b).backward()
        (a * b).backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="Expects mode"):
        register_multi_grad_hook((a, b), print, mode="some")
    with pytest.raises(RuntimeError, match="does not require gradients"):
        register_multi_grad_hook((torch.ones(1),), print)


def test_edges_stand_for_tensors():
    x = leaf(2.0)
    y = x * 3
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    assert isinstance(edge.node, Node)
    z = y**2
    assert grad(z, edge, retain_graph=True)[0].item() == 12.0
    assert grad(z, [get_gradient_edge(x), edge], retain_graph=True)[0].item() == 36.0
    assert grad(edge, x, torch.tensor([1.0]))[0].item() == 3.0
    other = leaf(1.0) * 2
    z = leaf(1.0) * 2
    assert grad(z, get_gradient_edge(other), materialize_grads=True)[0].item() == 0.0
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(torch.ones(1))


def test_batched_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x**2
    (rows,) = grad(y, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]


def test_writes_behind_the_tape_can_be_told():
    x = leaf()
    y = x.exp()
    increment_version(y)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.sum().backward()


def test_nodes_print_and_hook():
    x = leaf()
    y = (x * 2).sum()
    node = y.grad_fn
    assert node.name() == "SumBackward0"
    assert node.next_functions[0][0].name() == "MulBackward0"
    assert node.next_functions[0][0].next_functions[0][0].name() == "AccumulateGrad"
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    seen = []
    node.next_functions[0][0].register_prehook(lambda grads: seen.append("before") or (grads[0] * 10,))
    node.next_functions[0][0].register_hook(lambda results, grads: seen.append("after"))
    y.backward()
    assert seen == ["before", "after"]
    assert x.grad.tolist() == [20.0, 20.0]


def test_a_hook_that_raises_leaves_all_in_order():
    x = leaf()
    y = x * 2
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.is_grad_enabled()
    handle.remove()
    y = x * 2
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("length", [100_000])
def test_deep_graphs_run_and_go_away(length):
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    y = x
    for _ in range(length):
        y = y.neg()
    del y  # never run
    gc.collect()


def test_backward_in_threads():
    weight = torch.ones(4, requires_grad=True)

    def work():
        for _ in range(20):
            (weight * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert weight.grad.tolist() == [160.0] * 4
