"""Rules of custom operators for vmap, autocast, and for classes that see operators."""

import pytest

import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def scaled():
    seen = []

    @torch.library.custom_op("rules::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float, others: list[torch.Tensor]) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return x * by + sum(others)

    scaled.seen = seen
    return scaled


X, Y = torch.arange(6.0).view(3, 2), torch.ones(2)


def test_a_rule_for_vmap_sees_the_whole_batch(scaled):
    told = []

    @scaled.register_vmap
    def rule(info, in_dims, x, by, others):
        told.append((info.batch_size, info.randomness, in_dims))
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        others = [o if dim is None else o.movedim(dim, 0) for o, dim in zip(others, in_dims[2], strict=True)]
        return scaled(x, by, others), 0

    found = torch.vmap(lambda x: scaled(x, 2.0, [Y, x]))(X)
    torch.testing.assert_close(found, X * 3 + 1)
    assert scaled.seen == [(3, 2)]
    assert told == [(3, "error", (0, None, [None, 0]))]
    inner = torch.vmap(torch.vmap(lambda x: scaled(x, 2.0, [x])))(torch.ones(4, 3, 2))
    torch.testing.assert_close(inner, torch.full((4, 3, 2), 3.0))


def test_a_rule_given_by_name_and_wrong_results(scaled):
    torch.library.register_vmap("rules::scaled", lambda info, in_dims, x, by, others: x)
    with pytest.raises(RuntimeError, match="two returns"):
        torch.vmap(lambda x: scaled(x, 2.0, []))(X)
    torch.library.register_vmap(scaled, lambda info, in_dims, x, by, others: (x * by, 0))
    torch.testing.assert_close(torch.vmap(lambda x: scaled(x, 2.0, []))(X), X * 2)


def test_autocast_casts_what_it_is_given(scaled):
    scaled.register_autocast("cpu", torch.bfloat16)
    torch.library.register_autocast("rules::scaled", "cuda", torch.float16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scaled(X, 2.0, [Y]).dtype is torch.bfloat16
        assert scaled(X.double(), 2.0, [Y.double()]).dtype is torch.float64
    assert scaled(X, 2.0, [Y]).dtype is torch.float32
    with pytest.raises(ValueError, match="device_type"):
        scaled.register_autocast(torch.device("cpu"), torch.bfloat16)


def test_a_mode_and_a_class_have_answers_of_their_own(scaled):
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("not asked")

    @scaled.register_torch_dispatch(Mode)
    def of_mode(mode, func, types, args, kwargs):
        return ("mode", func, args[1])

    torch.library.register_torch_dispatch(
        "rules::scaled", Wrapped, lambda func, types, args, kwargs: Wrapped(func(args[0].inner, *args[1:]))
    )
    with Mode():
        kind, func, by = scaled(X, 2.0, [Y])
    assert (kind, func, by) == ("mode", torch.ops.rules.scaled.default, 2.0)
    found = scaled(Wrapped(X), 2.0, [Y])
    assert type(found) is Wrapped
    torch.testing.assert_close(found.inner, X * 2 + 1)
