"""Nested states as flat ones: each tensor or object with a name, such as "optimizer.state.3.exp_avg", and its path of keys."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.checkpoint.stateful import Stateful

Path = tuple[Any, ...]


def states_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with that of `state_dict()` for objects that have a state."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def flattened(value: Any, path: Path = ()) -> dict[str, tuple[Path, Any]]:
    """Return the path and the value of each leaf of dictionaries and lists, by name. ValueError for names used twice."""
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found: dict[str, tuple[Path, Any]] = {}
        for key, each in items:
            for name, leaf in flattened(each, (*path, key)).items():
                if name in found:
                    raise ValueError(f"a state has two values for the name {name!r}")
                found[name] = leaf
        return found
    return {".".join(map(str, path)): (path, value)}


def put(state: Any, path: Path, value: Any) -> None:
    """Replace the leaf at a path."""
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value
