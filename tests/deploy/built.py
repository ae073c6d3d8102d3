"""Models exported and built for tests: optimized little, since compiling takes most of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import rushlight as torch
from rushlight.deploy import export
from rushlight.deploy.binding import Model
from rushlight.deploy.targets import build_library

FLAGS = ("-O1",)


def built(model: Any, example: Any, folder: Path, name: str = "model", flags: tuple[str, ...] = FLAGS, **options: Any) -> Model:
    """A handle of the built library of a model."""
    export(model, example, folder, name=name, **options)
    library = build_library(folder, name, flags=flags)
    return Model(library, name, None if options.get("embed") else folder / f"{name}.weights")


def arrays(*values: torch.Tensor) -> list[np.ndarray]:
    """Tensors as arrays."""
    return [value.detach().numpy(force=True) for value in values]


def close(found: np.ndarray, expected: torch.Tensor) -> None:
    """Make sure that a result is right."""
    wanted = expected.detach().numpy(force=True)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=1e-5)
