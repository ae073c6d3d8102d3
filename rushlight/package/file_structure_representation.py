"""Directory: the files of a package as a tree, for printing.

In: the paths of files. Out: folders and files by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rushlight.package.glob_group import GlobGroup, GlobPattern


class Directory:
    """A folder, whose `children` are files and folders by name, or a file. `str` draws the tree."""

    def __init__(self, name: str, is_dir: bool):
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def has_file(self, filename: str) -> bool:
        """Return whether there is a file or folder with this path."""
        place: Directory | None = self
        for part in filename.split("/"):
            place = place.children.get(part) if place is not None else None
        return place is not None

    def add(self, path: str) -> None:
        """Add a file by its path, and its folders."""
        *folders, name = path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[name] = Directory(name, False)

    def __str__(self) -> str:
        return "".join(self._lines("", "─── ", "    "))

    def _lines(self, indent: str, branch: str, below: str) -> Iterator[str]:
        yield f"{indent}{branch}{self.name}\n"
        ordered = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in ordered:
            is_last = child is ordered[-1]
            yield from child._lines(indent + below, "└── " if is_last else "├── ", "    " if is_last else "│   ")


def directory_of(name: str, paths: Iterable[str], include: GlobPattern, exclude: GlobPattern) -> Directory:
    """Return the tree called `name` of the paths that the patterns select."""
    selected = GlobGroup(include, exclude=exclude, separator="/")
    root = Directory(name, True)
    for path in paths:
        if selected.matches(path):
            root.add(path)
    return root
