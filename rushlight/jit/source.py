"""Source text, and ranges in it for each piece of a scripted program.

In: the text of a function, class or archive. Out: `SourceRange`s, which every tree view, node and instruction stores, and which
errors highlight. Stage: jit, from the frontend to the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_CONTEXT_LINES = 3  # lines shown before and after the marked one


@dataclass(frozen=True, eq=False)
class Source:
    """A text and its position: `first_line` is the number, from 0, of its first line in the file. `origin` maps positions of an
    archive's code to the user's source."""

    text: str
    filename: str | None = None
    first_line: int = 0
    origin: Callable[[int], SourceRange | None] | None = None

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(index + 1 for index, char in enumerate(self.text) if char == "\n")
        object.__setattr__(self, "line_starts", tuple(starts))

    def line_of(self, offset: int) -> int:
        """Return the line, from 0 and within this text, of an offset."""
        low, high = 0, len(self.line_starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.line_starts[middle] <= offset else (low, middle)
        return low

    def line(self, number: int) -> str:
        """Return the text of one line, without its end."""
        start = self.line_starts[number]
        end = self.line_starts[number + 1] - 1 if number + 1 < len(self.line_starts) else len(self.text)
        return self.text[start:end]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line (from 1) and a column (from 0, in characters) of the text."""
        return self.line_starts[line - 1] + column

    def make_range(self, line: int, start: int, end: int) -> SourceRange:
        """Return the range between two columns of a line, which counts from 1."""
        return SourceRange(self, self.offset(line, start), self.offset(line, end))


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The characters [start, end) of a source. For code of an inlined function, `function` is its name and `caller` is the
    range of the call."""

    source: Source
    start: int
    end: int
    function: str = ""
    caller: SourceRange | None = None

    def inlined(self, function: str, caller: SourceRange) -> SourceRange:
        """Return this range as one of a function that was inlined for a call."""
        return self if self.caller is not None else SourceRange(self.source, self.start, self.end, function, caller)

    def frames(self, function: str) -> list[str]:
        """Return the highlighted lines of the calls that led here, outermost first; `function` contains the outermost one."""
        outer = [] if self.caller is None else self.caller.frames(function)
        return [*outer, self.highlight(self.function or function)]

    @property
    def text(self) -> str:
        """Return the characters themselves."""
        return self.source.text[self.start : self.end]

    @property
    def original(self) -> SourceRange | None:
        """Return the range of the user's source behind this range of an archive's code, if known."""
        return None if self.source.origin is None else self.source.origin(self.start)

    def file_line_column(self) -> tuple[str, int, int] | None:
        """Return (file, line from 1, column from 0) of the beginning, in the user's file if known; None for text without a
        file."""
        original = self.original
        if original is not None and original.source.filename is not None:
            return original.file_line_column()
        if self.source.filename is None:
            return None
        line = self.source.line_of(self.start)
        return self.source.filename, self.source.first_line + line + 1, self.start - self.source.line_starts[line]

    def __str__(self) -> str:
        """Return `file:line:column`, the form in printed graphs."""
        place = self.file_line_column()
        return "" if place is None else f"{place[0]}:{place[1]}:{place[2]}"

    def traceback(self) -> str:
        """Return the place as a frame of a traceback; empty for text of no file."""
        place = self.file_line_column()
        if place is None:
            return ""
        found = self.original if self.original is not None and self.original.source.filename is not None else self
        code = found.source.line(found.source.line_of(found.start)).strip()
        return f'File "{place[0]}", line {place[1]}, in TorchScript\n    {code}'

    def highlight(self, function: str = "") -> str:
        """Return the lines around the range, with the range underlined; for an archive's code also the user's lines. `function`
        is the name of the function that the range is in, for tracebacks."""
        original = self.original
        return self._highlight_lines(function) + ("" if original is None else f"The original code:\n{original.highlight()}")

    def _highlight_lines(self, function: str) -> str:
        first = self.source.line_of(self.start)
        last_line = len(self.source.line_starts) - 1
        shown = []
        place = f", in {function}" if function else ""
        if self.source.filename is not None:
            shown.append(f'  File "{self.source.filename}", line {self.source.first_line + first + 1}{place}')
        for number in range(max(0, first - _CONTEXT_LINES), min(last_line, first + _CONTEXT_LINES) + 1):
            line = self.source.line(number)
            if number != last_line or line:
                shown.append(line)
            if number == first:
                shown.append(self._mark_range(line, self.source.line_starts[first]))
        return "\n".join(shown) + "\n"

    def _mark_range(self, line: str, line_start: int) -> str:
        column = self.start - line_start
        width = max(1, min(self.end, line_start + len(line)) - self.start)
        return " " * column + "~" * width + " <--- HERE"

    def merged(self, other: SourceRange) -> SourceRange:
        """Return the smallest range that contains both, which have the same source."""
        return SourceRange(self.source, min(self.start, other.start), max(self.end, other.end))


NO_SOURCE = SourceRange(Source(""), 0, 0)
"""The range of generated code."""
