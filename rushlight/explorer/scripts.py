"""The stages of a TorchScript function before it becomes native.

In: a function and its graph. Out: its source, tree, graphs after each pass and instructions, as stages of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rushlight.explorer.places import Block, Files
from rushlight.fx.annotations import PACKAGE_FOLDER
from rushlight.jit.errors import JitException
from rushlight.jit.frontend.definitions import definitions_of_text
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.preparation import PASSES
from rushlight.jit.serialization import class_printer

_END = re.compile(r"# (?P<path>\S.*?):(?P<line>\d+):\d+$")


class ScriptStage(NamedTuple):
    """A stage of a function: its name and title, the language of its text, and whether it is a change of the one before."""

    name: str
    title: str
    language: str
    text: str
    is_change: bool = False


def stages_of(function: Function, code: Code) -> Iterator[ScriptStage]:
    """The stages in the order in which they are made."""
    graph = function.graph
    yield from _source(function)
    yield ScriptStage("ir", "IR as it was emitted", "torchscript", str(graph))
    yield from _passes(graph)
    yield ScriptStage("instructions", "instructions of the stack machine", "text", str(code))


def _source(function: Function) -> Iterator[ScriptStage]:
    """The function as TorchScript's Python, and that as a tree; neither where it cannot be printed."""
    try:
        text, _ = class_printer.code_of(function)
        trees = definitions_of_text(text, "Self" if "self" in text.partition("(")[2][:6] else None)
    except (RuntimeError, JitException, SyntaxError):
        return
    yield ScriptStage("source", "source, as an archive holds it", "python", text)
    yield ScriptStage("tree", "tree views", "text", "\n".join(map(str, trees)))


def _passes(graph: Graph) -> Iterator[ScriptStage]:
    """The graph after each pass that changes it."""
    made = graph.copy()
    before = str(made)
    for graph_pass in PASSES:
        graph_pass(made)
        after = str(made)
        if after != before:
            yield ScriptStage("ir", f"IR after {graph_pass.__name__}", "torchscript", after, is_change=True)
        before = after


def note_sources(graph: Graph, files: Files) -> None:
    """Note the text that a graph's nodes come from: an archive may hold it, though its files are elsewhere."""
    met = set()
    for node in graph.all_nodes():
        found = node.source_range
        if found is None:
            continue
        source = found.source if found.original is None else found.original.source
        if id(source) not in met and source.filename is not None:
            met.add(id(source))
            files.add_fragment(source.filename, source.first_line + 1, source.text)


def blocks_of_ends(text: str, files: Files) -> list[Block]:
    """Lines that end in `# file:line:column`, as graphs of TorchScript print."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _END.search(line)
        if match and not match["path"].startswith(PACKAGE_FOLDER):
            found.append((number, number, [files.place(match["path"], match["line"])]))
    return found
