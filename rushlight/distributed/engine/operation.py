"""What a process is doing together with others: an operation of a group, and the operations that the process waits in."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from rushlight.core.tensor import Tensor

listeners: list[Callable[[Operation], None]] = []
"""Functions that are told of each collective that begins."""


class Operation:
    """A collective or a message: its name, the group, its number there, and what it was called with.

    Collectives of a group are numbered alike on all ranks; messages have their own numbers on each.
    """

    __slots__ = ("name", "number", "group", "detail", "tensors")

    def __init__(self, name: str, number: int, group: str, tensors: Sequence[Tensor], detail: str) -> None:
        self.name, self.number, self.group, self.detail = name, number, group, detail
        self.tensors = [(tensor._impl.dtype.name, tensor._impl.sizes) for tensor in tensors]

    @property
    def label(self) -> str:
        """Return the name, the number and the group."""
        return f"{self.name} no. {self.number} of group {self.group!r}"

    @property
    def signature(self) -> str:
        """Return what must agree between ranks: "float32[3, 4], SUM"."""
        parts = [f"{name}{list(sizes)}" for name, sizes in self.tensors[:4]]
        if len(self.tensors) > 4:
            parts.append(f"and {len(self.tensors) - 4} more")
        return ", ".join(part for part in (*parts, self.detail) if part)

    def __str__(self) -> str:
        return f"{self.label} ({self.signature})" if self.signature else self.label


@dataclass
class Report:
    """What a rank says of itself when another asks: the operations it waits in, by label, the last one it began, and the line
    of the program that its main thread is at."""

    waits: list[str] = field(default_factory=list)
    last: str = ""
    place: str = ""


class Activity:
    """The operations that this process waits in now, and the last one that it began."""

    def __init__(self) -> None:
        self._waits: list[Operation] = []
        self.last: Operation | None = None

    @contextmanager
    def waiting(self, operation: Operation) -> Iterator[None]:
        """List the operation among those that are waited in."""
        self._waits.append(operation)
        try:
            yield
        finally:
            self._waits.remove(operation)

    def waits(self) -> list[Operation]:
        """Return the operations that are waited in."""
        return list(self._waits)

    def report(self) -> Report:
        """Return what another rank is told."""
        return Report([str(each) for each in self._waits], str(self.last) if self.last else "", place_of_main_thread())


def place_of_main_thread() -> str:
    """Return the innermost line of the user's program that the main thread is at: "train.py:33 in step", or "" for none."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        code = frame.f_code
        if "rushlight" not in code.co_filename.split("/") and not code.co_filename.startswith("<"):
            return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    return ""
