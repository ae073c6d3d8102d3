"""torch's Python binding of nodes: `node.kind()`, `node.inputs()`, `node.i("value")`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rushlight.core.tensor import Tensor
from rushlight.jit import ir
from rushlight.jit.graph_api.values import Value
from rushlight.jit.ir.handles import Handle, unwrapped, wrapped
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.helpers import is_nondeterministic
from rushlight.jit.schema import parse_schema
from rushlight.jit.types.kinds import Type

if TYPE_CHECKING:
    from rushlight.jit.graph_api.graphs import Block


def _set_attribute(self: Node, name: str, value: object) -> Node:
    self.raw.set(name, unwrapped(value))
    return self


def _get_attribute(self: Node, name: str) -> object:
    if name not in self.raw.attributes:
        raise IndexError(f"{self.raw.kind} has no attribute '{name}'; it has {', '.join(self.raw.attributes) or 'none'}")
    found = self.raw.attributes[name]
    return wrapped(found) if isinstance(found, ir.Graph) else found


class Node(Handle, of=ir.Node):
    """An operation of a graph. Attributes are read by kind: `i`, `f`, `s`, `t`, `g`, `ty`, lists by `is`, `fs`, `ss`, `ts`. The
    same names with a trailing underscore set an attribute, and return the node."""

    __slots__ = ()
    raw: ir.Node

    def kind(self) -> str:
        """Return its operation, such as `aten::add`."""
        return self.raw.kind

    def inputs(self) -> Iterator[Value]:
        """Return its inputs."""
        return map(Value, self.raw.inputs)

    def outputs(self) -> Iterator[Value]:
        """Return its outputs."""
        return map(Value, list(self.raw.outputs))

    def input(self, index: int = 0) -> Value:
        """Return one of its inputs."""
        return Value(self.raw.input(index))

    def output(self) -> Value:
        """Return its only result."""
        return Value(self.raw.output)

    inputsAt = input

    def outputsAt(self, index: int) -> Value:
        """Return one of its results."""
        return Value(self.raw.outputs[index])

    def inputsSize(self) -> int:
        """Return the number of its inputs."""
        return self.raw.input_count

    def outputsSize(self) -> int:
        """Return the number of its results."""
        return len(self.raw.outputs)

    def hasMultipleOutputs(self) -> bool:
        """Return whether it has more than one result."""
        return len(self.raw.outputs) > 1

    def hasUses(self) -> bool:
        """Return whether any result is read."""
        return self.raw.has_uses

    def blocks(self) -> Iterator[Block]:
        """Return its blocks."""
        return map(wrapped, list(self.raw.blocks))

    def owningBlock(self) -> Block:
        """Return the block that contains it."""
        return wrapped(self.raw.block)

    def prev(self) -> Node:
        """Return the node before it."""
        return Node(self.raw.previous)

    def addInput(self, value: Value) -> Value:
        """Add an input."""
        return Value(self.raw.add_input(value.raw))

    def addOutput(self) -> Value:
        """Add a result."""
        return Value(self.raw.add_output())

    def addBlock(self) -> Block:
        """Add a block."""
        return wrapped(self.raw.add_block())

    def eraseOutput(self, index: int) -> None:
        """Remove a result."""
        self.raw.erase_output(index)

    def removeInput(self, index: int) -> None:
        """Remove an input."""
        self.raw.remove_input(index)

    def removeAllInputs(self) -> None:
        """Remove all inputs."""
        self.raw.remove_all_inputs()

    def replaceInput(self, index: int, value: Value) -> Value:
        """Replace an input; returns the old one."""
        return Value(self.raw.replace_input(index, value.raw))

    def replaceInputWith(self, old: Value, new: Value) -> None:
        """Replace all occurrences of an input."""
        self.raw.replace_input_with(old.raw, new.raw)

    def replaceAllUsesWith(self, other: Node) -> None:
        """Replace all uses of its results by another node's results."""
        self.raw.replace_all_uses_with(other.raw)

    def namedInput(self, name: str) -> Value:
        """Return the input for a parameter of its operator's schema. RuntimeError where there is none of the name."""
        operator = operator_of(self.raw)
        if operator is None or name not in operator.schema.positions:
            raise RuntimeError(f"{self.raw.kind} has no input named '{name}'")
        return self.input(operator.schema.positions[name])

    def schema(self) -> str:
        """Return its operator's schema as text; "(no schema)" where it is no operator."""
        operator = operator_of(self.raw)
        return "(no schema)" if operator is None else str(operator.schema)

    def matches(self, schema: str) -> bool:
        """Return whether it runs the operator of this schema."""
        operator = operator_of(self.raw)
        wanted = parse_schema(schema)
        return operator is not None and (operator.schema.name, operator.schema.overload) == (wanted.name, wanted.overload)

    def insertBefore(self, other: Node) -> Node:
        """Insert it, which is not in a graph yet, before another node; returns itself."""
        self.raw.insert_before(other.raw)
        return self

    def insertAfter(self, other: Node) -> Node:
        """Insert it, which is not in a graph yet, after another node; returns itself."""
        self.raw.insert_after(other.raw)
        return self

    def moveBefore(self, other: Node) -> None:
        """Move it before another."""
        self.raw.move_before(other.raw)

    def moveAfter(self, other: Node) -> None:
        """Move it after another."""
        self.raw.move_after(other.raw)

    def isBefore(self, other: Node) -> bool:
        """Return whether it comes before another."""
        return self.raw.is_before(other.raw)

    def isAfter(self, other: Node) -> bool:
        """Return whether it comes after another."""
        return self.raw.is_after(other.raw)

    def isNondeterministic(self) -> bool:
        """Return whether results are random."""
        return is_nondeterministic(self.raw)

    def mustBeNone(self) -> bool:
        """Return whether it is the constant None."""
        return self.raw.kind == "prim::Constant" and self.raw.output.is_none

    def destroy(self) -> None:
        """Remove it from the graph permanently."""
        self.raw.destroy()

    def sourceRange(self) -> str:
        """Return its source position, with the source around it."""
        return self.raw.source_range.highlight()

    def scopeName(self) -> str:
        """Return the module that was traced when it was recorded."""
        return self.raw.scope

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """Return the first node of a kind in its blocks."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """Return the nodes of a kind in its blocks."""
        return [node for block in self.blocks() for node in block.findAllNodes(kind, recurse)]

    def copyMetadata(self, other: Node) -> Node:
        """Copy another node's source position; returns itself."""
        self.raw.source_range, self.raw.scope = other.raw.source_range, other.raw.scope
        return self

    def copyAttributes(self, other: Node) -> Node:
        """Copy all attributes of another node; returns itself."""
        self.raw.attributes = dict(other.raw.attributes)
        return self

    def attributeNames(self) -> list[str]:
        """Return the names of its attributes."""
        return list(self.raw.attributes)

    def hasAttribute(self, name: str) -> bool:
        """Return whether it has an attribute."""
        return name in self.raw.attributes

    def hasAttributes(self) -> bool:
        """Return whether it has any attribute."""
        return bool(self.raw.attributes)

    def removeAttribute(self, name: str) -> Node:
        """Remove an attribute; returns itself."""
        del self.raw.attributes[name]
        return self

    def kindOf(self, name: str) -> str:
        """Return the kind of an attribute: "i", "f", "s", "t", "g", "ty", a list's ("is"), or "ival" for others."""
        found = unwrapped(_get_attribute(self, name))
        if isinstance(found, list) and found and self.raw.kind != "prim::Constant":
            inner = {_kind_of(each) for each in found}
            return f"{inner.pop()}s" if len(inner) == 1 else "ival"
        return _kind_of(found)

    def ival(self, name: str) -> object:
        """Return an attribute of any kind."""
        return _get_attribute(self, name)

    i = f = s = t = g = ty = c = fs = ss = ts = gs = tys = ival
    i_ = f_ = s_ = t_ = g_ = ty_ = c_ = fs_ = ss_ = ts_ = gs_ = tys_ = is_ = ival_ = z_ = _set_attribute

    def z(self, name: str) -> object:
        """Return a tensor attribute."""
        return _get_attribute(self, name)


setattr(Node, "is", _get_attribute)


def _kind_of(value: object) -> str:
    kinds = ((bool, "i"), (int, "i"), (float, "f"), (str, "s"), (Tensor, "t"), (ir.Graph, "g"), (Type, "ty"), (complex, "c"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "ival")
