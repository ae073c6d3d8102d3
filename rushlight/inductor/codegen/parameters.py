"""The parameters of a kernel that stand for buffers, for all kinds of code."""

from __future__ import annotations

from rushlight.core.dtype import dtype
from rushlight.inductor.ir import Buffer


class BufferParameters:
    """Base of kernel writers: numbers the buffers that a kernel reads and those that it writes, in order of first use. A buffer
    that is written is also read by that parameter."""

    READ, WRITTEN = "in", "out"  # the beginnings of parameters' names

    def __init__(self, buffers: dict[str, Buffer]):
        self.buffers = buffers
        self._names: dict[tuple[str, bool], str] = {}

    def element_type(self, name: str) -> dtype:
        """Return the dtype of a buffer's elements; complex numbers are stored as two reals."""
        return self.buffers[name].layout.dtype.to_real()

    def pointer(self, name: str, write: bool = False) -> str:
        """Return the parameter for reading or writing a buffer."""
        written = self._names.get((name, True))
        if written is not None:
            return written
        found = self._names.get((name, write))
        if found is None:
            found = f"{self.WRITTEN if write else self.READ}{sum(key[1] == write for key in self._names)}"
            self._names[name, write] = found
            self.add_pointer(found, name, write)
        return found

    def add_pointer(self, parameter: str, name: str, write: bool) -> None:
        """Add a parameter to the kernel."""
        raise NotImplementedError
