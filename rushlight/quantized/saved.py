"""Packed weights in checkpoints: torch writes them as objects of `torch.ScriptObject` with a state and the name of their class.

In: a state of a checkpoint. Out: an object whose `held` are the packed weights, which operators take, too.
"""

from __future__ import annotations

from typing import Any

from rushlight.quantized.packed import CLASSES, PackedError

PREFIX = "__torch__.torch.classes."


class ScriptObject:
    """Packed weights from a checkpoint: `held`, None until the state is read."""

    def __init__(self) -> None:
        self.held: Any = None

    def __setstate__(self, state: Any) -> None:
        """Restore the state of a checkpoint, with the class's name; PackedError where they don't fit."""
        if not isinstance(state, tuple) or len(state) != 2 or not isinstance(state[1], str):
            raise PackedError("the state of packed weights is a tuple of two, the state and the name of the class")
        kind = CLASSES.get(state[1].removeprefix(PREFIX))
        if kind is None:
            raise PackedError(f"{state[1][:80]!r} is no class of packed weights")
        self.held = kind.of_state(_unwrap_script_objects(state[0]))

    def __getstate__(self) -> tuple:
        return written_state(self.held)


def _unwrap_script_objects(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unwrap_script_objects, value))
    if isinstance(value, list):
        return list(map(_unwrap_script_objects, value))
    return value.held if isinstance(value, ScriptObject) else value


def written_state(packed: Any) -> tuple:
    """Return the serialized form of packed weights: their state and the name of their class."""
    return packed.state(), PREFIX + packed.class_name


def is_packed(value: Any) -> bool:
    """Return whether a value is packed weights."""
    return CLASSES.get(getattr(type(value), "class_name", None)) is type(value)
