"""`rushlight.testing`, and the small modules that programs ask before they start."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl
from rushlight.testing import assert_close, make_tensor

CASES = [
    (1.0, 1.0), (1.0, 1.0 + 1e-3), (1, 1), (1, 2), (math.nan, math.nan), (math.inf, math.inf), ([1, 2.0], [1, 2.0]),
    ([1], [1, 2]), ({"a": 1}, {"a": 1}), ({"a": 1}, {"b": 1}), (True, True), (True, False),
    (None, None), ([[1.0], {"k": 2}], [[1.0], {"k": 3}]), (1 + 2j, 1 + 2j), (1 + 2j, 1 + 3j),
]  # fmt: skip
ARRAYS = [
    (np.ones(3, np.float32), np.ones(3, np.float32) + np.float32(1e-6)), (np.ones(3), np.ones(3) + 1e-6),
    (np.ones(3, np.float32), np.ones(3, np.float32) * np.float32(1.01)), (np.ones(2), np.ones(3)),
    (np.ones(2, np.float32), np.ones(2)), (np.array([1, 2]), np.array([1, 2])), (np.array([1, 2]), np.array([1, 3])),
    (np.array([]), np.array([])),
]  # fmt: skip


def outcome(library, one, other) -> bool:
    """Whether two values are close."""
    try:
        library.testing.assert_close(one, other)
    except AssertionError:
        return False
    return True


def test_the_message_says_how_many_and_where():
    actual, expected = rl.zeros(2, 3), rl.zeros(2, 3)
    actual[1, 2] = 0.5
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    text = str(caught.value)
    assert "Mismatched elements: 1 / 6 (16.7%)" in text and "0.5 at index (1, 2) (up to 1e-05 allowed)" in text
    with pytest.raises(AssertionError, match=r"\['layers'\]\[1\]"):
        assert_close({"layers": [rl.ones(1), rl.ones(2)]}, {"layers": [rl.ones(1), rl.zeros(2)]})


def test_what_is_checked_can_be_chosen():
    one, other = rl.ones(2, 2), rl.ones(2, 2).t().contiguous().t().double()
    with pytest.raises(AssertionError, match="'dtype'"):
        assert_close(one, other)
    assert_close(one, other, check_dtype=False)
    with pytest.raises(AssertionError, match="'stride'"):
        assert_close(one, other, check_dtype=False, check_stride=True)
    assert_close(rl.tensor([math.nan]), rl.tensor([math.nan]), equal_nan=True)
    assert_close(rl.tensor(1.0), rl.tensor(1.5), rtol=0, atol=0.5)
    with pytest.raises(ValueError, match="together"):
        assert_close(1.0, 1.0, rtol=0.1)
    with pytest.raises(AssertionError, match="my text"):
        assert_close(1.0, 2.0, msg="my text")


@pytest.mark.oracle
def test_decisions_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for one, other in CASES:
        assert outcome(rl, one, other) == outcome(torch, one, other), (one, other)
    for one, other in ARRAYS:
        ours = outcome(rl, rl.from_numpy(one), rl.from_numpy(other))
        assert ours == outcome(torch, torch.from_numpy(one), torch.from_numpy(other)), (one, other)


def test_random_tensors_to_test_with():
    made = make_tensor(50, 4, dtype=rl.float32, low=2, high=3, requires_grad=True)
    assert made.shape == (50, 4) and bool((made >= 2).all()) and bool((made < 3).all()) and made.requires_grad
    assert not make_tensor((4, 4), dtype=rl.int64, noncontiguous=True).is_contiguous()
    assert bool((make_tensor(500, dtype=rl.int8, exclude_zero=True) != 0).all())
    assert make_tensor(3, dtype=rl.bool).dtype is rl.bool


def test_there_is_no_gpu():
    assert not rl.cuda.is_available() and rl.cuda.device_count() == 0 and rl.version.cuda is None
    rl.cuda.manual_seed_all(1)
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        rl.cuda.synchronize()


def test_switches_are_kept():
    rl.use_deterministic_algorithms(True, warn_only=True)
    assert rl.are_deterministic_algorithms_enabled() and rl.is_deterministic_algorithms_warn_only_enabled()
    rl.use_deterministic_algorithms(False)
    rl.set_float32_matmul_precision("high")
    assert rl.get_float32_matmul_precision() == "high"
    rl.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match="highest, high, medium"):
        rl.set_float32_matmul_precision("low")
    rl.backends.cudnn.benchmark = True
    assert not rl.backends.cudnn.is_available() and rl.backends.cpu.get_cpu_capability()
    assert rl.get_default_device() == rl.device("cpu")
    rl.set_default_device("meta")
    try:
        assert rl.ones(2).is_meta and rl.get_default_device() == rl.device("meta")
    finally:
        rl.set_default_device(None)
