"""Debug sources: the user's source position of each position in an archive's code.

In: the records `code/....py.debug_pkl`. A pickle of ("FORMAT_WITH_STRING_TABLE", strings, entries): an entry is an offset in
the code file and its original range (source, start, end); a source is its lines, as indices into the strings, its file's name
and the number, from 1, of its first line. Offsets count bytes. Stage: jit, loading; `debug_writing.py` writes them.
"""

from __future__ import annotations

import bisect
import io

from rushlight.jit.source import Source, SourceRange
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.unpickler import Constructor, Unpickler

FORMAT = "FORMAT_WITH_STRING_TABLE"
INTLIST = ("torch.jit._pickle", "build_intlist")


class DebugSources:
    """Looks up the original positions of one file's code. A damaged record has none."""

    def __init__(self, data: bytes):
        self.data = data
        self.offsets: list[int] | None = None
        self.ranges: list[tuple[tuple, int, int]] = []
        self.strings: tuple = ()
        self.sources: dict[int, Source | None] = {}

    def find(self, offset: int) -> SourceRange | None:
        """Return the original range of the code at an offset."""
        try:
            if self.offsets is None:
                self.offsets = []
                self._read_entries()
            index = bisect.bisect_right(self.offsets, offset) - 1
            if index < 0:
                return None
            parts, start, end = self.ranges[index]
            source = self._source(parts)
            if source is None or type(start) is not int or type(end) is not int:
                return None
            start, end = _to_character_offset(source.text, start), _to_character_offset(source.text, end)
            return SourceRange(source, start, end) if 0 <= start <= end <= len(source.text) else None
        except (UnpicklingError, TypeError, ValueError, IndexError):
            return None

    def _read_entries(self) -> None:
        value = Unpickler(io.BytesIO(self.data), len(self.data), _find_global, _refuse).load()
        if value[0] == FORMAT:
            self.strings, value = value[1], value[2]
        entries = sorted(((entry[0], entry[1]) for entry in value if type(entry[0]) is int), key=lambda entry: entry[0])
        self.offsets = [offset for offset, _ in entries]
        self.ranges = [each for _, each in entries]

    def _source(self, parts: tuple) -> Source | None:
        """Return a source, in the format with a string table, or in the older one with inline strings."""
        if id(parts) not in self.sources:
            lines, name, first_line = parts
            text = "".join(self.strings[number] for number in lines) if isinstance(lines, list) else lines
            name = self.strings[name] if type(name) is int else name
            usable = type(text) is str and type(first_line) is int and bool(text.strip())
            self.sources[id(parts)] = Source(text, name or None, first_line - 1) if usable else None
        return self.sources[id(parts)]


def _to_character_offset(text: str, offset: int) -> int:
    """Return a byte offset converted to a character offset."""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def _find_global(module: str, name: str) -> object:
    if (module, name) != INTLIST:
        raise UnpicklingError("a record of debug sources names something other than a list of numbers")
    return Constructor(f"{module}.{name}", lambda machine, args: args[0])


def _refuse(identity: object) -> None:
    raise UnpicklingError("a record of debug sources refers to a storage")
