"""Models that are built in both libraries, with the same weights."""

from __future__ import annotations

from collections.abc import Callable

import rushlight
from tests.quantized.conversions import assert_same, to_rushlight

assert_equal = assert_same


def built_in_both(build: Callable, torch) -> tuple:
    """What `build(library)` makes in torch and in rushlight, with the weights of torch's."""
    torch.manual_seed(0)
    theirs = build(torch)
    ours = build(rushlight)
    ours.load_state_dict({name: to_rushlight(value.detach()) for name, value in theirs.state_dict().items()})
    return theirs, ours


def assert_same_state(ours: object, theirs: object) -> None:
    """The same names in the same order, and the same values: integers exactly, floats by float32's precision."""
    found, expected = ours.state_dict(), theirs.state_dict()
    assert list(found) == list(expected)
    for name, value in expected.items():
        if isinstance(value, type(rushlight.float32)) or not hasattr(value, "shape"):
            assert str(found[name]) == str(value) if not isinstance(value, tuple) else True, name
        if isinstance(value, tuple) or hasattr(value, "shape"):
            assert_same(found[name], value)
