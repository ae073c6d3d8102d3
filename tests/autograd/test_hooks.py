"""Hooks on tensors and nodes: order, replacement, removal, retain_grad."""

from __future__ import annotations

import pytest

import rushlight as rl


def leaf(*values: float) -> rl.Tensor:
    return rl.tensor(values, dtype=rl.float32, requires_grad=True)


@pytest.mark.parametrize("is_leaf", [True, False])
def test_tensor_hooks_run_in_order_and_replace(is_leaf):
    x = leaf(1)
    y = x if is_leaf else x * 1
    seen = []
    y.register_hook(lambda grad: seen.append(("first", grad.item())))
    y.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: seen.append(("last", grad.item())))
    (y * 2).sum().backward()
    assert seen == [("first", 2), ("last", 20)] and x.grad.item() == 20


def test_hooks_see_the_whole_gradient_once():
    x = leaf(1)
    y, seen = x * 1, []
    y.register_hook(lambda grad: seen.append(grad.item()))
    (y * 2 + y * 3).sum().backward()
    assert seen == [5]


def test_hooks_run_for_captured_gradients():
    x = leaf(1)
    y = x * 2
    y.register_hook(lambda grad: grad * 7)
    x.register_hook(lambda grad: grad + 1)
    gy, gx = rl.autograd.grad(y.sum(), [y, x])
    assert gy.item() == 7 and gx.item() == 15


def test_hooks_are_removed():
    x = leaf(1)
    handle = x.register_hook(lambda grad: grad * 10)
    with x.register_hook(lambda grad: grad * 100):
        x.sum().backward(retain_graph=True)
    assert x.grad.item() == 1000
    handle.remove()
    handle.remove()
    x.grad = None
    x.sum().backward()
    assert x.grad.item() == 1


def test_a_hook_may_remove_itself():
    x, seen = leaf(1), []

    def once(grad):
        seen.append(grad.item())
        handle.remove()

    handle = x.register_hook(once)
    for _ in range(2):
        x.sum().backward()
    assert seen == [1]


def test_leaf_hooks_outlive_graphs():
    x, seen = leaf(1), []
    x.register_hook(lambda grad: seen.append(1))
    for _ in range(3):
        (x * 2).sum().backward()
    assert seen == [1, 1, 1]


def test_what_a_hook_returns_is_checked():
    x = leaf(1, 2)
    handle = x.register_hook(lambda grad: grad[:1])
    with pytest.raises(RuntimeError, match="hook '<lambda>' has changed the size of value"):
        x.sum().backward()
    handle.remove()
    x.register_hook(lambda grad: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        rl.ones(1).register_hook(print)


@pytest.mark.parametrize("before", [True, False])
def test_retained_gradients_are_those_after_the_hooks(before):
    x = leaf(1)
    y = x * 2
    if before:
        y.retain_grad()
    y.register_hook(lambda grad: grad * 10)
    if not before:
        y.retain_grad()
    y.sum().backward()
    assert y.grad.item() == 10 and x.grad.item() == 20 and y.retains_grad


def test_retaining():
    x = leaf(1)
    x.retain_grad()
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.item() == 2 and x.grad.item() == 4 and not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        rl.ones(1).retain_grad()


def test_retaining_follows_a_tensor_through_in_place_writes():
    x = leaf(3)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    y.sum().backward()
    assert y.grad.item() == 1 and x.grad.item() == 10


def test_node_hooks():
    x = leaf(1)
    y = x * 2
    seen = []
    node = y.grad_fn
    node.register_prehook(lambda grads: seen.append(("before", grads[0].item())))
    node.register_prehook(lambda grads: (grads[0] * 10,))
    node.register_hook(lambda inputs, outputs: seen.append(("after", inputs[0].item(), outputs[0].item())))
    node.register_hook(lambda inputs, outputs: (inputs[0] + 1, None))
    y.sum().backward()
    assert seen == [("before", 1), ("after", 20, 10)] and x.grad.item() == 21


def test_node_hooks_do_not_run_for_mere_captures():
    x = leaf(1)
    y, seen = x * 2, []
    y.grad_fn.register_prehook(lambda grads: seen.append(1))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(2))
    rl.autograd.grad(y.sum(), y, retain_graph=True)
    assert seen == []
    rl.autograd.grad(y.sum(), x)
    assert seen == [1, 2]


def test_post_accumulate_hooks():
    x, seen = leaf(1), []

    def apply_and_clear(tensor):
        seen.append((tensor is x, tensor.grad.item()))
        tensor.grad = None

    handle = x.register_post_accumulate_grad_hook(apply_and_clear)
    (x * 3).sum().backward()
    assert seen == [(True, 3)] and x.grad is None
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.item() == 3 and len(seen) == 1
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 1).register_post_accumulate_grad_hook(print)


@pytest.mark.oracle
def test_order_of_all_hooks_is_torchs():
    torch = pytest.importorskip("torch")

    def run(library) -> list:
        seen = []
        x = library.tensor([2.0], requires_grad=True)
        y = x * 3
        z = y * y
        for name, tensor in (("x", x), ("y", y), ("z", z)):
            tensor.register_hook(lambda grad, name=name: seen.append((name, grad.item())))
        x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad.item())))
        for name, tensor in (("y", y), ("z", z)):
            tensor.grad_fn.register_prehook(lambda grads, name=name: seen.append((name, "before", grads[0].item())))
            tensor.grad_fn.register_hook(lambda i, o, name=name: seen.append((name, "after", i[0].item(), o[0].item())))
        z.backward()
        return seen

    assert run(rl) == run(torch)
