"""Models built in both libraries with the same weights, and comparison of their states."""

from __future__ import annotations

import io
from collections.abc import Callable

import rushlight
from tests.quantized.conversions import assert_same, to_rushlight


def built_in_both(build: Callable, torch) -> tuple:
    """The modules that `build(library)` makes in torch and in rushlight, with torch's weights in both."""
    torch.manual_seed(0)
    theirs = build(torch)
    ours = build(rushlight)
    ours.load_state_dict({name: to_rushlight(value.detach()) for name, value in theirs.state_dict().items()})
    return theirs, ours


def assert_same_state(ours: object, theirs: object) -> None:
    """Assert the same names in the same order, and the same values: integers exactly, floats to float32's precision."""
    found, expected = ours.state_dict(), theirs.state_dict()
    assert list(found) == list(expected)
    for name, value in expected.items():
        if isinstance(value, tuple) or hasattr(value, "shape"):
            assert_same(found[name], value)
        elif "ScriptObject" not in type(value).__name__:
            assert str(found[name]) == str(value)


def saved_by(library, value: object) -> io.BytesIO:
    """A file saved by a library."""
    file = io.BytesIO()
    library.save(value, file)
    file.seek(0)
    return file


def scripted_by(library, module: object) -> io.BytesIO:
    """A TorchScript archive saved by a library."""
    file = io.BytesIO()
    library.jit.save(module, file)
    file.seek(0)
    return file
