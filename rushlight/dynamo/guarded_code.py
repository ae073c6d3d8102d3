"""The result of a capture: the code that replaces a frame, and the guards that say when it may run."""

from __future__ import annotations

import dis
import itertools
import re
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rushlight.dynamo.assumed import Assumed
    from rushlight.dynamo.errors import GraphBreak
    from rushlight.fx.graph_module import GraphModule


class Unsupported(RuntimeError):
    """With `fullgraph`: the program cannot be captured as one graph."""


class Followed(NamedTuple):
    """The record of a whole-frame capture, for storing it: the arguments of its `GuardTree`, and the code objects that were
    followed, each with its function if the program did not make that at run time."""

    tree: tuple
    codes: tuple[tuple[types.CodeType, types.FunctionType | None], ...]


_NO_LINES: Mapping[str, set[int | None]] = types.MappingProxyType({})
_numbers = itertools.count(1)
_NAME = re.compile(r"__compiled_fn_\d+")


def new_graph_name() -> str:
    """Return a new name for a graph in the code that calls it, unique in this process."""
    return f"__compiled_fn_{next(_numbers)}"


def renamed(code: types.CodeType, source: str) -> tuple[types.CodeType, str, str]:
    """Rename the graph in code, and its text, that came from another process. Returns both and the new name."""
    name = new_graph_name()
    names = tuple(name if _NAME.fullmatch(each) else each for each in code.co_names)
    return code.replace(co_names=names), _NAME.sub(name, source), name


class GuardedCode:
    """The code that replaces a frame, and its guards. `source` is the text of `code`; it calls the graph by `graph_name`.
    `lines` maps each file to the lines that the capture followed; it is empty for a capture that another process made."""

    def __init__(
        self, code: types.CodeType, globals: dict[str, Any], check_fn: Callable[..., bool], guards: Assumed | None = None,
        source: str = "", graph: GraphModule | None = None, break_reason: GraphBreak | None = None,
        followed: Followed | None = None, graph_name: str | None = None, lines: Mapping[str, set[int | None]] = _NO_LINES,
    ) -> None:  # fmt: skip
        self.code = code
        self.globals = globals
        self.check_fn = check_fn
        self.guards = guards
        self.source = source
        self.graph = graph
        self.break_reason = break_reason
        self.followed = followed
        self.graph_name = graph_name
        self.lines = lines

    def text(self) -> str:
        """Return the source, followed by its bytecode as comments."""
        instructions = dis.Bytecode(self.code).dis().splitlines()
        return "\n".join([self.source, *(f"# {line}".rstrip() for line in instructions)])
