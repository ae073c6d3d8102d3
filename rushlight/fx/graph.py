"""Graph: a program as a list of nodes, in the order in which they run.

In: nodes made one by one by a tracer or a pass. Out: a program that can be edited, checked (`lint`), printed and
turned into Python (`python_code`). A graph holds no tensors: they live in the `GraphModule` that owns it.
"""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rushlight.core.lazy_module import LazyModule, lazy_names
from rushlight.fx.graph_checks import lint
from rushlight.fx.namespace import Namespace, snake_case
from rushlight.fx.node import OPCODES, Node, map_arg
from rushlight.fx.targets import short_name

if TYPE_CHECKING:
    from rushlight.fx.codegen import PythonCode
    from rushlight.fx.codegen_hooks import CodeGen

codegen, graph_state = map(LazyModule, ("rushlight.fx.codegen", "rushlight.fx.graph_state"))
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.fx.codegen": ("PythonCode",), "rushlight.fx.codegen_hooks": ("CodeGen",),
})  # fmt: skip


def _has_attribute(module: Any, path: str) -> bool:
    """Return whether a module has an attribute of a dotted name."""
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


class Graph:
    """A program as a doubly linked list of `Node`.

    New nodes go to the insert point: the end, or where `inserting_before`/`inserting_after` say. `tracer_cls` and
    `tracer_extras` only note which tracer made the graph.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: dict | None = None) -> None:
        self._root = Node(self, "", "root", "")
        self._insert_before = self._root
        self._length = 0
        self._namespace = Namespace()
        self._owner: weakref.ref | None = None
        self._codegen: CodeGen | None = None
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self.owning_module = owning_module
        self.origin = ""
        """The place and name of the traced function, `file:line in forward`, which the generated code's file name shows."""

    @property
    def owning_module(self) -> Any:
        """The `GraphModule` whose graph this is, or None. Held weakly."""
        return None if self._owner is None else self._owner()

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owner = None if module is None else weakref.ref(module)

    @property
    def nodes(self) -> NodeList:
        """The nodes in order: iterable both ways, and safe to edit while iterating."""
        return NodeList(self)

    # Making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insert point and return it.

        Raises ValueError for an unknown opcode, an argument of another graph, and a target that does not suit the opcode.
        """
        node = self._new_node(op, target, args, kwargs, name, type_expr)
        for used in node._input_nodes:
            if used.graph is not self:
                node._set_arguments((), {})
                raise ValueError(f"argument {used} of new node {node.name} belongs to another graph; use node_copy")
        return self._place(node)

    def _new_node(
        self, op: str, target: Any, args: tuple | None, kwargs: dict[str, Any] | None, name: str | None, type_expr: Any
    ) -> Node:
        _check_target(op, target)
        unique = self._namespace.create_name(name or snake_case(short_name(target)))
        return Node(self, unique, op, target, args or (), kwargs, type_expr)

    def _place(self, node: Node) -> Node:
        self._insert_before.prepend(node)
        self._length += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add a parameter of the program. `*name` and `**name` take the remaining arguments."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a read of an attribute of the owning module, such as `encoder.weight`. A warning if the module has none."""
        if self.owning_module is not None and not _has_attribute(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule: "
                f"{qualified_name}. Call GraphModule.add_submodule, or assign the parameter or buffer, before",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Add a call of a free function or operator."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Add a call of a method of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """Add a call of a submodule of the owning module, by its dotted path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the return of `result`: a node, or nested tuples, lists and dicts of nodes and constants."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # The insert point

    def inserting_before(self, node: Node | None = None):
        """Return a context in which new nodes go before `node` (before the first node if None)."""
        return self._inserting(self._root._next if node is None else node)

    def inserting_after(self, node: Node | None = None):
        """Return a context in which new nodes go after `node` (at the end if None)."""
        return self._inserting(self._root if node is None else node._next)

    @contextmanager
    def _inserting(self, before: Node) -> Iterator[None]:
        if before.graph is not self:
            raise ValueError(f"cannot insert next to {before}: it belongs to another graph")
        previous, self._insert_before = self._insert_before, before
        try:
            yield
        finally:
            self._insert_before = self._root if previous._erased else previous

    # Copying

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """Copy a node, usually of another graph, to here. `arg_transform` maps each node among its arguments; those that it
        leaves in the other graph are reported by `lint`."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self._place(self._new_node(node.op, node.target, args, kwargs, node.name, node.type))
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of `g` but its output to here, and return what the output's argument becomes.

        Nodes already in `val_map` are not copied; the copies are added to it. With `return_output_node`, a pair
        of that value and the output node of `g`. None if `g` has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = made
        val_map: dict[Node, Node] = {}
        for node in self.nodes:
            val_map[node] = made.node_copy(node, val_map.__getitem__)
        made._codegen = copy.deepcopy(self._codegen)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"nodes": graph_state.pack_nodes(self), "codegen": self._codegen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Graph.__init__(self)
        graph_state.unpack_nodes(self, state["nodes"])
        self._codegen = state.get("codegen")

    # Looking and removing

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """Return the nodes of an opcode, in order; with `target`, only those with this target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """Return the output node. Raises RuntimeError if there is none yet."""
        last = self._root._prev
        found = [last] if last.op == "output" else self.find_nodes(op="output")
        if not found:
            raise RuntimeError("the graph has no output node; add one with graph.output(value)")
        return found[0]

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses. Raises RuntimeError if it has users or belongs to another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{list(to_erase.users)}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"cannot erase {to_erase}: it belongs to another graph")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._set_arguments((), {})
        self._length -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose value nothing uses and that have no effect; return whether any was removed.

        `is_impure_node` replaces `Node.is_impure`. Requires nothing; keeps the order of the nodes that stay.
        """
        is_impure = is_impure_node or Node.is_impure
        dead = [node for node in self.nodes if not node.users and not is_impure(node)]
        before = self._length
        while dead:
            node = dead.pop()
            inputs = node.all_input_nodes
            self.erase_node(node)
            dead.extend(used for used in inputs if not used.users and not is_impure(used))
        return self._length < before

    # Checking and printing

    def lint(self) -> None:
        """Check that the graph is well formed; RuntimeError names the first fault. See `graph_checks`."""
        lint(self)

    def python_code(
        self,
        root_module: str = "self",
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
    ) -> PythonCode:
        """Return the graph as the source of a `forward` function, and the globals that it needs.

        `root_module` names its first parameter. `verbose` adds types (with strides and devices, if asked for) from
        `meta["val"]` and comments with the user's lines.
        """
        return codegen.generate(
            self, root_module, verbose=verbose, include_stride=include_stride, include_device=include_device
        )

    # Calling conventions

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have `codegen` write the head and the return statement of `forward`; `recompile()` makes it take effect."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders from the arguments of a call."""
        return args if self._codegen is None else self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of a call, given the value of the output node."""
        return out if self._codegen is None else self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print a table: opcode, name, target, args and kwargs of every node."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n._printed_target(), n.args, n.kwargs))) for n in self.nodes]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def __repr__(self) -> str:
        return f"<Graph of {self._length} nodes>"


class NodeList:
    """The nodes of a graph in order. Removing or adding nodes while iterating is allowed."""

    def __init__(self, graph: Graph, reverse: bool = False) -> None:
        self._graph = graph
        self._reverse = reverse

    def __len__(self) -> int:
        return self._graph._length

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        current = root._prev if self._reverse else root._next
        while current is not root:
            if not current._erased:
                yield current
            current = current._prev if self._reverse else current._next

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self._graph, not self._reverse))

    def __repr__(self) -> str:
        return repr(list(self))


def _check_target(op: str, target: Any) -> None:
    if op not in OPCODES:
        raise ValueError(f"unknown opcode {op!r}; expected one of {', '.join(OPCODES)}")
    if op == "call_function":
        if not callable(target):
            raise ValueError(f"call_function needs a callable target, got {target!r} of type {type(target).__name__}")
    elif not isinstance(target, str):
        raise ValueError(f"{op} needs a string target, got {target!r} of type {type(target).__name__}")
