"""Structured programs by themselves: their text, their C++, what they give and where they give up."""

from __future__ import annotations

import pytest

from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Branch,
    Compute,
    ListOf,
    Literal,
    Repeat,
    Stop,
    StructuredProgram,
    Var,
)
from rushlight.inductor.structured_call import Stopped, StructuredCall


def squares():
    """The squares below n**2 in a list, and their sum."""
    n, i, total, after, square, values = (Var(name, INT) for name in ("n", "i", "total", "after", "square", "values"))
    values = Var("values", ListOf(INT))
    body = [Compute(square, "mul", [i, i]), Compute(after, "add", [total, square]), Compute(None, "append", [values, square])]
    loop = Repeat(i, n, Literal(True), body, Literal(True), [(total, Literal(0), after)])
    return StructuredProgram([n], [total, values], [Compute(values, "list", []), loop])


def test_text():
    assert str(squares()) == (
        "program(n: int):\n"
        "  values = list()\n"
        "  loop i < n while True, total = 0:\n"
        "    square = mul(i, i)\n"
        "    after = add(total, square)\n"
        "    append(values, square)\n"
        "    total = after\n"
        "    while True\n"
        "  return total, values\n"
    )


def test_loops_and_lists():
    call = StructuredCall(squares())
    assert call(4) == [14, [0, 1, 4, 9]] and call(0) == [0, []] and call(-3) == [0, []]
    assert "for (int64_t round_" in call.source and "rl::program::append(values)" in call.source


def test_numbers_wrap_and_keep_their_bits():
    n, twice, half = Var("n", INT), Var("twice", INT), Var("half", FLOAT)
    call = StructuredCall(
        StructuredProgram([n], [twice, half], [Compute(twice, "mul", [n, Literal(2)]), Compute(half, "div", [n, Literal(2)])])
    )
    assert call(2**62) == [-(2**63), float(2**61)] and call(-3) == [-6, -1.5]
    with pytest.raises(Stopped):
        call(2**63)


def test_branches_and_stops():
    n, is_small, result, one = Var("n", INT), Var("is_small", BOOL), Var("result", INT), Var("one", INT)
    body = [
        Compute(is_small, "lt", [n, Literal(10)]),
        Branch(is_small, [Compute(one, "add", [n, Literal(1)])], [Stop()], [(result, one, None)]),
    ]
    call = StructuredCall(StructuredProgram([n], [result], body))
    assert call(3) == [4]
    with pytest.raises(Stopped):
        call(10)


@pytest.mark.parametrize("index, expected", [(0, 1.5), (-1, 2.5), (2, None), (-3, None)])
def test_elements(index, expected):
    values, at, found = Var("values", ListOf(FLOAT)), Var("at", INT), Var("found", FLOAT)
    call = StructuredCall(StructuredProgram([values, at], [found], [Compute(found, "getitem", [values, at])]))
    if expected is None:
        with pytest.raises(Stopped):
            call([1.5, 2.5], index)
    else:
        assert call([1.5, 2.5], index) == [expected]
