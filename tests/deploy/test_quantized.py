"""Quantized models as C++."""

from __future__ import annotations

import io

import pytest

import rushlight as torch
from tests.deploy.built import built, close
from tests.quantized.quantized_models import MODELS, RECURRENT


def traced(name):
    """A model's archive, and an input."""
    torch.manual_seed(1)
    model, x = MODELS[name]()
    archive = io.BytesIO()
    torch.jit.save(torch.jit.trace(model, x), archive)
    return torch.jit.load(io.BytesIO(archive.getvalue())), x


@pytest.mark.parametrize("name", ["images", "signal", "rows", "dynamic"])
def test_archives(name, tmp_path):
    module, x = traced(name)
    close(built(module, (x,), tmp_path).forward(x.numpy()), module(x))


def test_recurrent_layers(tmp_path):
    torch.manual_seed(1)
    model, x = RECURRENT["lstm"]()
    found, (hidden, memory) = built(torch.jit.trace(model, x), (x,), tmp_path).forward(x.numpy())
    expected, states = model(x)
    for one, other in zip((found, hidden, memory), (expected, *states), strict=True):
        close(one, other)


def test_open_sizes(tmp_path):
    module, x = traced("rows")
    batch = torch.export.Dim("batch", min=1, max=64)
    model = built(module, (x,), tmp_path, dynamic_shapes=({0: batch},))
    for rows in (1, 5, 64):
        given = torch.randn(rows, 33)
        close(model.forward(given.numpy()), module(given))
