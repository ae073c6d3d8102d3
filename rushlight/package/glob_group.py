"""GlobGroup: names of modules, or paths of files, that patterns select.

In: patterns to include and to exclude. Out: whether a name matches. `*` stands for any characters of one segment, `**` for any
number of whole segments, none included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """The names that match one of the patterns `include` and none of `exclude`; segments stand between `separator`.

    ValueError if `**` is combined with other characters in a segment, TypeError if a pattern is no string.
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self.separator = separator
        self.include = _compile_patterns(include, separator)
        self.exclude = _compile_patterns(exclude, separator)
        self._text = f"GlobGroup(include={_printable(include)}, exclude={_printable(exclude)})"

    def matches(self, candidate: str) -> bool:
        """Return whether a name is selected."""
        name = self.separator + candidate
        return any(each.fullmatch(name) for each in self.include) and not any(each.fullmatch(name) for each in self.exclude)

    def __repr__(self) -> str:
        return self._text


def _printable(patterns: GlobPattern) -> object:
    return patterns if isinstance(patterns, str) else patterns if isinstance(patterns, list) else tuple(patterns)


def _compile_patterns(patterns: GlobPattern, separator: str) -> list[re.Pattern[str]]:
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    return [re.compile("".join(_segment(part, separator) for part in each.split(separator))) for each in listed]


def _segment(text: str, separator: str) -> str:
    """Return a segment with the separator before it, as a regular expression."""
    before = re.escape(separator)
    if text == "**":
        return f"(?:{before}[^{before}]+)*"
    if "**" in text:
        raise ValueError("** can only appear as an entire path segment")
    return before + f"[^{before}]*".join(map(re.escape, text.split("*")))
