"""Fake tensors: the geometry of a computation without its data."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.fx.fake_tensor import DataDependentError, FakeTensorMode, is_fake

PROGRAMS = [
    lambda x: (x @ x.t()).relu().sum(1, keepdim=True),
    lambda x: x.t().contiguous().view(-1)[1::2],
    lambda x: rl.cat([x, x * 2], 1).softmax(-1),
    lambda x: x.topk(2, 1).values.argmax(1),
    lambda x: rl.zeros(3, 2).add_(1).half() * x[0, 0],
    lambda x: rl.where(x > 0, x, 0.0).var(0),
    lambda x: rl.nn.functional.layer_norm(x.unsqueeze(0).expand(5, 2, 3), (3,)),
    lambda x: x.split([1, 2], 1)[1].diagonal().cumsum(0),
    lambda x: rl.arange(6).view(3, 2).to(x.dtype) + rl.rand(2),
    lambda x: x.permute(1, 0) + 1,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_geometry_is_that_of_real_tensors(program):
    x = rl.randn(2, 3)
    real = program(x)
    with FakeTensorMode() as mode:
        fake = program(mode.from_tensor(x))
    assert is_fake(fake) and not is_fake(real)
    assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
    assert fake.device == rl.device("cpu") and fake.is_cpu and not fake.is_meta
    assert repr(fake) == f"FakeTensor(..., size={tuple(fake.shape)}, dtype={fake.dtype})"


def test_real_tensors_are_faked_on_the_way():
    w = rl.randn(3, 4)
    with FakeTensorMode() as mode:
        y = mode.from_tensor(rl.randn(2, 3)) @ w
        z = w + 1
    assert is_fake(y) and is_fake(z) and y.shape == (2, 4) and not is_fake(w)


def test_the_fake_of_a_tensor_is_one_object():
    x = rl.randn(4)
    view = x[1:]
    mode = FakeTensorMode()
    assert mode.from_tensor(x) is mode.from_tensor(x)
    fake = mode.from_tensor(x)
    assert mode.from_tensor(fake) is fake
    assert mode.from_tensor(view).untyped_storage() == fake.untyped_storage(), "what shared memory still does"
    assert mode.from_tensor(view).storage_offset() == 1


def test_fakes_keep_views_and_writes_apart():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(rl.zeros(4))
        view = x.view(2, 2)
        view.add_(1)
        assert view.untyped_storage() == x.untyped_storage() and x._version == view._version == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: float(x[0]),
        lambda x: rl.equal(x, x),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
        lambda x: x.tolist() and None,
        lambda x: x.numpy() and None,
        lambda x: [1, 2, 3][x.long()[0]],
    ],
)
def test_asking_for_values_is_an_error_of_its_own(ask):
    with FakeTensorMode() as mode, pytest.raises(DataDependentError, match="not known while a program is captured"):
        ask(mode.from_tensor(rl.ones(3)))


def test_fakes_are_of_no_use_outside():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(rl.ones(3))
    with pytest.raises(RuntimeError, match="fake tensor"):
        x.numpy()


def test_errors_of_shapes_are_those_of_eager():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(rl.ones(2, 3))
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            x @ x
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.sum(5)


def test_nothing_remains_after_the_mode():
    with FakeTensorMode():
        pass
    assert rl.ones(2).tolist() == [1, 1]
