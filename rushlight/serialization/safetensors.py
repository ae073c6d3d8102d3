"""Read and write safetensors files, by the `safetensors` package.

In: a path or a binary file with named tensors. Out: a dict of contiguous CPU tensors, and the reverse. The format is
defined at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
import safetensors
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from rushlight.core.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.serialization.errors import CheckpointError
from rushlight.serialization.saving import replace_file

_FLOAT8 = {"F8_E4M3": float8_e4m3fn, "F8_E5M2": float8_e5m2, "F8_E8M0": float8_e8m0fnu}
_KINDS = {
    "F64": float64, "F32": float32, "F16": float16, "BF16": bfloat16, "I64": int64, "U64": uint64, "I32": int32, "U32": uint32,
    "I16": int16, "U16": uint16, "I8": int8, "U8": uint8, "BOOL": bool_, "C64": complex64,
}  # fmt: skip
# Exceptions that the safetensors package raises for malformed files; unknown dtypes raise built-in ones.
_FAILURES = (SafetensorError, KeyError, TypeError, ValueError, OverflowError, AttributeError)


def load_safetensors(f: str | os.PathLike | BinaryIO) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises RuntimeError, naming the file, when it is truncated, its header is too large or malformed, its offsets are
    wrong, or it holds a dtype that tensors do not have; FileNotFoundError when there is no such file.
    """
    name = getattr(f, "name", None) or (os.fspath(f) if isinstance(f, str | os.PathLike) else "the given stream")
    try:
        return {key: from_numpy(array) for key, array in _read_arrays(f).items()}
    except _FAILURES as error:
        reason = f"{type(error).__name__}: {error}"[:300]
        raise CheckpointError(f"{name}: is not a valid safetensors file, or holds an unknown dtype: {reason}") from error


def _read_arrays(f: str | os.PathLike | BinaryIO) -> dict[str, np.ndarray]:
    if not isinstance(f, str | os.PathLike):
        return _arrays(f.read())
    with open(f, "rb"):
        pass  # raises Python's own error if the file is missing or unreadable
    with safe_open(os.fspath(f), framework="np") as file:
        if not any(file.get_slice(key).get_dtype() in _FLOAT8 for key in file.keys()):
            return {key: file.get_tensor(key) for key in file.keys()}
    with open(f, "rb") as file:  # the safetensors package cannot return float8 as NumPy arrays
        return _arrays(file.read())


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    return {name: _array(part) for name, part in safetensors.deserialize(content)}


def _array(part: dict) -> np.ndarray:
    kind = _FLOAT8.get(part["dtype"]) or _KINDS[part["dtype"]]
    return np.frombuffer(part["data"], kind.numpy).reshape(part["shape"])


def save_safetensors(
    tensors: Mapping[str, Tensor], path: str | os.PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors, each contiguously, and text `metadata`. The file at `path` is replaced only when complete.

    Raises TypeError for names or metadata that are not strings and values that are not tensors; ValueError for tensors
    that share a storage, which the format cannot express, and for complex128, which it lacks.
    """
    content = to_safetensors(tensors, metadata)
    replace_file(path, lambda stream: stream.write(content))


def to_safetensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the content of a safetensors file. Raises as `save_safetensors` does."""
    _check_arguments(tensors, metadata)
    _check_sharing(tensors)
    on_host = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    arrays = {name: np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape) for name, tensor in on_host.items()}
    return safetensors.numpy.save(arrays, None if metadata is None else dict(metadata))


def _check_arguments(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> None:
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or name == "__metadata__":
            raise TypeError(f"expected names and tensors, but got {name!r:.100} -> {type(tensor).__name__}")
        if tensor.dtype is complex128:
            raise ValueError(f"tensor '{name}' has dtype {tensor.dtype}, which safetensors lacks; use rushlight.save")
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata maps strings to strings, but got {type(key).__name__} -> {type(value).__name__}")


def _check_sharing(tensors: Mapping[str, Tensor]) -> None:
    owners: dict[UntypedStorage, str] = {}
    for name, tensor in tensors.items():
        first = owners.setdefault(tensor.untyped_storage(), name)
        if first != name and tensor.numel():
            raise ValueError(
                f"'{first}' and '{name}' share memory, which safetensors cannot express; "
                "clone() one of them, or use rushlight.save"
            )
