"""What a capture makes: the code that runs in a frame's place, and when it does."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable
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


class GuardedCode:
    """What runs in a frame's place, and when. `source` is the text of `code`."""

    def __init__(
        self, code: types.CodeType, globals: dict[str, Any], check_fn: Callable[..., bool], guards: Assumed | None = None,
        source: str = "", graph: GraphModule | None = None, break_reason: GraphBreak | None = None,
        followed: Followed | None = None,
    ) -> None:  # fmt: skip
        self.code = code
        self.globals = globals
        self.check_fn = check_fn
        self.guards = guards
        self.source = source
        self.graph = graph
        self.break_reason = break_reason
        self.followed = followed

    def text(self) -> str:
        """The source, and, as comments, the bytecode that it became."""
        instructions = dis.Bytecode(self.code).dis().splitlines()
        return "\n".join([self.source, *(f"# {line}".rstrip() for line in instructions)])
