"""Lazy iterators that a captured program returns go on where it left them."""

from __future__ import annotations

import itertools

import pytest

import rushlight as torch

KINDS = {
    "compress": lambda v: itertools.compress(v, [1, 0, 1, 1]),
    "chain": lambda v: itertools.chain(v, [7, 8]),
    "starmap": lambda v: itertools.starmap(pow, zip(v, v, strict=True)),
    "filterfalse": lambda v: itertools.filterfalse(lambda n: n > 2, v),
    "filterfalse of truth": lambda v: itertools.filterfalse(None, v),
    "islice": lambda v: itertools.islice(v, 3),
    "islice from": lambda v: itertools.islice(v, 1, None),
    "islice by": lambda v: itertools.islice(v, 1, 4, 2),
    "accumulate": lambda v: itertools.accumulate(v),
    "accumulate by": lambda v: itertools.accumulate(v, lambda p, q: p * q, initial=2),
    "count": lambda v: itertools.islice(itertools.count(3, 2), 4),
    "repeat": lambda v: itertools.repeat(5, 3),
    "endless": lambda v: zip(v, itertools.repeat("r"), itertools.count(0.5), strict=False),
}


@pytest.mark.parametrize("taken", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_returned_iterator_goes_on(kind, taken):
    def program(x, v):
        iterator = KINDS[kind](v)
        first = [next(iterator, None) for _ in range(taken)]
        return x + 1, first, iterator

    _, first, rest = program(torch.ones(2), [1, 0, 3, 2])
    _, captured, left = torch.compile(program, backend="eager", fullgraph=True)(torch.ones(2), [1, 0, 3, 2])
    assert captured == first and type(left) is type(rest)
    assert list(left) == list(rest)


def test_an_iterator_over_tensors_goes_on():
    def program(x):
        sums = itertools.accumulate([x, x * 2, x * 3])
        return next(sums), sums

    first, rest = torch.compile(program, backend="eager", fullgraph=True)(torch.ones(2))
    assert first.tolist() == [1, 1] and [value.tolist() for value in rest] == [[3, 3], [6, 6]]


def test_a_changed_list_changes_its_iterator():
    def program(x, v):
        iterator = itertools.compress(v, [1, 1, 1])
        next(iterator)
        v[1] = 9
        return x + 1, iterator

    assert list(torch.compile(program, backend="eager", fullgraph=True)(torch.ones(2), [1, 2, 3])[1]) == [9, 3]
