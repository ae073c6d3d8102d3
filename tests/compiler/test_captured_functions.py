"""Functions with a backward of their own are part of the captured graph, and so are hooks in the backward pass."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function
from rushlight.autograd.function import once_differentiable
from tests.compiler.functions_of_users import make
from tests.compiler.test_training import check, compiled, leaf, run, same

PROGRAMS = make(torch)
ROUNDED = PROGRAMS.pop("autocast")  # fused code keeps float32 where eager rounds to bfloat16
pytestmark = pytest.mark.filterwarnings("error:compile")


@pytest.fixture(params=["eager", "aot_eager", "inductor"])
def backend(request):
    return request.param


@pytest.fixture(autouse=True)
def eagers_random_numbers(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_FALLBACK_RANDOM", "1")


def checked(function, *inputs, backend):
    """`check`, whose results have eager's nodes in their history where the backend is eager's."""
    return check(function, *inputs, backend=backend, node=None if backend == "eager" else "CompiledFunctionBackward")


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_eagers(name, backend):
    torch.manual_seed(5)
    checked(PROGRAMS[name], leaf(4, 6), leaf(4, 6), backend=backend)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_pytorchs(name):
    pytorch = pytest.importorskip("torch")
    torch.manual_seed(5)
    a, b = leaf(4, 6), leaf(4, 6)
    c, d = (pytorch.tensor(value.tolist(), requires_grad=True) for value in (a, b))
    ours, theirs = compiled(PROGRAMS[name], "inductor")(a, b), make(pytorch)[name](c, d)
    flat, others = (value if isinstance(value, tuple) else (value,) for value in (ours, theirs))
    sum(value.sin().sum() for value in flat if value.requires_grad).backward()
    sum(value.sin().sum() for value in others if value.requires_grad).backward()
    pairs = [*zip(flat, others, strict=True), (a.grad, c.grad), (b.grad, d.grad)]
    for mine, other in pairs:
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine.detach(), torch.tensor(other.tolist()), rtol=1e-4, atol=1e-4)


def test_autocast(backend):
    a, b = leaf(4, 6), leaf(4, 6)
    for ours, theirs in zip(run(compiled(ROUNDED, backend), [a, b]), run(ROUNDED, [a, b]), strict=True):
        same(ours, theirs, tolerance=0.05)


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, (grad * x).sum()


class Dropout(Function):
    @staticmethod
    def forward(ctx, x, rate):
        mask = torch.rand_like(x) > rate
        ctx.save_for_backward(mask)
        ctx.rate = rate
        return x * mask / (1 - rate)

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask / (1 - ctx.rate), None


class Noisy(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad + torch.rand_like(grad)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class SquareOnce(Square):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.factor = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return Scale.apply(self.linear(x), self.factor).relu()


def gradients(model, x):
    model.zero_grad()
    model(x).sin().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_parameters_of_a_module(backend):
    model, x = nn.Sequential(Layer(), nn.Linear(5, 3)), torch.randn(4, 6)
    same(gradients(compiled(model, backend), x), gradients(model, x))


def test_random_numbers(backend):
    checked(lambda a: Dropout.apply(a.exp(), 0.3) * a, leaf(8, 8), backend=backend)
    function = lambda a: Noisy.apply(a * 3).sum()  # noqa: E731
    found = []
    for program in (function, compiled(function, backend)):
        torch.manual_seed(7)
        found.append(run(program, [leaf(4)])[1])
    same(found[1], found[0])


class MeanOfRows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(0) / len(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.shape) / ctx.shape[0] * 2


def test_open_sizes(backend):
    def function(a, w):
        return MeanOfRows.apply(Scale.apply(Square.apply(a @ w), w.sum()))

    fast, w = compiled(function, backend, dynamic=True), leaf(6, 3)
    for rows in (4, 7, 2):
        a = leaf(rows, 6)
        for ours, theirs in zip(run(fast, [a, w]), run(function, [a, w]), strict=True):
            same(ours, theirs)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode, backend):
    function = lambda a: Square.apply(Scale.apply(a, a.sum())) + 1  # noqa: E731
    a = leaf(3)
    with mode():
        found = compiled(function, backend)(a)
        same(found, function(a))
    assert found.grad_fn is None


def test_second_derivatives_come_from_the_captured_program(backend):
    function = lambda a: Square.apply(a * 2).sum()  # noqa: E731
    found = []
    for program in (function, compiled(function, backend)):
        a = torch.arange(1.0, 4.0).requires_grad_()
        (first,) = torch.autograd.grad(program(a), a, create_graph=True)
        found.append((first.detach(), torch.autograd.grad((first * first).sum(), a)))
    same(found[1], found[0])


def test_a_backward_that_is_differentiable_once(backend):
    fast, a = compiled(lambda a: SquareOnce.apply(a * 2).sum(), backend), leaf(3)
    (first,) = torch.autograd.grad(fast(a), a, create_graph=True)
    same(first.detach(), (a * 8).detach())
    with pytest.raises(RuntimeError, match="trying to differentiate twice the backward of SquareOnce"):
        first.sum().backward()


def test_what_was_saved_and_changed_since(backend):
    def function(a):
        b = a * 2
        c = Square.apply(b)
        b.add_(1)
        return c.sum()

    fast = torch.compile(function, backend=backend)
    for program in (function, fast):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            program(leaf(3)).backward()


class DirtyNotReturned(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    @staticmethod
    def backward(ctx, grad):
        return grad


class SavesANumber(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad


class WrongCount(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class WrongSize(WrongCount):
    @staticmethod
    def backward(ctx, grad):
        return grad.sum(0)[:1]


@pytest.mark.parametrize("kind", [DirtyNotReturned, SavesANumber, WrongCount, WrongSize])
def test_errors_are_eagers(kind, backend):
    function = lambda a: kind.apply(a * 1).sum()  # noqa: E731
    found = []
    for program in (function, torch.compile(function, backend=backend)):
        with pytest.raises((RuntimeError, TypeError)) as raised:
            program(leaf(3, 4)).backward()
        found.append((type(raised.value), str(raised.value)))
    assert found[1] == found[0]


FACTOR = 2.0


class ByGlobal(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * FACTOR


def test_guards_see_what_the_backward_reads(backend, monkeypatch):
    fast = compiled(lambda a: ByGlobal.apply(a), backend)
    for factor in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        a = leaf(3)
        fast(a).sum().backward()
        same(a.grad, torch.full((3,), factor))


def test_another_backward_is_captured_anew(backend, monkeypatch):
    fast = compiled(lambda a: ByGlobal.apply(a), backend)
    for backward in (ByGlobal.backward, lambda ctx, grad: grad * 11):
        monkeypatch.setattr(ByGlobal, "backward", staticmethod(backward))
        a = leaf(3)
        fast(a).sum().backward()
        same(a.grad, backward(None, torch.ones(3)))


SEEN = []


def note(ctx, grad):
    SEEN.append(grad)
    return grad


def read_value(ctx, grad):
    return grad * grad.sum().item()


def write_to_gradient(ctx, grad):
    return grad.mul_(2)


def write_to_saved(ctx, grad):
    return ctx.value.add_(1) * grad


def keep_in_ctx(ctx, grad):
    ctx.seen = grad
    return grad


def ask_layout(ctx, grad):
    return grad * 2 if grad.is_contiguous() else grad * 3


def give_a_number(ctx, grad):
    return 3


def fail(ctx, grad):
    raise KeyError("nothing")


UNCAPTURED = {
    note: "a change of",
    read_value: r"Tensor.item\(\) needs the tensor's value",
    write_to_gradient: "it writes to a tensor that it did not make",
    write_to_saved: "it writes to a tensor that it did not make",
    keep_in_ctx: "a change of what the program made before",
    ask_layout: r"Tensor.is_contiguous\(\) of a gradient",
    give_a_number: "in the place of a gradient",
    fail: "it raises KeyError",
}


@pytest.mark.parametrize("backward", UNCAPTURED)
def test_a_backward_that_is_not_captured_ends_the_graph(backward):
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.value = x * 2
            return x * 3

    Kept.backward = staticmethod(backward)

    def function(a):
        return (Kept.apply(a * 2) * 2).sum()

    found = []
    for program in (function, torch.compile(function, backend="aot_eager")):
        a = torch.ones(3, requires_grad=True)
        try:
            program(a).backward()
        except (RuntimeError, KeyError) as error:
            found.append(str(error))
        else:
            found.append(a.grad)
    same(found[1], found[0])
    text = str(torch._dynamo.explain(function)(leaf(3)).break_reasons[0].reason)
    assert text.startswith("the backward of Kept cannot be captured: ")
    with pytest.raises(Exception, match=UNCAPTURED[backward]):
        compiled(function, "aot_eager")(leaf(3))


class Normalized(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad / grad.norm()


class OwnGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.gradient = x.cos()
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return ctx.gradient


@pytest.mark.parametrize("kind", [Normalized, OwnGradient])
def test_a_backward_does_not_run_where_nothing_arrives(kind, backend):
    def function(a):
        b = a.exp()
        return kind.apply(b), b * 3, kind.apply(b[:2])

    for chosen in ((1,), (0,), (2, 1), (0, 1, 2)):
        found = []
        for program in (function, compiled(function, backend)):
            a = torch.arange(1.0, 5.0).requires_grad_()
            results = program(a)
            torch.manual_seed(1)
            sum(results[number].square().sum() for number in chosen).backward()
            found.append(a.grad)
        same(found[1], found[0])


def test_a_gradient_that_is_always_the_same(backend):
    checked(lambda a: OwnGradient.apply(a * 2).sum(), leaf(4), backend=backend)
