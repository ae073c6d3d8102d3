"""Function: what forward may do, what backward gets, and what both are told when they are wrong."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.autograd import Function, once_differentiable


def leaf(*values: float) -> rl.Tensor:
    return rl.tensor(values, dtype=rl.float32, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Scale(Function):
    """New style, with arguments that are no tensors and None among what is saved."""

    @staticmethod
    def forward(x, factor, note=None):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor, *_ = inputs
        ctx.save_for_backward(None, output)

    @staticmethod
    def backward(ctx, grad):
        nothing, output = ctx.saved_tensors
        assert nothing is None and output.requires_grad
        return grad * ctx.factor, None, None


def test_a_function_is_part_of_the_graph():
    x = leaf(2)
    y = Cube.apply(x * 1)
    assert y.grad_fn.name() == "CubeBackward" and y.requires_grad and not y.is_leaf
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.item() == 12
    assert not Cube.apply(rl.ones(1)).requires_grad
    with rl.no_grad():
        assert not Cube.apply(x).requires_grad


def test_functions_are_differentiable_twice():
    x = leaf(2)
    (first,) = rl.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = rl.autograd.grad(first.sum(), x)
    assert second.item() == 12
    assert rl.autograd.gradcheck(Cube.apply, rl.randn(3, dtype=rl.float64, requires_grad=True))


def test_setup_context_and_arguments_that_are_no_tensors():
    x = leaf(2)
    y = Scale.apply(x, 5, "note")
    y.sum().backward()
    assert x.grad.item() == 5 and y.grad_fn.next_functions[1:] == ((None, 0), (None, 0))
    assert y.grad_fn.factor == 5, "attributes of the context are the node's"


def test_forward_does_not_record():
    class Check(Function):
        @staticmethod
        def forward(ctx, x, y):
            assert not rl.is_grad_enabled() and ctx.needs_input_grad == (True, False)
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    Check.apply(leaf(1), rl.ones(1)).backward()


def test_several_outputs_and_missing_gradients():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3, "text"

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append((a, b, c))
            return a if a is not None else b * 3, None

    x = leaf(1)
    a, b, text = Two.apply(x, True)
    assert text == "text" and (a.output_nr, b.output_nr) == (0, 1) and a.grad_fn is b.grad_fn
    a.backward()
    assert seen[0][0].item() == 1 and seen[0][1].tolist() == [0] and seen[0][2] is None
    Two.apply(x, False)[1].backward()
    assert seen[1][0] is None and seen[1][1].item() == 1


def test_non_differentiable_outputs():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            half = x / 2
            ctx.mark_non_differentiable(order, half)
            ctx.save_for_backward(order)
            return values, order, half

        @staticmethod
        def backward(ctx, grad, _order, _half):
            (order,) = ctx.saved_tensors
            return rl.zeros_like(grad).scatter(0, order, grad)

    x = leaf(3, 1, 2)
    values, order, half = Sorted.apply(x)
    assert values.requires_grad and not order.requires_grad and not half.requires_grad
    (values * rl.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3, 1, 2]


class WriteTwice(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_mark_dirty():
    x = leaf(1, 2)
    y = x * 1
    z = WriteTwice.apply(y)
    assert z is y and y.grad_fn.name() == "WriteTwiceBackward" and y.tolist() == [2, 4]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        WriteTwice.apply(leaf(1))


def test_mark_dirty_on_a_view():
    x = leaf(1, 2)
    y = x * 1
    WriteTwice.apply(y[0])
    assert y.grad_fn.name() == "CopySlices"
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 4]


def test_dirty_inputs_must_be_returned():
    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.add_(1))
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Forgets.apply(leaf(1) * 1)


def test_inputs_returned_as_they_are():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(1)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and x.is_leaf and y.grad_fn.name() == "SameBackward"
    with pytest.raises(RuntimeError, match="Output 0 of Same is a view and is being modified inplace"):
        y.add_(1)
    y.backward()
    assert x.grad.item() == 10


def test_views_made_inside_are_not_written_to():
    class Flat(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.sizes = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return grad.view(ctx.sizes)

    x = rl.ones(2, 2, requires_grad=True)
    y = x * 1
    flat = Flat.apply(y)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        flat.mul_(2)
    flat.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_saved_tensors_are_checked_and_freed():
    x = leaf(2)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    z = Cube.apply(x)
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()
    z = Cube.apply(x)
    z.backward(retain_graph=True)
    z.backward()


def wrong(backward=lambda ctx, grad: grad, forward=lambda ctx, x, y: x + y):
    return type("Wrong", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (wrong(), RuntimeError, r"function WrongBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (wrong(lambda ctx, g: (g, g, g)), RuntimeError, r"expected 2, got 3"),
        (wrong(lambda ctx, g: (g, 3)), RuntimeError, r"expected Variable or None \(got int\) as gradient 1"),
        (wrong(lambda ctx, g: (rl.ones(5), g)), RuntimeError, r"returned an invalid gradient - got \[5\] but expected shape"),
        (wrong(forward=lambda ctx, x, y: ctx.save_for_backward(3) or x), TypeError, "save_for_backward can only save variables"),
    ],
)
def test_wrong_functions_are_named(function, error, message):
    with pytest.raises(error, match=message):
        function.apply(leaf(1, 2), leaf(3, 4)).sum().backward()


def test_superfluous_none_gradients_are_ignored():
    x = leaf(1)
    wrong(lambda ctx, g: (g, None, None, None)).apply(x, leaf(1)).backward()
    assert x.grad.item() == 1


def test_functions_are_not_instantiated_and_need_both_methods():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Cube()
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        made(leaf(1))

    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Nothing.apply(leaf(1))
    Nothing.forward = staticmethod(lambda ctx, x: x * 2)
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Nothing.apply(leaf(1)).backward()


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not rl.is_grad_enabled()
            return 2 * grad * ctx.saved_tensors[0]

    x = leaf(3)
    Once.apply(x).backward()
    assert x.grad.item() == 6
    seed = rl.ones(1, requires_grad=True)
    (first,) = rl.autograd.grad(Once.apply(x), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        first.sum().backward()


def test_inputs_that_are_returned_without_recording_are_views():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

    x = rl.ones(2)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y += leaf(1, 1)


def tangents_of(forward, jvp):
    """Return the output's and the input's tangent of a Function, for the tangent 3."""
    made = type("Made", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})
    with rl.autograd.forward_ad.dual_level():
        x = rl.autograd.forward_ad.make_dual(rl.ones(4), rl.full((4,), 3.0))
        found = made.apply(x)
        last = found[-1] if isinstance(found, tuple) else found
        return [rl.autograd.forward_ad.unpack_dual(value).tangent.tolist() for value in (last, x)]


def double(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def with_constant(ctx, x):
    constant = x.clone()
    ctx.mark_non_differentiable(constant)
    return x * 2, constant


@pytest.mark.parametrize("forward, jvp, message", [
    (lambda ctx, x: x[:2], lambda ctx, t: t[:2].clone(), "the jvp is not returning a view"),
    (lambda ctx, x: x[:2], lambda ctx, t: t.clone()[:2], "not returning a view of the given grad input"),
    (lambda ctx, x: x, lambda ctx, t: t * 2, "the jvp is not returning a view"),
    (double, lambda ctx, t: t * 2, "must modify the corresponding gradient inplace"),
    (double, lambda ctx, t: t, "must modify the corresponding gradient inplace"),
    (with_constant, lambda ctx, t: (t * 2, t.clone()), "You should return None at that position"),
])  # fmt: skip
def test_tangents_must_alias_like_outputs(forward, jvp, message):
    with pytest.raises(RuntimeError, match=message):
        tangents_of(forward, jvp)


def test_tangents_that_alias():
    assert tangents_of(lambda ctx, x: x[:2], lambda ctx, t: t[:2]) == [[3.0, 3.0], [3.0] * 4]
    assert tangents_of(lambda ctx, x: x, lambda ctx, t: t.view_as(t)) == [[3.0] * 4, [3.0] * 4]
    assert tangents_of(double, lambda ctx, t: t.mul_(2)) == [[6.0] * 4, [6.0] * 4]


def test_jvp_sees_what_was_saved_for_it():
    seen = []

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            seen.append(ctx.saved_tensors)
            return t * 2

    with rl.autograd.forward_ad.dual_level():
        Twice.apply(rl.autograd.forward_ad.make_dual(rl.ones(2), rl.ones(2)))
    assert seen == [()]
