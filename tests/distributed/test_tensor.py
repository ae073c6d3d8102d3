"""Distributed tensors: each operator and its gradients, with each placement, gives what it gives for whole tensors."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import needs_mpi, results

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_operators_give_what_they_give_for_whole_tensors(ranks, tmp_path):
    for found in results(ranks, "tests.distributed.tensor_cases", tmp_path):
        assert len(found) > 100
        wrong = {name: error for name, error in found.items() if not error < 2e-5}
        assert not wrong
