"""What the profiler is told of a collective or a message: from its beginning to its completion, whoever finds it complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.distributed.engine.operation import Operation

if TYPE_CHECKING:
    from rushlight.distributed.engine.process_group import ProcessGroup


class Record:
    """The span of an operation that begins now, in the recording of this thread; nothing where none is active. `title` is the
    operation's name there, if it has another one."""

    __slots__ = ("_recording", "_span")

    def __init__(
        self, group: ProcessGroup, operation: Operation, tensors: Sequence[Tensor], title: str = ""
    ) -> None:  # fmt: skip
        self._recording = state.recording
        if self._recording is not None:
            name = f"{group.backend_name}:{title or operation.name}"
            self._span = self._recording.begin_beside(name, _facts(group, operation, tensors))
            if self._recording.wish.shapes:
                self._span.shapes = [_shape_as_sent(tensor) for tensor in tensors]

    def finish(self) -> None:
        """End the span now."""
        if self._recording is not None:
            self._recording.finish_beside(self._span)


def _shape_as_sent(tensor: Tensor) -> list[int]:
    """Return the shape of the numbers that travel: complex ones are pairs."""
    return [*tensor.shape, 2] if tensor.dtype.is_complex else list(tensor.shape)


def _facts(group: ProcessGroup, operation: Operation, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Return the facts of a collective by the names of torch's traces, and the bytes of its tensors."""
    return {
        "Collective name": operation.name, "Seq": operation.number, "dtype": tensors[0].dtype.name if tensors else "",
        "In msg nelems": sum(tensor.numel() for tensor in tensors), "Bytes": sum(tensor.nbytes for tensor in tensors),
        "Process Group Name": group.group_name, "Process Group Ranks": list(group.ranks), "Group size": group.size(),
        "Rank": group.rank(),
    }  # fmt: skip
