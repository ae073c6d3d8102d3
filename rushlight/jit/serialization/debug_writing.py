"""Write the debug sources that `debug_sources.py` reads, for one file of code. Stage: jit, saving."""

from __future__ import annotations

import pickle

from rushlight.jit.serialization.debug_sources import FORMAT, INTLIST
from rushlight.jit.source import Source, SourceRange
from rushlight.serialization.pickler import Pickler


class DebugPickler(Pickler):
    """Writes the record for one file of code."""

    def __init__(self) -> None:
        super().__init__()
        self.strings: dict[str, int] = {}
        self.written: dict[int, int] = {}

    def dump_ranges(self, ranges: list[tuple[int, SourceRange]]) -> bytes:
        """Return the pickle for offsets and the ranges behind them."""
        known = [(offset, each.original or each) for offset, each in ranges]
        known = [(offset, each) for offset, each in known if each.source.text]
        for _, each in known:
            for line in (*each.source.text.splitlines(keepends=True), each.source.filename or ""):
                self.strings.setdefault(line, len(self.strings))
        self.out += pickle.PROTO + b"\x02"
        entries = tuple(lambda item=item: self._entry(*item) for item in known)
        self.write_tuple((FORMAT, lambda: self.write_tuple(tuple(self.strings)), lambda: self.write_tuple(entries)))
        self.out += pickle.STOP
        return bytes(self.out)

    def _entry(self, offset: int, each: SourceRange) -> None:
        text = each.source.text
        start, end = (len(text[:place].encode()) for place in (each.start, each.end))
        self.write_tuple((offset, lambda: self.write_tuple((lambda: self._source(each.source), start, end)), 0))

    def _source(self, source: Source) -> None:
        if id(source) in self.written:
            self._write_get(self.written[id(source)])
            return
        lines = [self.strings[line] for line in source.text.splitlines(keepends=True)]
        name = self.strings[source.filename or ""]
        self.write_tuple((lambda: self.write_call(*INTLIST, (lines,)), name, source.first_line + 1))
        self.kept.append(source)
        self.written[id(source)] = self._write_put()
