"""GPUs in `torch.distributed`, with the device's stand-in."""

from __future__ import annotations

import importlib.util

import pytest

from tests.distributed.ranks import needs_mpi, results

pytestmark = [
    needs_mpi, pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton: pip install triton"),
]  # fmt: skip


def test_tensors_on_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CUDA_DRIVER", "interpreter")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert results(2, "tests.distributed.checks_gpus", tmp_path) == [None, None]
