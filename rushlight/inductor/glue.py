"""Split graphs as one Python function: compiled pieces and eager kernels in order, one line of text per node.

In: a module whose graph calls submodules, and the function that replaces each. Out: a `Glue`, which is called with flat inputs
and prints as its text. Stage: inductor, calling.

    def run(arg0_1):
        compiled_0, = run_compiled_0(arg0_1)
        linalg_det = linalg_det_default(compiled_0); compiled_0 = None
        return (linalg_det, )
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rushlight.fx.codegen import last_uses
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, describe_failure
from rushlight.fx.namespace import Namespace
from rushlight.fx.node import Node


@dataclass(frozen=True, slots=True)
class Piece:
    """The function that replaces a submodule. It takes the arguments at `positions` and always returns a tuple; `is_tuple` says
    whether the submodule did."""

    run: Callable[..., tuple]
    positions: Sequence[int]
    is_tuple: bool


class Glue:
    """Runs a split graph. An error gets a note that names the node, like the interpreter's errors."""

    def __init__(self, module: GraphModule, pieces: Mapping[str, Piece]):
        writer = _Writer(module, pieces)
        self.text, self._nodes = writer.write()
        # a module name inside the library, so that captures do not follow this function's frames
        names = {"__name__": __name__, **writer.names}
        exec(compile(self.text, "<a cut graph>", "exec"), names)
        self._run = names["run"]

    def __str__(self) -> str:
        return self.text

    def __call__(self, *inputs: Any) -> tuple:
        """Return the flat outputs."""
        try:
            return self._run(*inputs)
        except Exception as error:
            node = self._find_failed_node(error.__traceback__)
            if node is not None:
                error.add_note(describe_failure(node))
            raise

    def _find_failed_node(self, trace: TracebackType | None) -> Node | None:
        while trace is not None and trace.tb_frame.f_code is not self._run.__code__:
            trace = trace.tb_next
        return None if trace is None else self._nodes.get(trace.tb_lineno)


class _Writer:
    """Collects the function's lines and the objects that they name."""

    def __init__(self, module: GraphModule, pieces: Mapping[str, Piece]):
        self.module = module
        self.pieces = pieces
        self.names: dict[str, Any] = {}
        self._named: dict[int, str] = {}
        self._names = Namespace()
        for name in ("run", *(node.name for node in module.graph.nodes)):
            self._names.reserve(name)
        self._released = last_uses(module.graph)

    def write(self) -> tuple[str, dict[int, Node]]:
        """Return the text, and line number -> node."""
        inputs = [node.name for node in self.module.graph.nodes if node.op == "placeholder"]
        lines, nodes = [f"def run({', '.join(inputs)}):"], {}
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                continue
            lines.append(f"    {self._write_statement(node)}")
            nodes[len(lines)] = node
        return "\n".join(lines) + "\n", nodes

    def _write_statement(self, node: Node) -> str:
        if node.op == "output":
            return f"return {self._text(tuple(node.args[0]))}"
        dead = [used.name for used in self._released.get(node, ()) if used.op != "get_attr"]
        dead += [] if node.users else [node.name]
        release = f"; {' = '.join(dead)} = None" if dead else ""
        return f"{node.name}{self._call(node)}{release}"

    def _call(self, node: Node) -> str:
        if node.op == "call_module":
            piece = self.pieces[node.target]
            arguments = ", ".join(self._text(node.args[position]) for position in piece.positions)
            function = self._add_global(f"run_{node.target}", piece.run)
            return f"{'' if piece.is_tuple else ','} = {function}({arguments})"
        arguments = [self._text(value) for value in node.args]
        if node.op == "call_method":
            return f" = {arguments[0]}.{node.target}({', '.join([*arguments[1:], *self._keywords(node)])})"
        if node.target is operator.getitem:
            return f" = {arguments[0]}[{arguments[1]}]"
        function = self._add_global(getattr(node.target, "__name__", str(node.target)), node.target)
        return f" = {function}({', '.join([*arguments, *self._keywords(node)])})"

    def _keywords(self, node: Node) -> list[str]:
        return [f"{name}={self._text(value)}" for name, value in node.kwargs.items()]

    def _text(self, value: Any) -> str:
        if isinstance(value, Node):
            return value.name if value.op != "get_attr" else self._add_global(value.target, self._attribute(value))
        if isinstance(value, tuple):
            return f"({''.join(f'{self._text(item)}, ' for item in value)})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._text, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self._text(item)}' for key, item in value.items())}}}"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self._text, (value.start, value.stop, value.step)))})"
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        return self._add_global(str(value), value)

    def _attribute(self, node: Node) -> Any:
        return Interpreter(self.module).fetch_attr(node.target)

    def _add_global(self, wanted: str, value: Any) -> str:
        """Return a new global name for an object, similar to the wanted one."""
        known = self._named.get(id(value))
        if known is not None:
            return known
        name = self._names.create_name(wanted)
        self._named[id(value)] = name
        self.names[name] = value
        return name
