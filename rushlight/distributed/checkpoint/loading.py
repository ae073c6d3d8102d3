"""load: each rank reads what its parts of distributed tensors need, however many ranks wrote the checkpoint."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core import dtype as dtypes
from rushlight.core.tensor import Tensor
from rushlight.distributed.checkpoint.coordination import Ranks
from rushlight.distributed.checkpoint.filesystem import FileSystemReader
from rushlight.distributed.checkpoint.flattening import Path, flattened, put, states_of
from rushlight.distributed.checkpoint.metadata import CheckpointException, Chunk, Metadata, TensorEntry
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import local_part
from rushlight.ops import aten
from rushlight.ops.construct import frombuffer
from rushlight.serialization import load as load_object

__all__ = ["DefaultLoadPlanner", "load"]

_KINDS = {str(kind).partition(".")[2]: kind for kind in dtypes.ALL}


class DefaultLoadPlanner:
    """What a load does with names that the checkpoint does not have: with `allow_partial_load` it leaves them alone."""

    def __init__(self, allow_partial_load: bool = False) -> None:
        self.allow_partial_load = allow_partial_load


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None, process_group: ProcessGroup | None = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill a state with the values of the checkpoint in the folder `checkpoint_id`; all ranks of the group must call it.

    Tensors are written in place, each rank's parts of distributed ones; other values are replaced; objects with
    `load_state_dict` get their state. Any number of ranks, and any placements, may have written it.

        state = {"model": model.state_dict(), "step": 0}
        load(state, checkpoint_id="checkpoint")

    CheckpointException on all ranks: there is no whole checkpoint, a name is missing in it, or a shape differs. ValueError
    without a folder.
    """
    if storage_reader is None and checkpoint_id is None:
        raise ValueError("a checkpoint needs a folder: give checkpoint_id or storage_reader")
    reader, ranks = storage_reader or FileSystemReader(checkpoint_id), Ranks(process_group, no_dist)
    states = states_of(state_dict)
    partial = planner is not None and planner.allow_partial_load
    ranks.together(lambda: _fill(states, reader, partial), "loading a checkpoint")
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _fill(states: dict[str, Any], reader: FileSystemReader, partial: bool) -> None:
    metadata = reader.read_metadata()
    leaves = flattened(states)
    missing = [name for name, (_, value) in leaves.items() if not _has(metadata, name) and value not in ({}, [])]
    if missing and not partial:
        raise CheckpointException(f"Missing key in checkpoint state_dict: {', '.join(missing[:10])}.")
    for name, (path, value) in leaves.items():
        if name in metadata.tensors:
            _take_tensor(states, name, path, value, metadata.tensors[name], reader)
        elif name in metadata.objects:
            data = io.BytesIO(bytes(reader.read(metadata.objects[name])))
            put(states, path, load_object(data, weights_only=True))


def _has(metadata: Metadata, name: str) -> bool:
    return name in metadata.tensors or name in metadata.objects


def _take_tensor(states: Any, name: str, path: Path, value: Any, entry: TensorEntry, reader: FileSystemReader) -> None:
    if not isinstance(value, Tensor):
        whole = aten.empty(entry.shape, dtype=_KINDS[entry.dtype])
        _read_box(whole, (0,) * len(entry.shape), entry, reader, name)
        put(states, path, whole)
        return
    if list(value.shape) != entry.shape:
        raise CheckpointException(f"Size mismatch between saved {entry.shape} and current: {list(value.shape)} for {name}")
    if isinstance(value, DTensor):
        _, start = local_part(value.shape, value.device_mesh, value.placements)
        _read_box(value._local_tensor, start, entry, reader, name)
    else:
        _read_box(value.detach(), (0,) * value.dim(), entry, reader, name)


def _read_box(target: Tensor, start: Sequence[int], entry: TensorEntry, reader: FileSystemReader, name: str) -> None:
    """Fill a tensor that is the part of the whole from `start` on with what the chunks have of it."""
    filled = 0
    with no_grad():
        for chunk in entry.chunks:
            common = [
                (max(a, b), min(a + size, b + length))
                for a, size, b, length in zip(start, target.shape, chunk.start, chunk.sizes, strict=True)
            ]
            if all(begin < end for begin, end in common):
                part = _chunk(chunk, entry, reader)
                source = _box(part, chunk.start, common)
                _box(target, start, common).copy_(source)
                filled += source.numel()
    if filled != target.numel():
        raise CheckpointException(f"the checkpoint has {filled} of the {target.numel()} elements of {name} that are needed")


def _chunk(chunk: Chunk, entry: TensorEntry, reader: FileSystemReader) -> Tensor:
    kind = _KINDS.get(entry.dtype)
    if kind is None or math.prod(chunk.sizes) * kind.itemsize != chunk.place.nbytes:
        raise CheckpointException(f"a part of {chunk.place.nbytes} bytes cannot be {entry.dtype} of sizes {chunk.sizes}")
    return frombuffer(reader.read(chunk.place), dtype=kind).view(chunk.sizes)


def _box(tensor: Tensor, start: Sequence[int], common: Sequence[tuple[int, int]]) -> Tensor:
    for dim, (first, (begin, end)) in enumerate(zip(start, common, strict=True)):
        tensor = tensor.narrow(dim, begin - first, end - begin)
    return tensor
