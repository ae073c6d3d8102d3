"""The base of tree views, and their printer: s-expressions, with small ones on one line.

In: a tree. Out: text. The kinds of trees are in `tree_views.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from rushlight.jit.source import SourceRange

_MAX_WIDTH = 40  # in columns: a wider subtree is printed on several lines


@dataclass(slots=True)
class Tree:
    """Base of tree views. A subclass's fields are its children: trees, sequences of trees (lists), None (no option)."""

    range: SourceRange

    kind = "tree"

    def children(self) -> Iterator[object]:
        """Yield the contents of the brackets, in order: trees, atoms (str), lists, and options."""
        for each in fields(self):
            if each.name != "range":
                yield getattr(self, each.name)

    def __str__(self) -> str:
        out: list[str] = []
        _print(self, 0, out)
        return "".join(out) + "\n"

    def dump(self) -> None:
        """Print the tree."""
        print(self)


@dataclass(slots=True)
class Option:
    """An optional child in print: `(option)` or `(option (...))`."""

    value: Tree | TreeList | None

    kind = "option"

    def children(self) -> Iterator[object]:
        """Yield the value, if there is one."""
        if self.value is not None:
            yield self.value


@dataclass(slots=True)
class TreeList:
    """A list of trees in print: `(list ...)`."""

    items: Sequence[Tree]

    kind = "list"

    def children(self) -> Iterator[object]:
        """Yield the items."""
        yield from self.items


def _normalize_child(child: object) -> object:
    return TreeList(child) if isinstance(child, list | tuple) else child


def _print_flat(node: object) -> str:
    if isinstance(node, str):
        return node
    return "(" + " ".join([node.kind, *(_print_flat(_normalize_child(child)) for child in node.children())]) + ")"


def _print(node: object, indent: int, out: list[str]) -> None:
    flat = _print_flat(node)
    if isinstance(node, str) or indent + len(flat) < _MAX_WIDTH:
        out.append(flat)
        return
    out.append(f"({node.kind}")
    for child in node.children():
        out.append("\n" + " " * (indent + 2))
        _print(_normalize_child(child), indent + 2, out)
    out.append(")")
