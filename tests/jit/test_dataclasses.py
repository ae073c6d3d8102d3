"""Dataclasses in scripted code: the comparisons that `dataclass` makes, with fields that may be None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight import Tensor


@dataclass(order=True)
class Point:
    x: int
    y: Optional[float] = None  # noqa: UP045


@dataclass
class Selected:
    index: Tensor
    count: int
    weight: Optional[Tensor] = None  # noqa: UP045


@dataclass(order=True)
class Tally:
    own: int
    theirs: int
    own_theirs: Optional[int] = None  # noqa: UP045


def tallied(a: int, b: int, c: int):
    one, other = Tally(a, b, c), Tally(1, 2, 3)
    return one == other, one < other, one >= other


def compared(a: int, b: Optional[float], c: int, d: Optional[float]):  # noqa: UP045
    one, other = Point(a, b), Point(c, d)
    return one == other, one < other, one <= other, one > other, one >= other


def selected(index: Tensor, weight: Optional[Tensor]):  # noqa: UP045
    one = Selected(index, 2, weight)
    return one == Selected(index * 1, 2, weight), one == Selected(index, 2, None)


@pytest.mark.parametrize("given", [(1, 2.0, 1, 2.0), (1, 2.0, 1, 3.0), (2, 1.0, 1, 3.0), (0, 5.0, 1, 1.0)])
def test_comparisons(given):
    assert torch.jit.script(compared)(*given) == compared(*given)


@pytest.mark.parametrize("given", [(1, 2, 3), (1, 3, 0), (1, 2, 2)])
def test_fields_may_have_any_names(given):
    assert torch.jit.script(tallied)(*given) == tallied(*given)


def test_comparisons_with_none():
    assert torch.jit.script(compared)(1, None, 1, None) == (True, False, True, False, True)
    with pytest.raises(Exception, match="Cannot compare Point with None"):
        torch.jit.script(compared)(1, 2.0, 1, None)
    scripted = torch.jit.script(selected)
    assert scripted(torch.tensor(3), torch.tensor(1.0)) == (True, False)
    assert scripted(torch.tensor(3), None) == (True, True)
