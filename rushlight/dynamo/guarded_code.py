"""What a capture makes: the code that runs in a frame's place, and when it does."""

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
    """With `fullgraph`, the error for a program that cannot be captured as one graph."""


class Followed(NamedTuple):
    """What a capture of a whole frame went by, for those who keep it for other processes: what its `GuardTree` was made of, and
    the code that it followed, with the function for one that is not made by the program."""

    tree: tuple
    codes: tuple[tuple[types.CodeType, types.FunctionType | None], ...]


_NO_LINES: Mapping[str, set[int | None]] = types.MappingProxyType({})
_numbers = itertools.count(1)
_NAME = re.compile(r"__compiled_fn_\d+")


def new_graph_name() -> str:
    """The name of a graph in the code that calls it, which no other graph of this process has."""
    return f"__compiled_fn_{next(_numbers)}"


def renamed(code: types.CodeType, source: str) -> tuple[types.CodeType, str, str]:
    """Code of another process with its text, where the graph is called by a name of this process, and that name."""
    name = new_graph_name()
    names = tuple(name if _NAME.fullmatch(each) else each for each in code.co_names)
    return code.replace(co_names=names), _NAME.sub(name, source), name


class GuardedCode:
    """What runs in a frame's place, and when. `source` is the text of `code`, in which the graph, if there is one, is called
    `graph_name`. `lines` are those of each file that the capture followed; none of a capture that another process made."""

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
        """The source, and, as comments, the bytecode that it became."""
        instructions = dis.Bytecode(self.code).dis().splitlines()
        return "\n".join([self.source, *(f"# {line}".rstrip() for line in instructions)])
