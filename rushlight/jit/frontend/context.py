"""Source ranges of Python syntax nodes.

In: nodes of Python's `ast`. Out: source ranges. Stage: jit, frontend.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from rushlight.jit.source import Source, SourceRange


@dataclass(frozen=True)
class SourceContext:
    """A source, and the mapping of its syntax tree's positions to it: `extra_lines` were prepended for parsing. An archive's
    code may define nested functions, for `fork`."""

    source: Source
    extra_lines: int = 0
    is_archive: bool = False

    def range(self, node: ast.AST) -> SourceRange:
        """Return the range of a node."""
        line, end_line = node.lineno - self.extra_lines, node.end_lineno - self.extra_lines
        return SourceRange(self.source, self._offset(line, node.col_offset), self._offset(end_line, node.end_col_offset))

    def word(self, node: ast.AST, word: str) -> SourceRange:
        """Return the range of the keyword at a statement's start."""
        start = self._offset(node.lineno - self.extra_lines, node.col_offset)
        return SourceRange(self.source, start, start + len(word))

    def last_name(self, node: ast.AST, name: str) -> SourceRange:
        """Return the range of the name at a node's end."""
        end = self.range(node).end
        return SourceRange(self.source, end - len(name), end)

    def _offset(self, line: int, column: int) -> int:
        # Python's ast counts columns in UTF-8 bytes; Source counts them in characters.
        text = self.source.line(line - 1)
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self.source.offset(line, column)
