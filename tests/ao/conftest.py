"""What all tests of quantizing share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def engine(request):
    """PyTorch's kernels that round as here."""
    library = request.module.torch
    before = library.backends.quantized.engine
    library.backends.quantized.engine = "fbgemm"
    yield
    library.backends.quantized.engine = before
