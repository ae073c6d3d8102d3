"""Element types: singletons, promotion, casting, limits."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import rushlight as rl
from rushlight.core import dtype as dtypes
from rushlight.core.dtype import ALL


def test_dtypes_are_singletons_with_torchs_names():
    assert repr(rl.float32) == "torch.float32"
    assert rl.float is rl.float32 and rl.long is rl.int64 and rl.half is rl.float16
    for kind in ALL:
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert copy.deepcopy(kind) is kind
        assert dtypes.from_name(kind.name) is kind
        assert dtypes.from_numpy_dtype(kind.numpy) is kind


def test_half_precision_is_computed_in_float32():
    assert rl.bfloat16.numpy == ml_dtypes.bfloat16
    assert rl.bfloat16.compute == rl.float16.compute == np.float32
    assert rl.float64.compute == np.float64


@pytest.mark.parametrize("a", ALL, ids=repr)
@pytest.mark.parametrize("b", ALL, ids=repr)
def test_promotion_is_a_lattice(a, b):
    joined = rl.promote_types(a, b)
    assert joined is rl.promote_types(b, a)
    assert rl.promote_types(a, a) is a
    assert rl.promote_types(joined, a) is joined
    assert joined.category >= max(a.category, b.category)


@pytest.mark.oracle
@pytest.mark.parametrize("a", ALL, ids=repr)
def test_promotion_and_casting_are_torchs(a):
    torch = pytest.importorskip("torch")
    for b in ALL:
        theirs = getattr(torch, a.name), getattr(torch, b.name)
        assert repr(rl.promote_types(a, b)) == repr(torch.promote_types(*theirs))
        assert rl.can_cast(a, b) == torch.can_cast(*theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ALL, ids=repr)
def test_limits_are_torchs(kind):
    torch = pytest.importorskip("torch")
    name, theirs = ("iinfo" if kind.is_integral else "finfo"), getattr(torch, kind.name)
    if kind is rl.bool:
        with pytest.raises(TypeError, match="iinfo"):
            rl.iinfo(kind)
        return
    ours, expected = getattr(rl, name)(kind), getattr(torch, name)(theirs)
    for field in ("bits", "min", "max") + (() if kind.is_integral else ("eps", "tiny", "smallest_normal", "resolution")):
        assert getattr(ours, field) == pytest.approx(getattr(expected, field), rel=1e-6), field
    assert ours.dtype == expected.dtype


def test_limits_say_which_function_to_use():
    with pytest.raises(TypeError, match="Use torch.iinfo"):
        rl.finfo(rl.int32)
    with pytest.raises(TypeError, match="Use torch.finfo"):
        rl.iinfo(rl.float32)


def test_default_dtype_decides_for_floats():
    try:
        rl.set_default_dtype(rl.float64)
        assert rl.tensor(1.5).dtype is rl.float64
        assert rl.tensor(1j).dtype is rl.complex128
        assert rl.ones(2).dtype is rl.float64
        assert rl.tensor(1).dtype is rl.int64
        assert rl.finfo().bits == 64
    finally:
        rl.set_default_dtype(rl.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        rl.set_default_dtype(rl.int32)


def test_numpy_types_without_a_dtype_are_refused():
    with pytest.raises(TypeError, match="The only supported types are"):
        rl.from_numpy(np.array(["a"]))
