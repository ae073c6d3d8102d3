"""Checks of printed programs, after LLVM's FileCheck: what must stand in a text, in which order, and what must not.

In: a list of checks and a text. Out: nothing, or RuntimeError that names the check and shows where it looked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_DIRECTIVE = re.compile(r"#\s*CHECK(?:-(NEXT|SAME|NOT|DAG|COUNT-(?:EXACTLY-)?\d+|SOURCE-HIGHLIGHTED|REGEX))?:[ \t]?(.*)")


class _Check(NamedTuple):
    kind: str
    text: str
    count: int = 1

    def __str__(self) -> str:
        name = {"check": "CHECK"}.get(self.kind, f"CHECK-{self.kind.upper()}")
        return f"{name}: {self.text}"


class FileCheck:
    """Checks that are made one after another; each begins to look where the one before it ended.

    >>> from rushlight.testing import FileCheck
    >>> FileCheck().check("add").check_not("mul").run("%2 = add(%0, %1)")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str, count: int = 1) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        """Check that `text` stands somewhere behind the previous match."""
        return self._add("check", text)

    def check_not(self, text: str) -> FileCheck:
        """Check that `text` does not stand between the previous match and the next one."""
        return self._add("not", text)

    def check_same(self, text: str) -> FileCheck:
        """Check that `text` stands in the rest of the line of the previous match."""
        return self._add("same", text)

    def check_next(self, text: str) -> FileCheck:
        """Check that `text` stands in the line below the previous match."""
        return self._add("next", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:  # noqa: A002 - torch's name
        """Check that `str` stands `count` times behind the previous match; with `exactly`, not once more."""
        self._add("count", str, count)
        return self._add("not", str) if exactly else self

    def check_dag(self, text: str) -> FileCheck:
        """Check that `text` stands behind the previous match. Neighbouring checks of this kind may match in any order."""
        return self._add("dag", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """Check that a line has `text` and that the line below marks all of it with `~`, as messages with source code do."""
        return self._add("source-highlighted", text)

    def check_regex(self, text: str) -> FileCheck:
        """Check that the regular expression `text` matches behind the previous match."""
        return self._add("regex", text)

    def run(self, text: Any = None, test_file: Any = None, checks_file: Any = None) -> None:
        """Make the checks on a text, or on the text of an object such as a graph. RuntimeError for the first that fails.

        With a second argument the checks are the lines `# CHECK: ...` of the first one, which is also called `checks_file`.
        """
        text = checks_file if text is None else text
        if test_file is not None:
            _parse_directives(str(text)).run(test_file)
            return
        _Run(str(text), self._checks).all()

    def __repr__(self) -> str:
        return f"FileCheck checks:\n{''.join(f'    {check}{chr(10)}' for check in self._checks)}"


def _parse_directives(lines: str) -> FileCheck:
    made = FileCheck()
    for kind, text in _DIRECTIVE.findall(lines):
        if kind.startswith("COUNT"):
            made.check_count(text, int(kind.rpartition("-")[2]), "EXACTLY" in kind)
        else:
            made._add(kind.lower() or "check", text)
    if not made._checks:
        raise RuntimeError("expected lines such as '# CHECK: text', and there are none")
    return made


class _Run:
    def __init__(self, text: str, checks: list[_Check]) -> None:
        self.text = text
        self.checks = checks
        self.place = 0  # the end of the previous match

    def all(self) -> None:
        absent: list[_Check] = []
        index = 0
        while index < len(self.checks):
            check = self.checks[index]
            if check.kind == "not":
                absent.append(check)
                index += 1
                continue
            begin = self.place
            group = [check]
            if check.kind == "dag":
                group = list(itertools.takewhile(lambda other: other.kind == "dag", self.checks[index:]))
            first = self._find_group(group)
            self._check_absent(absent, begin, first)
            absent = []
            index += len(group)
        self._check_absent(absent, self.place, len(self.text))

    def _find_group(self, group: list[_Check]) -> int:
        """Find a match for each check; return the place where the first match begins."""
        if group[0].kind != "dag":
            return _FINDERS[group[0].kind](self, group[0])
        begin, starts, ends = self.place, [], []
        for check in group:
            self.place = begin
            start = self._find(check, check.text, begin, len(self.text))
            starts.append(start)
            ends.append(start + len(check.text))
        self.place = max(ends)
        return min(starts)

    def _check_absent(self, checks: list[_Check], begin: int, end: int) -> None:
        for check in checks:
            found = self.text.find(check.text, begin, end)
            if found >= 0:
                self._fail(f'Expected to not find "{check.text}" but found it', check, found)

    def _find(self, check: _Check, text: str, begin: int, end: int) -> int:
        found = self.text.find(text, begin, end)
        if found < 0:
            self._fail(f'Expected to find "{text}" but did not find it', check, begin)
        return found

    def _find_plain(self, check: _Check) -> int:
        found = self._find(check, check.text, self.place, len(self.text))
        self.place = found + len(check.text)
        return found

    def _line_end(self, begin: int) -> int:
        end = self.text.find("\n", begin)
        return len(self.text) if end < 0 else end

    def _find_in_line(self, check: _Check) -> int:
        found = self._find(check, check.text, self.place, self._line_end(self.place))
        self.place = found + len(check.text)
        return found

    def _find_in_next_line(self, check: _Check) -> int:
        begin = min(self._line_end(self.place) + 1, len(self.text))
        found = self._find(check, check.text, begin, self._line_end(begin))
        self.place = found + len(check.text)
        return found

    def _find_count(self, check: _Check) -> int:
        first = self.place
        for number in range(check.count):
            found = self._find_plain(check)
            first = found if number == 0 else first
        return first

    def _find_regex(self, check: _Check) -> int:
        found = re.compile(check.text).search(self.text, self.place)
        if found is None:
            self._fail(f"Expected to find regex {check.text!r} but did not find it", check, self.place)
        self.place = found.end()
        return found.start()

    def _find_highlighted(self, check: _Check) -> int:
        begin = self.place
        while True:
            found = self._find(check, check.text, begin, len(self.text))
            line = self.text.rfind("\n", 0, found) + 1
            below = self._line_end(found) + 1
            start = below + found - line
            marks = self.text[start : start + len(check.text)]
            if marks == "~" * len(check.text) and start <= self._line_end(below):
                self.place = start + len(marks)
                return found
            begin = found + 1

    def _fail(self, what: str, check: _Check, place: int) -> None:
        begin = self.text.rfind("\n", 0, place) + 1
        shown = "\n".join(self.text[begin:].splitlines()[:12])
        raise RuntimeError(f"{what}\nSearched string:\n{shown}\n{'~' * min(place - begin, 100)}<--- HERE\nFrom {check}")


_FINDERS: dict[str, Callable[[_Run, _Check], int]] = {
    "check": _Run._find_plain,
    "same": _Run._find_in_line,
    "next": _Run._find_in_next_line,
    "count": _Run._find_count,
    "regex": _Run._find_regex,
    "source-highlighted": _Run._find_highlighted,
}
