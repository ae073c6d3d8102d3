"""Entries of a GGUF file's metadata, which may lack them or hold something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def entry(metadata: Mapping[str, Any], name: str, kind: type, least: float | None = None, most: float | None = None) -> Any:
    """An entry of a type, in a range. ValueError, naming it, for another one and where there is none."""
    value = metadata.get(name)
    if type(value) is not kind:
        raise ValueError(f"the metadata {name!r} must be {kind.__name__}, got {_shown(value)}")
    if (least is not None and not value >= least) or (most is not None and not value <= most):
        raise ValueError(f"the metadata {name!r} must be of {least} to {most}, got {value}")
    return value


def entries(metadata: Mapping[str, Any], name: str, kind: type, count: int | None = None) -> list:
    """A list of one type, of `count` items where that is given. ValueError, naming it, for another one."""
    values = entry(metadata, name, list)
    if not all(type(each) is kind for each in values):
        raise ValueError(f"the metadata {name!r} must be a list of {kind.__name__}")
    if count is not None and len(values) != count:
        raise ValueError(f"the metadata {name!r} must have {count} items, got {len(values)}")
    return values


def _shown(value: object) -> str:
    return "none" if value is None else type(value).__name__
