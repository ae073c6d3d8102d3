"""Every collective, dtype and reduction against PyTorch on gloo: 2, 3 and 4 ranks, contiguous and strided tensors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.collective_cases import REFUSED
from tests.distributed.ranks import needs_mpi, results, results_of_torch

pytestmark = [needs_mpi, pytest.mark.oracle]

# Sums of 16-bit floats are rounded after each rank in one library, once in the other.
_TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "complex64": 1e-5}


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_values_are_those_of_gloo(ranks, tmp_path):
    pytest.importorskip("torch")
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    ours = results(ranks, "tests.distributed.collective_cases", folders[0])
    theirs = results_of_torch(ranks, "tests.distributed.collective_cases", folders[1])
    for rank in range(ranks):
        assert ours[rank].keys() == theirs[rank].keys()
        wrong = [name for name in ours[rank] if not _agree(ours[rank][name], theirs[rank][name], name)]
        assert not wrong, f"rank {rank} of {ranks}: {wrong[:20]}"


def _agree(ours, theirs, name: str) -> bool:
    if isinstance(theirs, str):
        return theirs == REFUSED
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(_agree(a, b, name) for a, b in zip(ours, theirs, strict=True))
    if ours is None or theirs is None:
        return ours is theirs
    tolerance = next((limit for kind, limit in _TOLERANCES.items() if f" {kind} " in name), 1e-12)
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=tolerance, atol=tolerance)
