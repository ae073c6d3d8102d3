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


@pytest.mark.oracle
def test_hooks_are_told_of_missing_gradients_as_in_torch():
    torch = pytest.importorskip("torch")

    def run(library) -> list:
        class Stop(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return None

        seen = []
        x = library.tensor([2.0], requires_grad=True)
        y = x * 3
        x.register_hook(lambda grad: seen.append(("x", grad)))
        y.register_hook(lambda grad: seen.append(("y", grad)))
        y.grad_fn.register_prehook(lambda grads: seen.append(("before", grads)))
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", outputs)))
        Stop.apply(y).backward()
        return [*seen, x.grad]

    assert run(rl) == run(torch)


def test_hooks_cannot_replace_a_missing_gradient():
    x = rl.ones(2, requires_grad=True) * 2
    x.register_hook(lambda grad: rl.ones(2))
    stop = type("Stop", (rl.autograd.Function,), {
        "forward": staticmethod(lambda ctx, value: value * 1), "backward": staticmethod(lambda ctx, grad: None),
    })  # fmt: skip
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        stop.apply(x).sum().backward()


@pytest.mark.oracle
def test_inputs_of_backward_retain_and_run_as_in_torch():
    torch = pytest.importorskip("torch")

    def run(library) -> list:
        seen = []
        x = library.tensor([2.0], requires_grad=True)
        y = x * 3
        y.grad_fn.register_prehook(lambda grads: seen.append("node"))
        y.register_hook(lambda grad: seen.append("tensor"))
        (y * 5).backward(inputs=[y])
        return [*seen, y.grad.item(), y.retains_grad, x.grad]

    assert run(rl) == run(torch)


def test_saved_tensor_hooks_are_a_stack():
    outer = rl.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)

    def leave(value):
        outer.__exit__()
        return value

    inner = rl.autograd.graph.saved_tensors_hooks(lambda x: x, leave)
    with outer:
        inner.__enter__()
        rl.ones(2, requires_grad=True).sin().sum().backward()  # the backward restores the hooks of before when it ends
    outer.__exit__()
    outer.__exit__()
    result = rl.ones(2, requires_grad=True).exp()
    result.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)  # no others are left


def test_each_operator_has_its_own_type_of_node():
    x = rl.ones(2, requires_grad=True)
    kinds = [type(tensor.grad_fn).__name__ for tensor in (x * 2, x.sum(), rl.zeros(2).copy_(x))]
    assert kinds == ["MulBackward0", "SumBackward0", "CopyBackwards"]
    assert isinstance((x * 2).grad_fn, rl.autograd.graph.Node)


def test_a_leaf_whose_memory_was_replaced_has_a_new_node():
    x = rl.nn.Parameter(rl.ones(4))
    old = x * 2
    with rl.no_grad():
        x.set_(x.detach()[1:])
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="not have been used"):
        rl.autograd.grad(old.sum(), x)


@pytest.mark.parametrize("value", [
    lambda: rl.rand(2), lambda: rl.randn(2), lambda: rl.randint(3, (2,)), lambda: rl.rand_like(rl.ones(2)),
    lambda: rl.bernoulli(rl.ones(2)), lambda: rl.normal(rl.zeros(2), rl.ones(2)), lambda: rl.normal(0.0, 1.0, (2,)),
])  # fmt: skip
def test_new_tensors_have_version_zero(value):
    assert value()._version == 0


def test_gradients_that_cannot_be_assigned():
    x = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(RuntimeError, match="device type"):
        x.grad = rl.ones(2, device="meta")


def test_distinct_values_have_no_derivative():
    x = rl.tensor([1.0, 2.0, 1.0], requires_grad=True)
    values, inverse, counts = rl.unique(x, return_inverse=True, return_counts=True)
    assert values.requires_grad and not inverse.requires_grad and not counts.requires_grad
    with pytest.raises(NotImplementedError, match="_unique2"):
        values.sum().backward()


def test_sizes_make_tensors_of_these_sizes():
    assert rl.Tensor(rl.Size([2, 3])).shape == (2, 3) and rl.Tensor(rl.Size([])).shape == ()
    assert rl.ones(2).new(rl.Size([])).shape == () and rl.ones(2).new([]).shape == (0,)
