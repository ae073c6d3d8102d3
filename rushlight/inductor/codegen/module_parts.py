"""What the texts of standalone files have in common: a program's arguments, results and sizes as Python literals.

In: a lowered graph, and the names of the memory that its program gives. Out: text. Symbolic sizes take the example's values.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer
from rushlight.inductor.plan import OutputView
from rushlight.inductor.sizes import Size, evaluate


class ModuleParts:
    """The parts of one program's file."""

    def __init__(self, lowered: LoweredGraph, outputs: Sequence[str]):
        self.lowered, self.outputs = lowered, list(outputs)
        self.buffers = {buffer.name: buffer for buffer in lowered.buffers}
        self.hints = lowered.symbols.hints

    @property
    def sizes(self) -> list[int]:
        """The values of the size symbols."""
        return list(self.hints.values())

    def arguments(self, constants: Sequence[Buffer]) -> str:
        """Return the inputs and constants as a list's items."""
        return _items([self._argument(buffer) for buffer in [*self.lowered.inputs, *constants]])

    def results(self) -> str:
        """Return the results that lie in memory of the program as a list's items."""
        return _items([self._result(view) for view in self.lowered.outputs if view.buffer in self.outputs])

    def nbytes(self, buffer: Buffer) -> int:
        """Return a buffer's size."""
        return evaluate(buffer.layout.numel, self.hints) * buffer.layout.dtype.itemsize

    def _known(self, sizes: tuple[Size, ...]) -> tuple[int, ...]:
        return tuple(evaluate(size, self.hints) for size in sizes)

    def _argument(self, buffer: Buffer) -> str:
        layout = buffer.layout
        return f"Argument({buffer.name!r}, {self._known(layout.size)}, {self._known(layout.stride)}, {layout.dtype.name!r})"

    def _result(self, view: OutputView) -> str:
        kind = self.buffers[view.buffer].layout.dtype.name
        number, offset = self.outputs.index(view.buffer), evaluate(view.offset, self.hints)
        return f"Result({number}, {self._known(view.size)}, {self._known(view.stride)}, {offset}, {kind!r})"


def _items(texts: list[str]) -> str:
    return "".join(f"\n        {text}," for text in texts) + ("\n    " if texts else "")
