"""Symbolic sizes in graphs: the symbolic geometry of fake inputs, and the nodes that compute symbolic integers.

In: example tensors and the sizes that a graph is to leave symbolic; SymInts met while a program runs. Out: sizes and strides
for fake tensors; nodes that compute the integers from the graph's inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence

from rushlight.core.algebra import Expr, FloorDiv, Mod, Product, Sum, Var
from rushlight.core.symbolic import ShapeEnv, SymFloat, SymInt
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.ops.registry import aten

Value = SymInt | int
Geometry = tuple[tuple[Value, ...], tuple[Value, ...]]


def open_sizes(environment: ShapeEnv, impl: TensorImpl, dims: Collection[int], source: str) -> Geometry:
    """Make symbols for the sizes of `dims` of a tensor; express the strides by the sizes if possible."""
    sizes = tuple([
        environment.create_symbol(size, f"{source}.size({dim})") if dim in dims else size
        for dim, size in enumerate(impl.sizes)
    ])  # fmt: skip
    return sizes, symbolic_strides(impl, sizes, lambda dim, stride: stride)


def symbolic_strides(impl: TensorImpl, sizes: Sequence[Value], otherwise: Callable[[int, int], Value]) -> tuple[Value, ...]:
    """Express strides by symbolic sizes: each is the extent of the dimension that lies just inside it in memory.

    Strides 0 and 1 stay. `otherwise(dim, stride)` returns the stride of any other dimension without a dimension just inside it.
    """
    found: dict[int, Value] = {}
    for dim in sorted(range(len(sizes)), key=lambda dim: (impl.strides[dim], -dim)):
        stride = impl.strides[dim]
        inside = [other for other in found if impl.sizes[other] * impl.strides[other] == stride]
        if stride in (0, 1) or not inside:
            found[dim] = stride if stride in (0, 1) else otherwise(dim, stride)
        else:
            nearest = dim + 1 if dim + 1 in inside else inside[-1]
            found[dim] = sizes[nearest] * found[nearest]
    return tuple([found[dim] for dim in range(len(sizes))])


class SymbolNodes:
    """The nodes of one graph for symbolic integers, one for each expression.

    A symbol is read from an input at the top of the graph, or is an input itself; arithmetic is inserted where it is first
    needed. `trace` returns the current user's line, as a line of a traceback.
    """

    def __init__(self, graph: Graph, trace: Callable[[], str] = lambda: ""):
        self.graph = graph
        self.trace = trace
        self._nodes: dict[Expr, Node] = {}
        self._floats: dict[int, tuple[SymFloat, Node]] = {}
        self._origins: dict[Var, tuple[Node, str, int]] = {}
        self._last_read: Node | None = None

    def bind(self, value: object, placeholder: Node) -> None:
        """Record that a placeholder holds `value`: a SymInt, or a fake tensor with symbols among its sizes and strides."""
        if type(value) is SymInt:
            self._nodes.setdefault(value.expr, placeholder)
        elif type(value) is SymFloat:
            self._floats[id(value)] = value, placeholder
        elif isinstance(value, Tensor):
            for reader, values in (("sym_size", value._impl.sizes), ("sym_stride", value._impl.strides)):
                for dim, item in enumerate(values):
                    if type(item) is SymInt and type(item.expr) is Var:
                        self._origins.setdefault(item.expr, (placeholder, reader, dim))

    def has_symbols_of(self, expression: Expr) -> bool:
        """Return whether the graph has nodes from which all symbols of an expression can be read."""
        return all(symbol in self._nodes or symbol in self._origins for symbol in expression.free_variables())

    def node_of(self, value: SymInt | SymFloat) -> Node | int | float:
        """Convert `value` to an argument of a node: a number if it is fixed now."""
        if type(value) is SymFloat:
            return self._float(value)
        expression = value.environment.simplify(value.expr)
        plain = value.environment.integer(expression)
        return self._node(expression, value.environment) if type(plain) is SymInt else plain

    def _float(self, number: SymFloat) -> Node | float:
        known = self._floats.get(id(number))
        if known is None:
            parts = [self.node_of(part) if type(part) in (SymInt, SymFloat) else part for part in number.parts]
            if not any(isinstance(part, Node) for part in parts):
                return number.function(*parts)
            known = self._floats[id(number)] = number, self._call(number.function, *parts)
        return known[1]

    def _node(self, expression: Expr, environment: ShapeEnv) -> Node | int:
        value = environment.integer(expression)
        if type(value) is not SymInt:
            return value
        found = self._nodes.get(expression)
        if found is None:
            found = self._nodes[expression] = self._make(expression, environment)
            found.meta["val"] = found.meta["example_value"] = value
        return found

    def _make(self, expression: Expr, environment: ShapeEnv) -> Node:
        if type(expression) is Var:
            return self._emit_size_read(expression)
        if type(expression) is Sum:
            return self._sum(expression, environment)
        if type(expression) is Product:
            return self._chain(operator.mul, expression.factors, environment)
        function = {FloorDiv: operator.floordiv, Mod: operator.mod}[type(expression)]
        return self._call(function, *(self._node(part, environment) for part in (expression.dividend, expression.divisor)))

    def _emit_size_read(self, symbol: Var) -> Node:
        if symbol not in self._origins:
            raise RuntimeError(f"the size {symbol} is that of no input of this graph: a value of another capture reached it")
        placeholder, reader, dim = self._origins[symbol]
        if placeholder.op not in ("placeholder", "get_attr"):  # a value that the graph computes
            with self.graph.inserting_after(placeholder):
                return self._call(aten(f"{reader}.int"), placeholder, dim)
        last = [node for node in self.graph.nodes if node.op == "placeholder" or node is self._last_read][-1]
        with self.graph.inserting_after(last):
            self._last_read = self._call(aten(f"{reader}.int"), placeholder, dim)
        return self._last_read

    def _sum(self, expression: Sum, environment: ShapeEnv) -> Node:
        """Add nodes for a sum, terms with a positive coefficient first: this needs fewer negations."""
        result: Node | None = None
        for term, scale in sorted(expression.terms, key=lambda item: item[1] < 0):
            node = self._node(term, environment)
            if abs(scale) != 1 or (result is None and scale < 0):
                node = self._call(operator.mul, node, scale if result is None else abs(scale))
            if result is None:
                result = node
            else:
                result = self._call(operator.sub if scale < 0 else operator.add, result, node)
        if expression.constant:
            function = operator.sub if expression.constant < 0 else operator.add
            result = self._call(function, result, abs(expression.constant))
        return result

    def _chain(self, function: Callable, parts: Sequence[Expr], environment: ShapeEnv) -> Node:
        result, *others = (self._node(part, environment) for part in parts)
        for other in others:
            result = self._call(function, result, other)
        return result

    def _call(self, function: Callable, *arguments: Node | int | float) -> Node:
        node = self.graph.create_node("call_function", function, arguments)
        values = [argument.meta["val"] if isinstance(argument, Node) else argument for argument in arguments]
        node.meta["val"] = node.meta["example_value"] = function(*values)
        node.meta["stack_trace"] = self.trace()
        return node


def environment_of(values: Sequence[object]) -> ShapeEnv | None:
    """Return the environment of the symbols in fake values; None if all sizes are known."""
    for value in values:
        numbers = (*value.shape, *value.stride()) if isinstance(value, Tensor) else (value,)
        for number in numbers:
            if isinstance(number, SymInt):
                return number.environment
    return None


def name_symbols(graph: Graph) -> None:
    """Replace SymInts among the arguments of nodes, which a pass may have left there, by nodes."""
    symbols = SymbolNodes(graph)
    for node in graph.nodes:
        if node.op == "placeholder":
            symbols.bind(node.meta.get("val"), node)
    for node in list(graph.nodes):
        if node.op != "placeholder" and _mentions_symbols((node.args, node.kwargs)):
            with graph.inserting_before(node):
                node.args = _replace_symbols_by_nodes(node.args, symbols)
                node.kwargs = _replace_symbols_by_nodes(node.kwargs, symbols)


def _mentions_symbols(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_mentions_symbols, value))
    return any(map(_mentions_symbols, value.values())) if isinstance(value, dict) else type(value) in (SymInt, SymFloat)


def _replace_symbols_by_nodes(value: object, symbols: SymbolNodes) -> object:
    if isinstance(value, tuple | list):
        items = [_replace_symbols_by_nodes(item, symbols) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _replace_symbols_by_nodes(item, symbols) for key, item in value.items()}
    return symbols.node_of(value) if type(value) in (SymInt, SymFloat) else value
