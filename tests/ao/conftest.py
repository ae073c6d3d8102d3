"""Fixtures of the quantization tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def engine(request):
    """A quantized engine of PyTorch that rounds as Rushlight does."""
    library = request.module.torch
    before = library.backends.quantized.engine
    library.backends.quantized.engine = "fbgemm"
    yield
    library.backends.quantized.engine = before
