"""The ranks that save or load together, or one process alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.distributed.checkpoint.metadata import CheckpointException
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import default_group, is_initialized
from rushlight.distributed.objects import all_gather_object

T = TypeVar("T")


class Ranks:
    """The ranks of a group, None for all; a process alone where there is no group or `alone` is set."""

    def __init__(self, group: ProcessGroup | None, alone: bool = False) -> None:
        self.group = None if alone or not is_initialized() else group or default_group()
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks."""
        if self.group is None:
            return [value]
        everyone: list[Any] = [None] * self.size
        all_gather_object(everyone, value, self.group)
        return everyone

    def together(self, step: Callable[[], T], what: str) -> list[T]:
        """Return what a step gives on all ranks. CheckpointException on all when it raises on one."""
        try:
            outcome: tuple[T | None, str] = (step(), "")
        except Exception as error:  # the others must hear of it
            outcome = (None, f"{type(error).__name__}: {error}")
            cause: Exception | None = error
        else:
            cause = None
        everyone = self.gathered(outcome)
        failed = [f"rank {rank}: {text}" for rank, (_, text) in enumerate(everyone) if text]
        if failed:
            raise CheckpointException(f"{what} failed: " + "; ".join(failed)) from cause
        return [value for value, _ in everyone]
