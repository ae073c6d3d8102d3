"""Collectives of Python objects, by pickle. Receive them only from programs that you trust."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from rushlight.core.device import device
from rushlight.core.dtype import int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.engine.buffers import empty
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import member_of, root_of
from rushlight.distributed.point_to_point import recv, send
from rushlight.distributed.single_tensors import all_to_all_single


def _packed(value: object) -> Tensor:
    """Return an object as bytes."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    tensor = empty([len(data)], uint8)
    tensor.numpy()[:] = memoryview(data)
    return tensor


def _unpacked(tensor: Tensor) -> Any:
    return pickle.loads(memoryview(tensor.contiguous().numpy()))


def _numbers(values: Sequence[int]) -> Tensor:
    tensor = empty([len(values)], int64)
    tensor.numpy()[:] = values
    return tensor


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Put the object of each rank into `object_list`, which has a place for each. RuntimeError for a list of another length.

        names = [None] * dist.get_world_size()
        dist.all_gather_object(names, socket.gethostname())
    """
    members = member_of(group, "all_gather_object")
    if members is None:
        return
    if len(object_list) != members.size():
        raise RuntimeError(f"all_gather_object: object_list has {len(object_list)} places, of {members.size()} ranks")
    object_list[:] = _exchange(members, [_packed(obj)] * members.size())


def _exchange(members: ProcessGroup, packed: Sequence[Tensor | None]) -> list[Any]:
    """Send bytes to each rank, None for nothing; return the objects that come from each, None for nothing."""
    lengths = _numbers([-1 if each is None else each.numel() for each in packed])
    coming = empty([members.size()], int64)
    all_to_all_single(coming, lengths, group=members)
    sizes = [max(int(length), 0) for length in coming.numpy()]
    going = [0 if each is None else each.numel() for each in packed]
    sent = empty([sum(going)], uint8)
    for part, each in zip(sent.split(going), packed, strict=True):
        if each is not None:
            part.copy_(each)
    received = empty([sum(sizes)], uint8)
    all_to_all_single(received, sent, sizes, going, members)
    parts = received.split(sizes)
    return [None if length < 0 else _unpacked(part) for length, part in zip(coming.tolist(), parts, strict=True)]


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Put the object of each rank into `object_gather_list` of the world's rank `dst` (0 unless given).

    ValueError: the list is not given there, or given elsewhere.
    """
    members = member_of(group, "gather_object")
    if members is None:
        return
    root = root_of(members, dst, group_dst, "dst", default=0)
    if (members.rank() == root) != (object_gather_list is not None):
        raise ValueError(f"object_gather_list must be given on the destination rank {members.ranks[root]}, and there only")
    packed: list[Tensor | None] = [None] * members.size()
    packed[root] = _packed(obj)
    found = _exchange(members, packed)
    if object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None, device: device | None = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Replace the objects of all ranks' lists by those of the world's rank `src` (0 unless given).

    The lists are of one length. ValueError for a device other than the CPU.
    """
    members = member_of(group, "broadcast_object_list")
    if members is None:
        return
    _check_device(device)
    root = root_of(members, src, group_src, "src", default=0)
    here = members.rank() == root
    packed = [_packed(value) for value in object_list] if here else []
    lengths = _numbers([each.numel() for each in packed]) if here else empty([len(object_list)], int64)
    broadcast(lengths, group=members, group_src=root)
    whole = empty([int(lengths.numpy().sum())], uint8)
    parts = whole.split(lengths.tolist())
    for part, each in zip(parts, packed, strict=False):
        part.copy_(each)
    broadcast(whole, group=members, group_src=root)
    if not here:
        object_list[:] = [_unpacked(part) for part in parts]


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: ProcessGroup | None = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put into the first place of each rank's output list its object of the input list of the world's rank `src`.

    ValueError: the output list is empty, or the input list does not have an object for each rank.
    """
    members = member_of(group, "scatter_object_list")
    if members is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = root_of(members, src, group_src, "src", default=0)
    packed: list[Tensor | None] = [None] * members.size()
    if members.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != members.size():
            raise ValueError("source rank must provide an object for each rank in scatter_object_input_list")
        packed = [_packed(value) for value in scatter_object_input_list]
    scatter_object_output_list[0] = _exchange(members, packed)[root]


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: ProcessGroup | None = None, device: device | None = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects of a list to the world's rank `dst`, which calls `recv_object_list` with a list of that length.

    ValueError for a device other than the CPU, or `use_batch`.
    """
    _check_device(device)
    _check_unbatched(use_batch)
    packed = [_packed(value) for value in object_list]
    send(_numbers([each.numel() for each in packed]), dst, group, group_dst=group_dst)
    for each in packed:
        send(each, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None, device: device | None = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Replace the objects of a list by those that the world's rank `src` (any, unless given) sends; return that rank.

    ValueError for a device other than the CPU, or `use_batch`.
    """
    _check_device(device)
    _check_unbatched(use_batch)
    lengths = empty([len(object_list)], int64)
    sender = recv(lengths, src, group, group_src=group_src)
    if sender < 0:
        return sender
    for place, length in enumerate(lengths.tolist()):
        part = empty([length], uint8)
        recv(part, sender, group)
        object_list[place] = _unpacked(part)
    return sender


def _check_device(where: device | None) -> None:
    if where is not None and str(where) != "cpu":
        raise ValueError(f"objects are sent from memory of the CPU; got device {where}")


def _check_unbatched(use_batch: bool) -> None:
    if use_batch:
        raise ValueError("use_batch=True is for NCCL: MPI sends objects one after the other; leave it out")
