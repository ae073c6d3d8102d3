"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.distributed.arguments import check_tensor
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.buffers import source, target
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import default_group, get_group_rank, member_of


def isend(
    tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to the world's rank `dst`, or to the group's rank `group_dst`; return a Work.

    The tensor must not change before `wait`. None, with a warning, where this process is not in the group. ValueError for
    this process's own rank, or one that is not in the group.
    """
    members = member_of(group, "isend")
    if members is None:
        return None
    check_tensor(tensor, "tensor")
    peer = _peer(members, dst, group_dst, "dst")
    _check_tag(tag, "isend")
    buffer = source(tensor)
    work = members.begin_message("send", lambda comm: comm.Isend(buffer.whole, peer, tag), buffer.tensor, peer)
    work.progress_in_background()
    return work


def irecv(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive into `tensor` from the world's rank `src`, from the group's rank `group_src`, or, without them, from
    any; return a Work.

    None, with a warning, where this process is not in the group. ValueError for this process's own rank, or one that is not
    in the group.
    """
    members = member_of(group, "irecv")
    if members is None:
        return None
    work = _receive(members, tensor, src, group_src, tag)
    work.progress_in_background()
    return work


def send(
    tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to the world's rank `dst`, or to the group's rank `group_dst`.

    ValueError for this process's own rank, or one that is not in the group. DistBackendError when the other rank is missing.
    """
    members = member_of(group, "send")
    if members is None:
        return
    check_tensor(tensor, "tensor")
    peer = _peer(members, dst, group_dst, "dst")
    _check_tag(tag, "send")
    buffer = source(tensor)
    members.begin_message("send", lambda comm: comm.Isend(buffer.whole, peer, tag), buffer.tensor, peer).wait()


def recv(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive into `tensor` from the world's rank `src`, from the group's rank `group_src`, or from any; return the sender.

    The tensor must have the sent one's dtype and at least its elements. -1, with a warning, where this process is not in the
    group. ValueError as for `send`. DistBackendError when the other rank is missing.
    """
    members = member_of(group, "recv")
    if members is None:
        return -1
    work = _receive(members, tensor, src, group_src, tag)
    work.wait()
    return work.source_rank()


def _receive(members: ProcessGroup, tensor: Tensor, src: int | None, group_src: int | None, tag: int) -> Work:
    check_tensor(tensor, "tensor")
    _check_tag(tag, "recv")
    peer = None if src is None and group_src is None else _peer(members, src, group_src, "src")
    buffer = target(tensor)
    origin = mpi.load().ANY_SOURCE if peer is None else peer
    return members.begin_message(
        "recv", lambda comm: comm.Irecv(buffer.whole, origin, tag), tensor, peer, buffer.deliver
    )  # fmt: skip


def _check_tag(tag: int, caller: str) -> None:
    """Raise ValueError for a tag that MPI refuses. It reads some negative ones as wildcards."""
    limit = mpi.load().COMM_WORLD.Get_attr(mpi.load().TAG_UB)
    if not 0 <= tag <= limit:
        raise ValueError(f"{caller}: tag is {tag}, expected a number from 0 to {limit}")


def _peer(members: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """Return the other side's number in the group."""
    if (rank is None) == (group_rank is None):
        raise ValueError(f"Must specify {'one of ' if rank is None else 'only one of '}{name} and group_{name}")
    peer = get_group_rank(members, rank) if group_rank is None else group_rank
    if not 0 <= peer < members.size():
        raise ValueError(f"Invalid {name} {peer}: the group has {members.size()} ranks")
    if peer == members.rank():
        side = "destination" if name == "dst" else "source"
        raise ValueError(f"Invalid {side} rank: {side} rank should not be the same as the rank of the current process.")
    return peer


class P2POp:
    """A message for `batch_isend_irecv`: `op` is `isend` or `irecv`, `peer` the other rank of the world, `group_peer` that of
    the group.

    ValueError for another `op`, or unless one of `peer` and `group_peer` is given.
    """

    def __init__(
        self,
        op: Callable,
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = group or default_group()
        self.group_peer = _peer(self.group, peer, group_peer, "peer")
        self.peer = self.group.ranks[self.group_peer]

    def __repr__(self) -> str:
        arrow = "to" if self.op is isend else "from"
        return f"P2POp({self.op.__name__} {arrow} rank {self.peer}, {list(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages; return their Works. ValueError for an empty list or anything but P2POps in it."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    works = [each.op(each.tensor, group=each.group, tag=each.tag, **_side(each)) for each in p2p_op_list]
    return [work for work in works if work is not None]


def _side(message: P2POp) -> dict[str, int]:
    return {"group_dst" if message.op is isend else "group_src": message.group_peer}
