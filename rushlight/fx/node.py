"""Node: one operation of a graph, linked to the nodes before and after it and to those that use its value.

In: an opcode, a target and arguments that may hold other nodes at any depth. Out: an element of a `Graph`,
kept consistent (inputs and users) whenever its arguments change. First data structure of every captured graph.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from rushlight.fx.immutable_collections import CONTAINERS, immutable_dict, immutable_list, map_aggregate, map_tuple
from rushlight.fx.targets import mutates_arguments, qualified_name, uses_random_state

if TYPE_CHECKING:
    from rushlight.fx.codegen_hooks import CodeGen
    from rushlight.fx.namespace import Namespace

Target = Callable[..., Any] | str
"""The target of a node: a function, or the name of a method, module or attribute."""
Argument = Any
"""An argument of a node: a node, a plain value, or a tuple, list, dict or slice of arguments."""

OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")

# Python functions that have effects besides their result.
_SIDE_EFFECTS = {
    print, setattr, delattr, operator.setitem, operator.delitem, operator.iadd, operator.isub, operator.imul,
    operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow, operator.imatmul, operator.iand,
    operator.ior, operator.ixor, operator.ilshift, operator.irshift, operator.iconcat,
}  # fmt: skip


class NodeGraph(Protocol):
    """The interface of a graph that its nodes, the checks and the code generator use."""

    owning_module: Any
    _namespace: Namespace
    _codegen: CodeGen | None

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes in order."""


class Node:
    """One operation in a `Graph`.

    Attributes:
        op: one of `placeholder`, `get_attr`, `call_function`, `call_method`, `call_module`, `output`.
        name: unique within the graph, a Python identifier.
        target: what is called or fetched: a callable for `call_function`, a dotted path for `call_module` and
            `get_attr`, a method name for `call_method`, a parameter name for `placeholder`.
        args, kwargs: immutable; assign a new tuple or dict to change them.
        users: the nodes that use this one's value, in the order in which they began to.
        type: an annotation for the printed code, or None.
        meta: free-form facts; `meta["val"]` is an example (fake) value and `meta["stack_trace"]` the user's code.
    """

    __slots__ = (
        "graph", "name", "op", "target", "_args", "_kwargs", "_input_nodes", "users", "type", "meta",
        "_prev", "_next", "_erased", "__dict__", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        graph: NodeGraph,
        name: str,
        op: str,
        target: Any,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        return_type: Any = None,
    ) -> None:
        if op == "call_function" and not callable(target):
            raise ValueError(f"the target of a call_function must be callable, got {target!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set_arguments(args, kwargs or {})

    @property
    def args(self) -> tuple:
        """The positional arguments. Assigning them updates the users of the nodes involved."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._set_arguments(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Assigning them updates the users of the nodes involved."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set_arguments(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The distinct nodes among the arguments, in order of first appearance."""
        return list(self._input_nodes)

    def _rename(self, candidate: str) -> None:
        """Rename the node to `candidate`, or to a similar name if that is taken. The old name is not used again."""
        if candidate != self.name:
            self.name = self.graph._namespace.create_name(candidate)

    @property
    def next(self) -> Node:
        """The following node in the graph's order; after the last one comes the list's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The preceding node in the graph's order; before the first one comes the list's root."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """The user's stack when the node was recorded, as `traceback.format_list` would print it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _set_arguments(self, args: tuple, kwargs: dict[str, Any]) -> None:
        if not isinstance(args, (tuple, list)) or not isinstance(kwargs, dict):
            raise TypeError(
                f"node {self.name}: args must be a tuple and kwargs a dict, got "
                f"{type(args).__name__} and {type(kwargs).__name__}"
            )
        for used in self._input_nodes:
            used.users.pop(self, None)
        inputs: dict[Node, None] = {}
        self._args = tuple([_freeze(value, inputs) for value in args])
        self._kwargs = immutable_dict({key: _freeze(value, inputs) for key, value in kwargs.items()})
        self._input_nodes = inputs
        for used in inputs:
            used.users[self] = None

    def update_arg(self, index: int, value: Any) -> None:
        """Replace the positional argument at `index`."""
        args = list(self._args)
        args[index] = value
        self.args = tuple(args)

    def insert_arg(self, index: int, value: Any) -> None:
        """Insert a positional argument before the one at `index`.

        Raises ValueError if `index` is outside 0..len(args).
        """
        if not 0 <= index <= len(self._args):
            raise ValueError(f"insert_arg: index {index} is outside 0..{len(self._args)} for node {self.name}")
        self.args = (*self._args[:index], value, *self._args[index:])

    def update_kwarg(self, key: str, value: Any) -> None:
        """Set the keyword argument `key`."""
        self.kwargs = {**self._kwargs, key: value}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Put `new_input` wherever this node uses `old_input`."""

        def swap(value: Any) -> Any:
            return new_input if value is old_input else value

        self._set_arguments(map_aggregate(self._args, swap), map_aggregate(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Make the users of this node use `replace_with` instead, and return those that were changed.

        `delete_user_cb(user)` may return False to leave a user as it is. With `propagate_meta`, `replace_with`
        (whose meta must be empty) takes a copy of this node's meta.
        """
        if propagate_meta:
            if replace_with.meta:
                raise ValueError(f"propagate_meta=True, but {replace_with} already has meta: {list(replace_with.meta)}")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if user is not replace_with and delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def prepend(self, other: Node) -> None:
        """Move (or insert) `other` to just before this node."""
        if self.graph is not other.graph:
            raise ValueError(f"cannot move {other} next to {self}: they belong to different graphs")
        if self is other:
            warnings.warn(f"moving {self} next to itself has no effect", stacklevel=2)
            return
        other._unlink()
        before = self._prev
        before._next, other._prev = other, before
        other._next, self._prev = self, other

    def append(self, other: Node) -> None:
        """Move (or insert) `other` to just after this node."""
        if self is other:
            warnings.warn(f"moving {self} next to itself has no effect", stacklevel=2)
            return
        if self._next is not other:
            self._next.prepend(other)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether removing the node, if its value were unused, could change what the program does.

        True for placeholders and the output, for operators that change their arguments, for in-place methods
        and, unless `impure_random` is False, for operators that advance a random number generator.
        """
        if self.op in ("placeholder", "output"):
            return True
        if impure_random and (uses_random_state(self.target) or self.meta.get("draws_random_numbers", False)):
            return True
        return self.mutates_state()

    def mutates_state(self) -> bool:
        """Return whether running the node may change a value that other nodes see, or the outside world."""
        if self.op == "call_function":
            is_marked = self.meta.get("writes_arguments", False) or getattr(self.target, "_is_impure", False)
            return is_marked or mutates_arguments(self.target) or self.target in _SIDE_EFFECTS
        if self.op == "call_method":
            return self.target == "__setitem__" or (self.target.endswith("_") and not self.target.endswith("__"))
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    def __repr__(self) -> str:
        return self.name

    def format_node(self) -> str:
        """Return one line of the graph's printed form.

        `%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {})`
        """
        if self.op == "output":
            return f"return {self.args[0] if self.args else None}"
        kind = "" if self.type is None else f"{_printed_type(self.type)} "
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._printed_target()}]"
        if self.op == "placeholder":
            return head + (f"(default={_format(self.args[0])})" if self.args else "")
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_format(self.args)}, kwargs = {_format(self.kwargs)})"

    def _printed_target(self) -> str:
        return self.target if isinstance(self.target, str) else qualified_name(self.target)


def _freeze(value: Any, inputs: dict[Node, None]) -> Any:
    """Copy nested containers to immutable ones, and collect the nodes met into `inputs`."""
    if isinstance(value, Node):
        inputs[value] = None
        return value
    if not isinstance(value, CONTAINERS):
        return value
    if isinstance(value, tuple):
        return map_tuple(value, [_freeze(item, inputs) for item in value])
    if isinstance(value, list):
        return immutable_list([_freeze(item, inputs) for item in value])
    if isinstance(value, dict):
        return immutable_dict({key: _freeze(item, inputs) for key, item in value.items()})
    return slice(_freeze(value.start, inputs), _freeze(value.stop, inputs), _freeze(value.step, inputs))


def _printed_type(kind: Any) -> str:
    if not isinstance(kind, type):
        return str(kind)
    return kind.__name__ if kind.__module__ == "builtins" else qualified_name(kind)


def _format(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_format, value)) + (",)" if len(value) == 1 else ")")
    if isinstance(value, list):
        return "[" + ", ".join(map(_format, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_format(item)}" for key, item in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({_format(value.start)}, {_format(value.stop)}, {_format(value.step)})"
    return str(value)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply `fn` to every node in the nested arguments `a` and leave all other leaves as they are."""
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def has_side_effect(fn: Callable) -> Callable:
    """Mark `fn` as impure, so that dead code elimination keeps its calls. Returns `fn`, so it can be a decorator."""
    _SIDE_EFFECTS.add(fn)
    return fn
