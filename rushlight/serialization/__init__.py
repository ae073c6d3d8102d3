"""Checkpoints: torch's `.pt` files and safetensors, read without running code and written for torch to read."""

from __future__ import annotations

from rushlight.serialization.errors import CheckpointError, PicklingError, UnpicklingError
from rushlight.serialization.loading import load
from rushlight.serialization.safetensors import load_safetensors, save_safetensors
from rushlight.serialization.saving import save

__all__ = [
    "CheckpointError",
    "PicklingError",
    "UnpicklingError",
    "load",
    "load_safetensors",
    "save",
    "save_safetensors",
]
