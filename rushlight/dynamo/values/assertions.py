"""`assert` of a tensor: generated code checks it after the graph has run, so that the capture goes on."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, NamedTuple

from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.tensor import TensorValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Value, Writer


class Assertion(NamedTuple):
    """A tensor of one element that must be true, else generated code raises an AssertionError with a message."""

    holds: Value
    message: str
    places: list[tuple[str, int, str]]  # file, line and function of each frame that was followed to it

    def write(self, writer: Writer) -> list[str]:
        """Return the statements that check it."""
        error, (_, line, _), *inner = f"AssertionError({self.message!r})" if self.message else "AssertionError()", *self.places
        text = f"{writer.name_of(raise_at, 'raise_at')}({inner!r}, {error})" if inner else f"raise {error}"
        return [f"if not {writer.expression(self.holds)}:", f"    {text}  # line {line}"]


def raise_at(places: list[tuple[str, int, str]], error: Exception) -> None:
    """Raise an error through frames at these places, which the generated function does not have, for its traceback."""
    (file, line, name), *inner = places
    tree = ast.parse("raise_at(inner, error)" if inner else "raise error")
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
    exec(compile(tree, file, "exec").replace(co_name=name), {"raise_at": raise_at, "inner": inner, "error": error})  # noqa: S102


def assert_later(tx: Following, value: TensorValue, message: str) -> None:
    """Have generated code check a tensor of one element."""
    holds = tx.call_in_graph("call_function", operator.ne, [value, ConstantValue(0)], {})  # not changed by later writes
    tx.session.assertions.append(Assertion(holds, message, tx.user_places()))
