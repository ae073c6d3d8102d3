"""Where texts of stages come from: the comments that name the user's lines, as blocks of lines.

In: the text of a stage, in which comments of one form name lines of the program. Out: blocks of its lines, each with places.
"""

from __future__ import annotations

import linecache
import os
import re
import site
import threading
from collections.abc import Iterable
from pathlib import Path

from rushlight.fx.annotations import PACKAGE_FOLDER

Place = str  # "FILE:LINE", FILE being an index into the recording's files
Block = tuple[int, int, list[Place]]

MAX_FILE = 2_000_000  # characters; longer sources are named, but not shown
MAX_LINE = 200_000  # files put together from fragments have at most this many lines
_COMMENT = re.compile(r"^\s*(?:#|//) (?:File: )?(?P<path>\S.*?):(?P<line>\d+)(?: in |, code|$)")
_LINE = re.compile(r"^(?P<path>.*?):(?P<line>\d+) in (?P<function>[^:]+)")
_MEMBER = re.compile(r"^  \w+: ")
_KERNEL = re.compile(r"\b(kernel_\d+)\(")
_IN_ARCHIVES = ("rushlight/", "torch/", "code/__torch__/torch/")  # files of the library that wrote an archive
_INSTALLED = tuple(folder + os.sep for folder in [*site.getsitepackages(), os.path.dirname(os.__file__)])


class Files:
    """The files of a recording, in the order in which they were met. Safe to call from several threads."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._fragments: dict[str, dict[int, str]] = {}
        self._lock = threading.Lock()

    def place(self, path: str, line: int | str) -> Place:
        """A line of a file."""
        return f"{self.index(path)}:{line}"

    def index(self, path: str) -> int:
        """The number of a file."""
        found = self._indices.get(path)
        if found is None:
            with self._lock:
                found = self._indices.setdefault(path, len(self._indices))
        return found

    def has_any(self) -> bool:
        """Whether a file was met."""
        return bool(self._indices)

    def add_fragment(self, path: str, first: int, text: str) -> None:
        """Note lines of a file that need not be here, as archives hold them: `text` begins at the line `first`."""
        lines = self._fragments.setdefault(path, {})
        for number, line in enumerate(text.split("\n"), first):
            lines.setdefault(number, line)

    def described(self) -> list[dict]:
        """The files as a recording has them."""
        paths = list(self._indices)
        return [
            {"path": path, "name": name, "text": _text_of(path) or self._joined(path), "own": is_own(path)}
            for path, name in zip(paths, short_names(paths), strict=True)
        ]

    def _joined(self, path: str) -> str:
        """The fragments of a file, each line in its place; what is between them is empty."""
        lines = self._fragments.get(path, {})
        last = max(lines, default=0)
        return "\n".join(lines.get(number, "") for number in range(1, last + 1)) if last <= MAX_LINE else ""


def is_own(path: str) -> bool:
    """Whether a file is the user's: not of this library, the standard library or an installed package."""
    if path.startswith((PACKAGE_FOLDER, *_INSTALLED, "<frozen")) or "/site-packages/" in path:
        return False
    return not path.startswith(_IN_ARCHIVES) or os.path.isfile(path)


def short_names(paths: list[str]) -> list[str]:
    """For each path its shortest end of whole parts that no other path has."""
    parts = [path.split(os.sep) for path in paths]
    names = []
    for own in parts:
        for count in range(1, len(own) + 1):
            same = [other for other in parts if other is not own and other[-count:] == own[-count:]]
            if not same:
                break
        names.append(os.sep.join(own[-count:]))
    return names


def _text_of(path: str) -> str:
    lines = linecache.getlines(path)  # knows what interactive sessions define, too
    text = "".join(lines)
    if not text and os.path.isfile(path):
        try:
            text = Path(path).read_text(errors="replace")
        except OSError:
            return ""
    return text if len(text) <= MAX_FILE else ""


def places_of_lines(lines: Iterable[str], files: Files) -> list[Place]:
    """The places of lines in inductor's form, `path:line in function: code`."""
    return [files.place(match["path"], match["line"]) for match in map(_LINE.match, lines) if match]


def functions_of_lines(lines: Iterable[str]) -> list[str]:
    """The functions that lines in inductor's form name."""
    return [match["function"] for match in map(_LINE.match, lines) if match]


def places_in_comment(line: str, files: Files) -> list[Place] | None:
    """The place that a comment names, none where it lies in this library; None for other lines."""
    match = _COMMENT.match(line)
    if match is None:
        return None
    return [] if match["path"].startswith(PACKAGE_FOLDER) else [files.place(match["path"], match["line"])]


def blocks_under_comments(text: str, files: Files) -> list[Block]:
    """Blocks that begin with comments that name places and end before the next such comment or empty line."""
    found: list[Block] = []
    first, places, in_comments = 0, [], False
    for number, line in enumerate(text.split("\n"), 1):
        named = places_in_comment(line, files)
        is_comment = named is not None or (in_comments and _is_comment(line))
        if not line.strip() or (is_comment and not in_comments):
            if places:
                found.append((first, number - 1, places))
            first, places = number, []
        places += [place for place in named or [] if place not in places]
        in_comments = is_comment
    if places:
        found.append((first, len(text.split("\n")), places))
    return found


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("# ", "// "))


def blocks_above_comments(text: str, files: Files) -> list[Block]:
    """Blocks of one line, `  name: …`, and the comments behind it that name its places."""
    found: list[Block] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _MEMBER.match(line):
            found.append((number, number, []))
        elif found and found[-1][1] == number - 1 and (named := places_in_comment(line, files)) is not None:
            first, _, places = found[-1]
            found[-1] = (first, number, [*places, *named])
    return [block for block in found if block[2]]


def blocks_of_code(text: str, calls: list[tuple[str, list[Place]]]) -> list[Block]:
    """Kernels, and the lines elsewhere that call them. `calls` are the names of the kernels in the order in which the program
    calls them, with the places of each call; a kernel that is called several times comes from all of their places."""
    waiting: dict[str, list[list[Place]]] = {}
    for name, places in calls:
        waiting.setdefault(name, []).append(places)
    blocks: list[Block] = []
    inside: set[int] = set()
    for name, (first, last) in kernel_lines(text).items():
        places = list(dict.fromkeys(place for each in waiting.get(name, []) for place in each))
        inside.update(range(first, last + 1))
        blocks += [(first, last, places)] if places else []
    for number, line in enumerate(text.split("\n"), 1):
        names = [] if number in inside else [name for name in _KERNEL.findall(line) if waiting.get(name)]
        places = list(dict.fromkeys(place for name in names for place in waiting[name].pop(0)))
        blocks += [(number, number, places)] if places else []
    return sorted(blocks)


def _kernels_in(lines: Iterable[str]) -> list[str]:
    """The kernels that a block defines."""
    return [name for line in lines if line.startswith("static ") for name in _KERNEL.findall(line)[:1]]


def blocks_of_names(text: str, places: dict[str, list[Place]]) -> list[Block]:
    """Lines that begin with a name, as `  name: …`, whose places are known."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        name = line.strip().partition(":")[0]
        if places.get(name):
            found.append((number, number, places[name]))
    return found


def kernel_lines(text: str, namespace: str = "") -> dict[str, tuple[int, int]]:
    """The first and last line of each kernel in C++ text, with the comments above it. With a `namespace`, of those in it."""
    found, begin, lines = {}, 1, text.split("\n")
    is_inside = not namespace
    for number, line in enumerate([*lines, ""], 1):
        if namespace and line.startswith("namespace "):
            is_inside, begin = line == f"namespace {namespace} {{", number + 1
        if is_inside and not line.strip():
            for name in _kernels_in(lines[begin - 1 : number - 1]):
                found[name] = (begin, number - 1)
            begin = number + 1
    return found
