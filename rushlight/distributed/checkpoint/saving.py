"""save: each rank writes its parts of distributed tensors, and its share of what all ranks have."""

from __future__ import annotations

import copy
import io
import os
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import uint8
from rushlight.core.layout import strided
from rushlight.core.tensor import Tensor
from rushlight.distributed.checkpoint.coordination import Ranks
from rushlight.distributed.checkpoint.filesystem import SUFFIX, DataFile, FileSystemWriter
from rushlight.distributed.checkpoint.flattening import flattened, states_of
from rushlight.distributed.checkpoint.metadata import Chunk, Metadata, TensorEntry
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.subgroups import new_group
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import local_part
from rushlight.distributed.tensor.placement_types import Partial, Replicate
from rushlight.serialization import save as save_object

__all__ = ["async_save", "save"]


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: ProcessGroup | None = None, no_dist: bool = False,
) -> Metadata:  # fmt: skip
    """Save a state to the folder `checkpoint_id`, which all ranks must see; all ranks of the group must call it.

    The state is a nested dictionary of tensors, distributed tensors, other values, and objects with `state_dict`. Each rank
    writes its parts of distributed tensors; other values are taken to be the same on all ranks, and written once. What was in
    the folder before stays the checkpoint until the new one is whole.

        save({"model": model.state_dict(), "step": 7}, checkpoint_id="checkpoint")

    CheckpointException on all ranks when one fails. ValueError without a folder.
    """
    writer = _writer_of(checkpoint_id, storage_writer, planner)
    return _save(_leaves(state_dict), writer, Ranks(process_group, no_dist))


def _leaves(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, (_, value) in flattened(states_of(state_dict)).items()}


def _save(leaves: dict[str, Any], writer: FileSystemWriter, ranks: Ranks) -> Metadata:
    token = ranks.gathered(uuid.uuid4().hex[:12])[0]
    mine = _share(leaves, ranks)
    written = ranks.together(lambda: _write(writer, f"__{ranks.rank}_{token}{SUFFIX}", mine), "writing a checkpoint")
    whole = written[0]
    for part in written[1:]:
        whole.merged(part)
    ranks.together(lambda: writer.commit(whole) if ranks.rank == 0 else None, "finishing a checkpoint")
    return whole


def _writer_of(
    checkpoint_id: str | os.PathLike | None, writer: FileSystemWriter | None, planner: object
) -> FileSystemWriter:
    """Return the writer that a call names. ValueError: it names none. NotImplementedError for a planner."""
    if planner is not None:
        raise NotImplementedError("planners are not available; leave `planner` out")
    if writer is not None:
        return writer
    if checkpoint_id is None:
        raise ValueError("a checkpoint needs a folder: give checkpoint_id or storage_writer")
    return FileSystemWriter(checkpoint_id)


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: ProcessGroup | None = None, no_dist: bool = False,
) -> Future[Metadata]:  # fmt: skip
    """Copy a state, and save the copy as `save` does, in a background thread; all ranks of the group must call it.

    The state may change as soon as this returns. Saves run one after the other.

        pending = async_save({"model": model.state_dict()}, checkpoint_id="checkpoint")
        ...               # train on
        pending.result()  # the checkpoint is whole; raises what `save` would
    """
    writer = _writer_of(checkpoint_id, storage_writer, planner)
    ranks = Ranks(process_group, no_dist)
    if ranks.group is not None:
        ranks = Ranks(_group_of_saves(ranks.group))
    return _saves.submit(_save, {name: _copied(value) for name, value in _leaves(state_dict).items()}, writer, ranks)


_saves = ThreadPoolExecutor(1, "rushlight-checkpoint")
_groups: WeakKeyDictionary[ProcessGroup, ProcessGroup] = WeakKeyDictionary()
"""For each group the one in which its background saves exchange messages: the program uses the group itself meanwhile."""


def _group_of_saves(group: ProcessGroup) -> ProcessGroup:
    if group not in _groups:
        _groups[group] = new_group(
            group.ranks, group.timeout, use_local_synchronization=True, group_desc="checkpoint", sort_ranks=False
        )
    return _groups[group]


def _copied(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    with no_grad():
        return value.detach().clone()


def _share(leaves: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """Return what this rank writes: its own parts, and of what several ranks have, what it is to write."""
    sizes = {name: _nbytes(value) for name, value in leaves.items() if not isinstance(value, DTensor)}
    everyone = ranks.gathered(sizes)
    loads = [0] * ranks.size
    owners: dict[str, int] = {}
    for name in dict.fromkeys(name for each in everyone for name in each):
        having = [rank for rank, each in enumerate(everyone) if name in each]
        owners[name] = min(having, key=lambda rank: loads[rank])
        loads[owners[name]] += everyone[owners[name]][name]
    return {
        name: value for name, value in leaves.items()
        if (_writes_part(value) if isinstance(value, DTensor) else owners[name] == ranks.rank)
    }  # fmt: skip


def _nbytes(value: Any) -> int:
    return value.nbytes if isinstance(value, Tensor) else 1


def _writes_part(tensor: DTensor) -> bool:
    """Return whether this rank is the first of those that have the same part."""
    place = tensor.device_mesh.get_coordinate()
    if place is None:
        return False
    if any(isinstance(each, Partial) for each in tensor.placements):
        raise ValueError(f"save: a tensor is {tensor.placements}: redistribute it before")
    return all(at == 0 for at, each in zip(place, tensor.placements, strict=True) if isinstance(each, Replicate))


def _write(writer: FileSystemWriter, name: str, leaves: dict[str, Any]) -> Metadata:
    """Write one rank's file; return what is in it."""
    found = Metadata()
    if not leaves:
        return found
    file = writer.open(name)
    for key, value in leaves.items():
        if isinstance(value, DTensor):
            sizes, start = local_part(value.shape, value.device_mesh, value.placements)
            found.tensors[key] = _add(file, value._local_tensor, value, start, sizes)
        elif isinstance(value, Tensor) and value.is_cpu and value.layout is strided and not value.is_quantized:
            found.tensors[key] = _add(file, value, value, (0,) * value.dim(), tuple(value.shape))
        else:
            stream = io.BytesIO()
            save_object(value, stream)
            found.objects[key] = file.add(stream.getvalue())
    file.close()
    return found


def _add(file: DataFile, local: Tensor, whole: Tensor, start: tuple, sizes: tuple) -> TensorEntry:
    chunks = [Chunk(list(start), list(sizes), file.add(_bytes(local)))] if local.numel() or not whole.numel() else []
    return TensorEntry(str(whole.dtype).partition(".")[2], list(whole.shape), chunks)


def _bytes(tensor: Tensor) -> memoryview:
    values = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
    return memoryview(values.view(uint8).numpy() if values.numel() else b"").cast("B")
