"""Result types of operands: all pairs of dtypes, dimensioned and 0-dim tensors, Python numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight as rl
from rushlight.core.dtype import ALL
from rushlight.ops.promotion import DIMENSIONED, NUMBER, ZERO_DIM, float_type, promote_kinds

NUMBERS = (True, 2, 2.5, 1 + 2j)


def named(kind: object) -> str:
    """A dtype's name; torch's 32-bit complex numbers, which do not exist here, count as those of 64 bits."""
    return repr(kind).replace("complex32", "complex64")


def test_categories_decide_across_ranks():
    assert promote_kinds([(rl.int8, DIMENSIONED), (rl.int64, ZERO_DIM)]) is rl.int8
    assert promote_kinds([(rl.int8, DIMENSIONED), (rl.float64, ZERO_DIM)]) is rl.float64
    assert promote_kinds([(rl.float16, DIMENSIONED), (rl.float32, NUMBER)]) is rl.float16
    assert promote_kinds([(rl.bool, DIMENSIONED), (rl.int64, NUMBER)]) is rl.int64
    assert promote_kinds([(rl.float64, ZERO_DIM), (rl.complex64, NUMBER)]) is rl.complex128


def test_float_type_uses_the_default_for_integers():
    assert float_type(rl.int8) is rl.float32 and float_type(rl.float16) is rl.float16


def test_numpy_numbers_count_as_numbers():
    x = rl.ones(2, dtype=rl.float32)
    assert rl.result_type(x, np.float64(1)) is rl.float32
    assert rl.result_type(rl.arange(2), np.float32(1)) is rl.float32
    assert rl.result_type(rl.ones(2, dtype=rl.int8), np.int64(300)) is rl.int8


@pytest.mark.oracle
@pytest.mark.parametrize("a", ALL, ids=repr)
@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())], ids=str)
def test_pairs_of_tensors(a, shapes):
    torch = pytest.importorskip("torch")
    for b in ALL:
        ours = [rl.ones(shape, dtype=kind) for shape, kind in zip(shapes, (a, b), strict=True)]
        theirs = [torch.ones(s, dtype=getattr(torch, k.name)) for s, k in zip(shapes, (a, b), strict=True)]
        assert named(rl.result_type(*ours)) == named(torch.result_type(*theirs)), (a, b)
        if "complex32" not in repr(torch.result_type(*theirs)):
            assert named((ours[0] * ours[1]).dtype) == named((theirs[0] * theirs[1]).dtype), (a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ALL, ids=repr)
@pytest.mark.parametrize("shape", [(2,), ()], ids=str)
def test_tensors_with_numbers(kind, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = rl.ones(shape, dtype=kind), torch.ones(shape, dtype=getattr(torch, kind.name))
    for number in NUMBERS:
        assert named(rl.result_type(ours, number)) == named(torch.result_type(theirs, number))
        assert named(rl.result_type(number, ours)) == named(torch.result_type(number, theirs))
        for combine in (lambda x, n: x * n, lambda x, n: n * x, lambda x, n: x + n, lambda x, n: x / n, lambda x, n: x == n):
            if "complex32" not in repr(torch.result_type(theirs, number)):
                assert named(combine(ours, number).dtype) == named(combine(theirs, number).dtype), number


@pytest.mark.oracle
def test_three_operands():
    torch = pytest.importorskip("torch")
    kinds = (rl.bool, rl.int32, rl.float16, rl.float64)
    for a, b in itertools.product(kinds, repeat=2):
        ours = rl.where(rl.ones(2, dtype=rl.bool), rl.ones(2, dtype=a), rl.ones((), dtype=b))
        pair = [torch.ones(s, dtype=getattr(torch, k.name)) for s, k in (((2,), a), ((), b))]
        assert named(ours.dtype) == named(torch.where(torch.ones(2, dtype=torch.bool), *pair).dtype)


@pytest.mark.parametrize("alpha", [-1, 2, 0, True, False])
def test_a_factor_of_booleans_is_a_boolean(alpha):
    a, b = rl.tensor([True, False, True, False]), rl.tensor([True, True, False, False])
    assert rl.add(a, b, alpha=alpha).tolist() == [x or (bool(alpha) and y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
