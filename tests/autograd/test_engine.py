"""backward and grad: accumulation, keeping graphs, selection of inputs, order, errors."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.autograd.node import Node


def leaf(*values: float) -> rl.Tensor:
    return rl.tensor(values, dtype=rl.float32, requires_grad=True)


def test_gradients_accumulate_at_leaves():
    x = leaf(1, 2)
    (x * x).sum().backward()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [2 + 3, 4 + 3]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_paths_to_one_leaf_add_up():
    x = leaf(3)
    y = x * x
    (y * x + y + x).sum().backward()
    assert x.grad.item() == 3 * 9 + 2 * 3 + 1


def test_accumulated_gradients_belong_to_the_leaf_alone():
    x, y = leaf(1), leaf(1)
    seed = rl.ones(1)
    (x + y).backward(seed)
    assert len({t.data_ptr() for t in (x.grad, y.grad, seed)}) == 3
    x.grad.zero_()
    assert y.grad.item() == 1 and seed.item() == 1


def test_accumulation_is_in_place_without_history():
    x = leaf(1)
    x.sum().backward()
    first = x.grad
    x.sum().backward()
    assert x.grad is first and first.item() == 2 and not first.requires_grad


def test_gradients_lie_as_their_leaf():
    x = rl.ones(2, 3).t().clone().requires_grad_()
    assert x.stride() == (1, 3)
    x.contiguous().mul(2).sum().backward()
    (x.t() @ rl.ones(3, 2)).sum().backward()
    assert x.grad.stride() == (1, 3)


def test_graphs_are_freed_unless_retained():
    x = leaf(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn.next_functions[0][0]._saved_self  # noqa: B018


def test_graphs_without_saved_tensors_can_run_again():
    x = leaf(2)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.item() == 2


def test_only_what_a_gradient_needs_is_saved():
    x, w = leaf(2), rl.tensor([3.0])
    y = x + 0
    z = y * w
    y.add_(1)  # no gradient of w is wanted, so y was not saved
    z.sum().backward()
    assert x.grad.item() == 3
    x.grad = None
    y = x + 0
    z = (y * leaf(3)).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_double_backward():
    x = leaf(2)
    (first,) = rl.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.item() == 12 and first.requires_grad
    (second,) = rl.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = rl.autograd.grad(second.sum(), x)
    assert second.item() == 12 and third.item() == 6 and not third.requires_grad


def test_backward_with_create_graph_gives_gradients_with_history():
    x = leaf(2)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad.sum().backward()
    assert x.grad.item() == 12 + 12


def test_grad_touches_no_leaf():
    x, y = leaf(1), leaf(2)
    gx, gy = rl.autograd.grad((x * y).sum(), [x, y])
    assert (gx.item(), gy.item()) == (2, 1) and x.grad is None and y.grad is None


def test_grad_of_intermediate_values():
    x = leaf(2)
    y = x * 3
    z = (y * y).sum()
    gy, gx = rl.autograd.grad(z, [y, x])
    assert (gy.item(), gx.item()) == (12, 36)
    (itself,) = rl.autograd.grad(y, y, rl.tensor([5.0]), retain_graph=True)
    assert itself.item() == 5


def test_unused_inputs():
    x, unused = leaf(1), leaf(1)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
        rl.autograd.grad((x * 2).sum(), [x, unused])
    assert rl.autograd.grad((x * 2).sum(), [x, unused], allow_unused=True)[1] is None
    assert rl.autograd.grad((x * 2).sum(), [unused], materialize_grads=True)[0].tolist() == [0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        rl.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_backward_to_chosen_inputs_only():
    x, y = leaf(1), leaf(2)
    middle = x * y
    (middle * y).sum().backward(inputs=[y, middle])
    assert y.grad.item() == 1 * 2 * 2 and x.grad is None
    assert middle._impl.autograd.grad.item() == 2


def test_several_roots():
    x = leaf(2)
    rl.autograd.backward([(x * 2).sum(), x * 3], [None, rl.tensor([10.0])])
    assert x.grad.item() == 32
    assert rl.autograd.grad([x.sum(), (x * x).sum()], x)[0].item() == 5
    y = (x * x).sum()
    rl.autograd.backward([y, y])
    assert x.grad.item() == 32 + 8


def test_broadcast_operands_get_summed_gradients():
    x, y = rl.ones(3, 1, requires_grad=True), rl.ones(2, 1, 4, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.shape == (3, 1) and x.grad.tolist() == [[8]] * 3 and y.grad.shape == (2, 1, 4) and y.grad[0, 0, 0] == 3


def test_gradients_have_their_inputs_dtype():
    x, half = rl.ones(2, requires_grad=True), rl.ones(2, dtype=rl.float16, requires_grad=True)
    (x * half).sum().backward()
    assert x.grad.dtype is rl.float32 and half.grad.dtype is rl.float16
    integers = rl.arange(2)
    (x * integers).sum().backward()
    assert integers.grad is None


def test_nodes_run_latest_first():
    order = []

    class Noted(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            order.append(ctx.name)
            return grad, None

    x = leaf(1)
    a = Noted.apply(x, "a")
    b = Noted.apply(x, "b")
    c = Noted.apply(a, "c")
    (c + b).backward()
    assert order == ["c", "b", "a"]


def test_unneeded_nodes_do_not_run():
    ran = []

    class Noted(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            ran.append(ctx.name)
            return grad, None

    x, y = leaf(1), leaf(1)
    total = Noted.apply(x, "x") + Noted.apply(y, "y")
    rl.autograd.grad(total, y)
    assert ran == ["y"]


def test_the_grad_mode_is_that_of_create_graph():
    modes = []

    class Noted(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            modes.append(rl.is_grad_enabled())
            return grad

    x = leaf(1)
    with rl.no_grad():
        pass
    Noted.apply(x).backward()
    Noted.apply(x).backward(create_graph=True)
    y = Noted.apply(x)
    with rl.no_grad():
        y.backward()
        assert not rl.is_grad_enabled()
    assert modes == [False, True, False] and rl.is_grad_enabled()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda x: rl.ones(1).backward(), "element 0 of tensors does not require grad and does not have a grad_fn"),
        (lambda x: (x * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda x: x.sum().backward(rl.ones(2)), r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\)"),
        (lambda x: rl.autograd.backward([x.sum(), x.sum()], [rl.tensor(1.0)]), "got 2 tensors and 1 gradients"),
        (lambda x: x.sum().backward(inputs=[]), r"`inputs` argument to `backward\(\)` cannot be empty"),
        (lambda x: x.sum().backward(inputs=[rl.ones(1)]), "One of the differentiated Tensors does not require grad"),
        (lambda x: rl.autograd.grad(x.sum(), []), r"`inputs` argument to `grad\(\)` cannot be empty"),
        (lambda x: rl.autograd.grad(x.sum(), rl.ones(1)), "One of the differentiated Tensors does not require grad"),
        (lambda x: x.detach_().requires_grad_().view(2).detach_(), "Can't detach views in-place. Use detach"),
        (lambda x: setattr(x * 2, "requires_grad", False), "you can only change requires_grad flags of leaf variables"),
        (lambda x: rl.arange(2).requires_grad_(), "only Tensors of floating point dtype can require gradients"),
        (lambda x: setattr(x, "grad", rl.ones(3)), r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"),
        (lambda x: setattr(x, "grad", rl.ones(2).double()), "attempting to assign a gradient with dtype 'torch.float64'"),
    ],
)
def test_errors(use, message):
    with pytest.raises(RuntimeError, match=message):
        use(rl.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        rl.ones(1).grad = 3


def test_operators_without_a_derivative_say_so_when_it_is_needed():
    library = rl.library.Library("test_engine", "DEF")
    library.define("opaque(Tensor self) -> Tensor")
    library.impl("opaque", lambda self: self + 0, "CPU")
    y = rl.ops.test_engine.opaque(leaf(1))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="derivative for test_engine::opaque is not implemented"):
        y.backward()
    library._destroy()


def test_nodes_show_the_graph():
    x = leaf(1)
    y = (x * 2).exp()
    node = y.grad_fn
    assert node.name() == "ExpBackward0" and repr(node).startswith("<ExpBackward0 object at 0x")
    ((multiply, index),) = node.next_functions
    assert multiply.name() == "MulBackward0" and index == 0
    assert multiply.next_functions[0][0].name() == "AccumulateGrad" and multiply.next_functions[1] == (None, 0)
    assert multiply.next_functions[0][0].variable is x and isinstance(node, Node)
    assert node._saved_result.tolist() == y.tolist() and node._saved_result.grad_fn is node
    with pytest.raises(AttributeError, match="'ExpBackward0' object has no attribute '_saved_nothing'"):
        node._saved_nothing  # noqa: B018
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert x.is_leaf and not y.is_leaf and y.output_nr == 0


def test_reading_grad_of_a_non_leaf_warns():
    y = leaf(1) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_detached_tensors_have_no_history():
    x = leaf(2)
    y = x * 2
    for detached in (y.detach(), y.data, (x.detach() * y.detach())):
        assert not detached.requires_grad and detached.grad_fn is None and detached.is_leaf
    assert y.detach().data_ptr() == y.data_ptr() and not y.detach()._is_view()
    with rl.enable_grad():
        assert not rl.ops.aten.detach(y).requires_grad
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
