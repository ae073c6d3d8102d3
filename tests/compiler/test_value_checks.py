"""Checks that read values: compiled code raises what eager raises, and a handler in the program gets it."""

import contextlib

import pytest

import rushlight as torch

F = torch.nn.functional

WRONG = {
    "bernoulli": (lambda x: torch.bernoulli(x * 0 + 2), (torch.ones(4),)),
    "bernoulli of a number": (lambda x: torch.bernoulli(x, 2.0), (torch.ones(4),)),
    "normal": (lambda x: torch.normal(0.0, x), (torch.tensor([1.0, -1.0]),)),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x, x * 0), (torch.tensor([0.5, 2.0]),)),
    "binary_cross_entropy of NaN": (lambda x: F.binary_cross_entropy(x, x * 0), (torch.tensor([0.5, float("nan")]),)),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, torch.ones(2)), (torch.ones(4),)),
    "one_hot": (lambda i: F.one_hot(i, 3), (torch.tensor([0, 3]),)),
    "one_hot below": (lambda i: F.one_hot(i, 3), (torch.tensor([0, -1]),)),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), (torch.ones(2, 3), torch.tensor([1, 3]))),
    "nll_loss": (lambda x, i: F.nll_loss(x, i), (torch.ones(2, 3), torch.tensor([-3, 0]))),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), (torch.ones(3), torch.tensor([3]))),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:1]), (torch.ones(3), torch.tensor([3]))),
    "lerp": (lambda i: torch.lerp(i, i, 0.5), (torch.tensor([3]),)),
}


def outcome(function, args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error).partition("(")[0].partition(",")[0].partition(": bernoulli_")[0].strip()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_raise_as_in_eager(name):
    function, args = WRONG[name]
    expected = outcome(function, args)
    assert isinstance(expected, tuple)
    assert outcome(torch.compile(function), args) == expected


RIGHT = {
    "bernoulli": (lambda x: torch.bernoulli(x), (torch.tensor([0.0, 1.0] * 9),)),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x, x), (torch.linspace(0, 1, 37),)),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, torch.arange(4.0)), (torch.tensor([1.0, -1, 2, -2, 3]),)),
    "one_hot": (lambda i: F.one_hot(i, 3), (torch.tensor([0, 2, 1] * 7),)),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i, ignore_index=-9), (torch.rand(3, 5), torch.tensor([4, -9, 0]))),
    "index_fill": (lambda x, i: x.index_fill(0, i, 7.0), (torch.ones(3), torch.tensor([-1, 0]))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_values_pass(name):
    function, args = RIGHT[name]
    torch.testing.assert_close(torch.compile(function)(*args), function(*args))


def test_gradients_pass_through_a_check():
    def loss(x):
        return F.binary_cross_entropy(x, torch.ones_like(x))

    x, y = (torch.tensor([0.25, 0.5], requires_grad=True) for _ in range(2))
    torch.compile(loss)(x).backward()
    loss(y).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_a_handler_of_the_program_gets_the_error():
    @torch.compile
    def classes(i):
        try:
            return F.one_hot(i, 3)
        except RuntimeError:
            return i * 0 - 1

    assert classes(torch.tensor([1])).tolist() == [[0, 1, 0]]
    assert classes(torch.tensor([5])).tolist() == [-1]


def test_checks_hold_for_open_sizes():
    compiled = torch.compile(lambda x, i: F.one_hot(i, x.size(0)), dynamic=True)
    assert compiled(torch.ones(3), torch.tensor([2])).tolist() == [[0, 0, 1]]
    assert compiled(torch.ones(4), torch.tensor([3])).tolist() == [[0, 0, 0, 1]]
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        compiled(torch.ones(3), torch.tensor([3]))


def test_vmap_checks_every_example():
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        torch.func.vmap(lambda i: F.one_hot(i, 3))(torch.tensor([[1], [3]]))
    assert torch.func.vmap(lambda i: F.one_hot(i, 3))(torch.tensor([[1], [2]])).shape == (2, 1, 3)


HANDLED = {
    "an item": (lambda x: x[torch.tensor([5])], IndexError),
    "a factor": (lambda x: torch.linalg.cholesky(-x.outer(x)), RuntimeError),
    "a called function": (lambda x: F.one_hot(x.long() + 5, 3), RuntimeError),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", HANDLED)
def test_errors_at_run_time_reach_handlers(name, backend):
    wrong, kind = HANDLED[name]
    scale = 3

    @torch.compile(backend=backend)
    def program(x, *args, k=2, **options):
        try:
            y = wrong(x * scale)
        except kind:
            return x * -k, args, options
        return y

    result, args, options = program(torch.ones(3), 7, k=4, z=8)
    assert result.tolist() == [-4.0] * 3 and args == (7,) and options == {"z": 8}


def test_context_managers_swallow_errors_at_run_time():
    @torch.compile
    def program(x, i):
        with contextlib.suppress(IndexError):
            return x[i]
        return x - 1

    assert program(torch.ones(3), torch.tensor([1])).tolist() == [1.0]
    assert program(torch.ones(3), torch.tensor([9])).tolist() == [0.0] * 3


def test_writes_before_the_error_happen_once():
    @torch.compile
    def program(x, i):
        x.add_(1)
        try:
            return x[i]
        except IndexError:
            return x * 10

    x = torch.zeros(3)
    assert program(x, torch.tensor([9])).tolist() == [10.0] * 3
    assert x.tolist() == [1.0] * 3


def test_errors_without_a_handler_are_raised():
    @torch.compile
    def program(x, i):
        try:
            return x[i]
        except ValueError:
            return x

    with pytest.raises(IndexError):
        program(torch.zeros(3), torch.tensor([9]))
