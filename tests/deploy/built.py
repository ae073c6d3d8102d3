"""Exports and builds models for tests, with little optimization since compiling takes most of the time."""

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
    """Builds a model's library and opens it."""
    export(model, example, folder, name=name, **options)
    library = build_library(folder, name, flags=flags)
    return Model(library, name, None if options.get("embed") else folder / f"{name}.weights")


def built_methods(functions: dict[str, tuple[Any, tuple]], folder: Path) -> Model:
    """Builds one library with functions as methods, each given with example arguments, and opens it. Undefined behaviour in C++
    ends the process."""
    programs = {name: exported(function, arguments) for name, (function, arguments) in functions.items()}
    return built(programs, (), folder, flags=(*FLAGS, "-fsanitize=undefined", "-fno-sanitize-recover=all"))


def exported(function: Any, arguments: tuple, **options: Any) -> Any:
    """A function as an exported program."""
    module = torch.nn.Module()
    module.forward = function
    return torch.export.export(module, arguments, **options)


def same(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Asserts that a method returns the same as the function in eager."""
    ours, theirs = (tuple(each) if isinstance(each, tuple | list) else (each,) for each in (found, expected))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        wanted = other.detach().numpy(force=True) if isinstance(other, torch.Tensor) else np.asarray(other)
        assert np.asarray(one).dtype == wanted.dtype
        np.testing.assert_allclose(one, wanted, rtol=tolerance, atol=tolerance)


def arrays(*values: torch.Tensor) -> list[np.ndarray]:
    """Converts tensors to arrays."""
    return [value.detach().numpy(force=True) for value in values]


def close(found: np.ndarray, expected: torch.Tensor) -> None:
    """Asserts that a result is right."""
    wanted = expected.detach().numpy(force=True)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=1e-5)
