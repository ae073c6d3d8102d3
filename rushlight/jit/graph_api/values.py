"""torch's Python binding of values: `value.debugName()`, `value.type()`, `value.uses()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.jit import ir
from rushlight.jit.ir.handles import Handle, wrapped
from rushlight.jit.types.kinds import TensorType, Type

if TYPE_CHECKING:
    from rushlight.jit.graph_api.nodes import Node


class Use(NamedTuple):
    """A place where a value is read."""

    user: Node
    offset: int


class Value(Handle, of=ir.Value):
    """A value of a graph."""

    __slots__ = ()
    raw: ir.Value

    def node(self) -> Node:
        """Return the node that produces it."""
        return wrapped(self.raw.node)

    def offset(self) -> int:
        """Return its index among its node's results."""
        return self.raw.offset

    def type(self) -> Type:
        """Return its type."""
        return self.raw.type

    def setType(self, kind: Type) -> Value:
        """Change its type; returns itself."""
        self.raw.set_type(kind)
        return self

    def setTypeAs(self, other: Value) -> Value:
        """Give it another value's type; returns itself."""
        return self.setType(other.type())

    def inferTypeFrom(self, example: Tensor) -> None:
        """Set its type to the complete type of a tensor."""
        self.setType(TensorType(example.dtype, tuple(example.shape), tuple(example.stride()), False, str(example.device)))

    def debugName(self) -> str:
        """Return its name, or its number."""
        return self.raw.debug_name

    def setDebugName(self, name: str) -> Value:
        """Set its name; a number is added if the name is taken. Returns itself."""
        self.raw.debug_name = name
        return self

    def unique(self) -> int:
        """Return its number."""
        return self.raw.unique

    def uses(self) -> list[Use]:
        """Return its uses."""
        return [Use(wrapped(user), offset) for user, offset in self.raw.uses]

    def replaceAllUsesWith(self, other: Value) -> None:
        """Replace all its uses by another value."""
        self.raw.replace_all_uses_with(other.raw)

    def replaceAllUsesAfterNodeWith(self, node: Node, other: Value) -> None:
        """Replace its uses after a node by another value."""
        self.raw.replace_uses_after(node.raw, other.raw)

    def copyMetadata(self, other: Value) -> Value:
        """Copy another value's type and name; returns itself."""
        self.raw.copy_metadata(other.raw)
        return self

    def requires_grad(self) -> bool:
        """Return whether its type says that it needs a gradient."""
        return bool(getattr(self.raw.type, "requires_grad", False))

    requiresGrad = requires_grad

    def isCompleteTensor(self) -> bool:
        """Return whether its type has dtype, sizes, strides and device."""
        kind = self.raw.type
        return isinstance(kind, TensorType) and None not in (kind.dtype, kind.sizes, kind.strides, kind.device)

    def toIValue(self) -> object:
        """Return the value of a constant; None for other values."""
        return self.raw.constant()
