"""The modules that agree with torch on module_db's samples go on agreeing, and a new one enters the list."""

from __future__ import annotations

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import modules  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle

CLEAN = modules.CLEAN.read_text().split()
MOST_SAMPLES = 16  # in each of training and evaluation mode; `modules.py` runs all
KNOWN = {info.name: info for info in modules.module_db}


@pytest.mark.parametrize("name", CLEAN)
def test_module_agrees_with_torch_on_every_sample(name):
    results, notes = modules.check_module(rushlight, KNOWN[name], MOST_SAMPLES)
    assert modules.is_clean(results), dict(notes)


@pytest.mark.parametrize("name", sorted(set(KNOWN) - set(CLEAN)))
def test_modules_that_became_clean_are_in_the_list(name):
    results, _ = modules.check_module(rushlight, KNOWN[name], MOST_SAMPLES)
    assert not modules.is_clean(results), f"{name} is clean now: add it with --write"
