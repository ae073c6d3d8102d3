"""Subclasses of Tensor keep their class, attributes and slots when they are saved, pickled and copied."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rushlight
from rushlight.serialization import UnpicklingError, safe_globals
from rushlight.utils._pytree import tree_map_only


class Plain(rushlight.Tensor):
    pass


class WithSlots(rushlight.Tensor):
    __slots__ = ("elem", "other")


class WithState(rushlight.Tensor):
    def __getstate__(self) -> tuple:
        return "marked", self.__dict__

    def __setstate__(self, state: tuple) -> None:
        self.__dict__.update(state[1])
        self.mark = state[0]


class Pair(rushlight.Tensor):
    """Two tensors that every operator is called on."""

    @staticmethod
    def __new__(cls, first: rushlight.Tensor, second: rushlight.Tensor) -> Any:
        return rushlight.Tensor._make_wrapper_subclass(cls, first.shape, dtype=first.dtype, requires_grad=first.requires_grad)

    def __init__(self, first: rushlight.Tensor, second: rushlight.Tensor) -> None:
        self.first, self.second = first, second

    @classmethod
    def __torch_dispatch__(cls, func: Callable, types: tuple, args: tuple, kwargs: dict | None = None) -> Any:
        firsts = func(*tree_map_only(Pair, lambda pair: pair.first, args), **(kwargs or {}))
        seconds = func(*tree_map_only(Pair, lambda pair: pair.second, args), **(kwargs or {}))
        return cls(firsts, seconds) if isinstance(firsts, rushlight.Tensor) else firsts


KINDS = [Plain, WithSlots, WithState, Pair]


def example(kind: type) -> Any:
    if kind is Pair:
        return Pair(rushlight.ones(2), rushlight.zeros(2))
    made = rushlight.tensor([1.0, 2.0]).as_subclass(kind)
    made.note = [1]
    if kind is WithSlots:
        made.elem = rushlight.ones(1)
    return made


def saved(value: Any, **options: Any) -> Any:
    stream = io.BytesIO()
    rushlight.save(value, stream)
    stream.seek(0)
    return rushlight.load(stream, **options)


def trusted(value: Any) -> Any:
    with safe_globals(KINDS):
        return saved(value)


WAYS = {
    "save": lambda value: saved(value, weights_only=False),
    "save, safe": trusted,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_subclass_stays_one(way, kind):
    value = example(kind)
    made = WAYS[way](value)
    assert type(made) is kind and made.shape == value.shape
    if kind is Pair:
        assert made.first.tolist() == [1, 1] and made.second.tolist() == [0, 0]
    else:
        assert made.tolist() == [1, 2] and made.note == [1]
    if kind is WithSlots:
        assert made.elem.tolist() == [1] and not hasattr(made, "other")
    if kind is WithState and way != "deepcopy":
        assert made.mark == "marked"


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_of_a_wrapper(way):
    made = WAYS[way](rushlight.nn.Parameter(Pair(rushlight.ones(2), rushlight.zeros(2))))
    assert type(made) is Pair and isinstance(made, rushlight.nn.Parameter) and made.requires_grad


@pytest.mark.parametrize("way", ["pickle", "save", "copy"])
@pytest.mark.parametrize("make", [rushlight.ones, lambda size: rushlight.nn.Parameter(rushlight.ones(size))])
def test_attributes_of_plain_tensors(way, make):
    value = make(2)
    value.note = "mine"
    made = WAYS[way](value)
    assert type(made) is type(value) and made.note == "mine"


def test_a_class_nobody_vouched_for_is_refused():
    for kind in KINDS:
        with pytest.raises(UnpicklingError, match=rf"{kind.__name__} was not an allowed global.*\[{kind.__name__}\]"):
            saved(example(kind))


def test_a_copy_that_is_of_another_class_is_refused():
    class Forgetful(rushlight.Tensor):
        def clone(self) -> rushlight.Tensor:
            return rushlight.ones(2)

    with pytest.raises(RuntimeError, match="cloning returns an instance of the same class"):
        copy.deepcopy(rushlight.ones(2).as_subclass(Forgetful))


@pytest.mark.oracle
def test_torch_reads_a_wrapper():
    torch = pytest.importorskip("torch")

    class Doubled(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.first = self.second = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            raise NotImplementedError(func)

    stream = io.BytesIO()
    rushlight.save(Pair(rushlight.ones(2), rushlight.ones(2)), stream)
    stream.seek(0)
    with torch.serialization.safe_globals([(Doubled, f"{Pair.__module__}.{Pair.__qualname__}")]):
        assert torch.load(stream).first.tolist() == [1, 1]
