"""A fixed part of the random traced and scripted programs at changing sizes (tests/fuzz_traced.py)."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch")

import rushlight
from tests.fuzz_eager import pytorch
from tests.fuzz_scripted import native_after
from tests.fuzz_traced import finding

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(5000, 5040))
def test_a_program_gives_what_pytorch_gives(seed):
    with warnings.catch_warnings(), rushlight.no_grad(), pytorch().no_grad(), native_after("1000"):
        warnings.simplefilter("ignore")
        assert finding(seed, is_native=False) is None


@pytest.mark.parametrize("seed", range(5040, 5044))
def test_native_code_gives_what_pytorch_gives(seed):
    with warnings.catch_warnings(), rushlight.no_grad(), pytorch().no_grad(), native_after("0"):
        warnings.simplefilter("ignore")
        assert finding(seed, is_native=True) is None
