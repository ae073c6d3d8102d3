"""Launchers: what runs a Triton program. The text of a program calls one for memory and kernels.

There are launchers for Triton's interpreter on CPU memory (`interpreter.py`) and for a device.
"""

from __future__ import annotations

from typing import Protocol

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor


class Memory(Protocol):
    """A block of memory; `data_ptr` is its address."""

    @property
    def data_ptr(self) -> int:
        """The address."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""


class Launcher(Protocol):
    """Runs one program: allocates memory and launches kernels, which run in the order of the launches.

    A launcher may have a method `planner(inputs)`. It returns a `planning.Planner`, with which launches for such inputs become
    a plan, or None if these inputs need the launcher at each call.
    """

    def allocate(self, nbytes: int) -> Memory:
        """Return a block of memory, aligned to 64 bytes."""

    def free(self, memory: Memory) -> None:
        """Take a block back: kernels launched so far may still use it, later ones will not."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy memory after the kernels launched so far."""

    def clear_status(self) -> int:
        """Return the address of an int32 that is 0 when the next kernel starts; kernels set it to 1 after an error."""

    def has_failed(self, status: int) -> bool:
        """Return whether a kernel has reported an error. A launcher that does not wait for kernels returns False, and raises
        the error where it waits."""

    def launch(
        self, kernel: str, grid: tuple[int, ...], arguments: tuple[int, ...], constants: dict[str, int], *, warps: int,
        stages: int,
    ) -> None:  # fmt: skip
        """Run a kernel of the program: `grid` programs, with addresses and sizes as arguments."""

    def address(self, tensor: Tensor) -> int:
        """Return the address of a tensor's first element, for kernels launched next. CPU tensors without dimensions may be
        copied."""

    def tensor(self, memory: Memory, size: tuple[int, ...], stride: tuple[int, ...], offset: int, kind: dtype) -> Tensor:
        """Return a tensor over memory of `allocate`."""
