"""The function that replaces a frame, written as Python text.

In: the captured graph, values to build, effects, and how the frame continues. Out: source text, and a code object with the
objects that it names. Text rather than bytecode, because it is readable and the same for all Python versions.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable
from typing import Any

from rushlight.core.algebra import Var
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.effects import SideEffects
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.guards import Guards
from rushlight.dynamo.sources import parameter_text
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.identities import Identity

_LITERALS = (int, str, bytes, bool, type(None))


class ProgramWriter:
    """Collects the statements of one generated function. Objects are mentioned by the names that the guards give them."""

    def __init__(
        self, guards: Guards, module_globals: dict, effects: SideEffects, node_of: Callable[[SymInt], Any]
    ) -> None:
        """`node_of` returns the graph's node of an integer that the graph computes."""
        self.node_of = node_of
        self.parameters = guards.parameters
        self.is_changed = effects.is_changed
        self.module_globals = module_globals
        self.is_in_inference_mode = state.inference
        self.name_of = guards.name
        self.lines: list[str] = []
        self.outputs: list[Any] = []
        self.symbols: set[Var] = set()
        self._made: dict[int, str] = {}
        self._kept_values: list[Value] = []
        self._unfinished: set[int] = set()
        self._temporaries = 0

    # Write expressions

    def expression(self, value: Value) -> str:
        """Return an expression that reaches or builds a value. A mutable value is built once."""
        found = self._made.get(id(value))
        if found is not None:
            return found
        if value.is_constant() and value.source is None:
            return value.write(self)
        if id(value) in self._unfinished:
            raise GraphBreak(f"{value} contains itself")
        self._unfinished.add(id(value))
        text = self._source_expression(value) if value.source is not None else value.write(self)
        self._unfinished.discard(id(value))
        if not text.isidentifier():
            text = self.keep(text)
        self._made[id(value)] = text
        self._kept_values.append(value)
        return text

    def _source_expression(self, value: Value) -> str:
        return value.source.expression()

    def literal(self, value: Any) -> str:
        """Return a constant."""
        if type(value) in _LITERALS:
            return repr(value)
        if type(value) is float and value == value and abs(value) != float("inf"):
            return repr(value)
        return self.name_of(value, type(value).__name__)

    def symbolic(self, number: SymInt) -> str:
        """Return an open integer, computed from the input sizes that the function reads at its start."""
        expression = number.expr
        self.symbols.update(expression.free_variables())
        return f"({expression.substitute({symbol: Var(f'__{symbol.name}') for symbol in expression.free_variables()})})"

    def key(self, value: Any) -> str:
        """Return a key of a dict or item of a set."""
        if type(value) is tuple:
            return "(" + "".join(f"{self.key(item)}, " for item in value) + ")"
        if type(value) is Identity:
            return self.expression(value.value)
        return self.literal(value)

    def begin(self, value: Value, text: str) -> str:
        """Create an object before its contents, which may refer to it; return its name."""
        name = self._made[id(value)] = self.keep(text)
        return name

    def has(self, value: Value) -> bool:
        """Return whether a value was made before."""
        return id(value) in self._made

    def globals_of(self, namespace: dict) -> str:
        """Return an expression for a module's globals."""
        return "__globals" if namespace is self.module_globals else self.name_of(namespace, "globals")

    def output(self, value: Any) -> str:
        """Return the graph's result for a tensor."""
        text = self.result(value.graph_node)
        if value.is_inference and not self.is_in_inference_mode:
            return f"{self.name_of(as_inference, 'as_inference')}({text})"
        return text

    def result(self, node: Any) -> str:
        """Return the graph's result for a node."""
        if node not in self.outputs:
            self.outputs.append(node)
        return f"__results[{self.outputs.index(node)}]"

    # Write statements

    def keep(self, text: str) -> str:
        """Assign an expression to a new variable, and return the variable's name."""
        name = f"__v{self._temporaries}"
        self._temporaries += 1
        self.statement(f"{name} = {text}")
        return name

    def statement(self, line: str) -> None:
        """Add a statement."""
        self.lines.append(line)

    def text(self, name: str, first: list[str]) -> str:
        """Return the function's source; the lines of `first` come before all others."""
        body = [*first, *self.lines] or ["pass"]
        parameters = ", ".join((*map(parameter_text, self.parameters), "__globals", "__closure"))
        return f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in body)


def as_inference(tensor: Tensor) -> Tensor:
    """Mark a result of inference mode as an inference tensor: a backend may have made it outside that mode."""
    impl = tensor._impl
    if not impl.inference:
        impl.inference, impl.key_set = True, impl.key_set & ~AUTOGRAD_BITS
    return tensor


def line_mark(line: int | None) -> str:
    """Return a comment that assigns a statement to its own line of the original file."""
    return "" if line is None else f"  # line {line}"


def _lines_of_marks(text: str) -> dict[int, int]:
    found = ((number, re.search(r"  # line (\d+)$", line)) for number, line in enumerate(text.splitlines(), 1))
    return {number: int(mark.group(1)) for number, mark in found if mark}


def compile_function(text: str, original: types.CodeType, line: int) -> types.CodeType:
    """Compile a generated function. It is named like the original, and its statements have the given line of the original file,
    except those with a `line_mark`."""
    tree, marked = ast.parse(text), _lines_of_marks(text)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = marked.get(node.lineno, line)
            node.col_offset = node.end_col_offset = 0
    tree.body[0].lineno = original.co_firstlineno
    module = compile(tree, original.co_filename, "exec")
    code = next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))
    return code.replace(co_name=original.co_name, co_qualname=original.co_qualname)
