"""Methods beside the operators: subclasses over the same memory, Python functions, questions about memory."""

import copy

import pytest

import rushlight as torch


class Marked(torch.Tensor):
    pass


def test_as_subclass_shares_memory_and_gradients():
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Marked)
    y.sum().backward()
    assert type(y) is Marked and x.grad.tolist() == [2, 2]
    z = torch.zeros(2)
    z.as_subclass(Marked).fill_(3)
    assert z.tolist() == [3, 3]
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        z.as_subclass(int)


def test_copy_keeps_the_class():
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    copied = copy.copy(parameter)
    assert type(copied) is torch.nn.Parameter and not copied.requires_grad and copied.data_ptr() == parameter.data_ptr()


def test_python_functions():
    x = torch.arange(4).view(2, 2)
    assert x.apply_(lambda value: value * 10).tolist() == [[0, 10], [20, 30]]
    assert x.map_(torch.tensor([1, 2]), lambda own, other: own + other).tolist() == [[1, 12], [21, 32]]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).apply_(abs)


def test_questions():
    x = torch.ones(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    assert x.dim_order() == (0, 2, 3, 1) and x.is_same_size(torch.zeros(1, 3, 2, 2))
    assert torch.ones(1).is_nonzero() and not (x.is_pinned() or x.is_mps)
    with pytest.raises(RuntimeError, match="ambiguous"):
        x.is_nonzero()
    with pytest.raises(AssertionError, match="CUDA"):
        x.cuda()
    with pytest.raises(RuntimeError, match="accelerator"):
        x.pin_memory()


def test_as_subclass_with_slots():
    class Slots(torch.Tensor):
        __slots__ = ("note",)

    base = torch.ones(2)
    made = base.as_subclass(Slots)
    made.note = 3
    made.fill_(2)
    assert type(made) is Slots and made.note == 3 and base.tolist() == [2, 2]


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e4m3fn])
def test_float8_is_compared_exactly(dtype):
    x = torch.arange(4).to(dtype)
    torch.testing.assert_close(x, x.clone())
    assert torch.isclose(x, torch.zeros(4).to(dtype), rtol=0, atol=0).tolist() == [True, False, False, False]
