"""`__torch_function__`: subclasses of Tensor and foreign types take part in calls of the library."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.core.overrides import DisableTorchFunctionSubclass, as_subclass
from rushlight.nn import functional as F


class Metric(rl.Tensor):
    """A subclass without an implementation of its own."""


class Recorder:
    """A foreign type that notes what was called."""

    def __init__(self):
        self.calls = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        owner = next(value for value in args if isinstance(value, cls))
        owner.calls.append((function.__name__, types))
        return "recorded"


def test_results_are_of_the_subclass():
    made = as_subclass(rl.ones(3), Metric)
    assert type(rl.relu(made)) is Metric and type(made.add(1)) is Metric and type(F.softmax(made, dim=0)) is Metric
    assert type(made + 1) is Metric and type(2 * made) is Metric and type(rl.ones(3) - made) is Metric
    values, _ = rl.sort(made)
    assert type(values) is Metric
    with DisableTorchFunctionSubclass():
        assert type(rl.relu(made)) is rl.Tensor


def test_results_are_of_the_subclass_at_every_call():
    made, plain = as_subclass(rl.rand(4, 4), Metric), rl.rand(4, 4)
    calls = [
        lambda: rl.erf(made), lambda: made.softmax(-1), lambda: made.sum(dim=0), lambda: rl.cat([plain, made]), lambda: made[0],
        lambda: made[made > 0], lambda: made[1:, None], lambda: made.T, lambda: made.mT, lambda: -made, lambda: abs(made),
        lambda: ~(made > 0), lambda: 1 - made, lambda: 1 / made, lambda: 2**made, lambda: made.to(rl.float64), lambda: next(iter(made)),
        lambda: plain @ made, lambda: made.max(0).values, lambda: made.clone(), lambda: made.unbind()[0],
    ]  # fmt: skip
    for call in calls:
        assert [type(call()) for _ in range(3)] == [Metric] * 3
        with DisableTorchFunctionSubclass():
            assert type(call()) is rl.Tensor
    assert type(rl.erf(plain)) is type(plain[0]) is type(-plain) is rl.Tensor


def test_an_implementation_is_asked_at_every_call():
    class Counting(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    seen = []
    made = as_subclass(rl.zeros(3), Counting)
    for _ in range(3):
        rl.logsumexp(made, dim=0)
        made[0] = 2
    assert seen == ["logsumexp", "__setitem__"] * 3 and made.tolist() == [2, 0, 0]


@pytest.mark.parametrize("kind", [Metric, rl.nn.Parameter])
def test_compiled_code_gives_what_eager_gives_for_a_subclass(kind):
    def program(x, w):
        return (x @ w).softmax(-1)[0]

    x, w = as_subclass(rl.rand(3, 4), kind) if kind is Metric else kind(rl.rand(3, 4)), rl.rand(4, 4)
    compiled = rl.compile(program)
    for given in (x, x, rl.rand(3, 4), x):
        expected = program(given, w)
        assert type(compiled(given, w)) is type(expected) and rl.allclose(compiled(given, w), expected)


def test_a_subclass_shares_memory():
    base = rl.ones(3)
    made = as_subclass(base, Metric)
    made.add_(1)
    assert base.tolist() == [2, 2, 2]


def test_parameters_and_buffers_give_plain_tensors():
    for kind in (rl.nn.Parameter, rl.nn.Buffer):
        assert type(rl.add(kind(rl.ones(2)), 1)) is rl.Tensor
        assert type(F.relu(kind(rl.ones(2)))) is rl.Tensor


def test_a_foreign_type_decides():
    value = Recorder()
    assert rl.add(rl.ones(2), value) == "recorded"
    assert F.relu(value) == "recorded"
    assert value.calls[0] == ("add", (Recorder,))


def test_the_subclass_decides_before_its_base():
    class Base(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls.__name__

    class Derived(Base):
        pass

    assert rl.add(as_subclass(rl.ones(2), Base), as_subclass(rl.ones(2), Derived)) == "Derived"


def test_all_declining_is_an_error():
    class Declining:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for 'torch.add' on types.*Declining"):
        rl.add(rl.ones(2), Declining())
