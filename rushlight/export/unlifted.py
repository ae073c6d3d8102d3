"""`ExportedProgram.module()`: an exported graph as a module that is called like the original.

In: a program. Out: a module that holds parameters, buffers and constants, checks its inputs, and writes mutations back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.core.algebra import Expr, Var
from rushlight.core.dtype import dtype
from rushlight.core.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.export.graph_signature import InputKind, OutputKind
from rushlight.export.ranges import ValueRanges
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.registry import aten

if TYPE_CHECKING:
    from rushlight.export.exported_program import ExportedProgram


class ExportedModule(GraphModule):
    """An exported program as a module. Its graph has only the user's inputs; calls take and return the original's trees."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = flatten_inputs(self._in_spec, args, kwargs)
        if self._check_guards:
            self._inputs.check(leaves)
        return tree_unflatten(list(super().__call__(*leaves)), self._out_spec)

    def train(self, mode: bool = True) -> Any:
        """Raise NotImplementedError: the graph has the mode that it was exported in."""
        raise NotImplementedError("Calling train() is not supported: the mode is part of the exported graph.")

    def eval(self) -> Any:
        """Raise NotImplementedError: the graph has the mode that it was exported in."""
        raise NotImplementedError("Calling eval() is not supported: the mode is part of the exported graph.")


def unlift(program: ExportedProgram, check_guards: bool = True) -> ExportedModule:
    """Return the program as a module that shares its parameters, buffers and constants."""
    tensors = {**program.constants, **program.state_dict}
    graph = _graph_over_user_inputs(program)
    made = ExportedModule(tensors, graph)
    made._in_spec, made._out_spec = program.call_spec.in_spec, program.call_spec.out_spec
    made._inputs = InputChecks(program)
    made._check_guards = check_guards
    _mark_buffers(made, program)
    made.recompile()
    return made


def _mark_buffers(module: ExportedModule, program: ExportedProgram) -> None:
    """Exclude buffers from the state dict that the original excludes."""
    signature = program.graph_signature
    for name in (*signature.non_persistent_buffers, *signature.lifted_tensor_constants):
        path, _, short = name.rpartition(".")
        if any(node.op == "get_attr" and node.target == name for node in module.graph.nodes):
            module.get_submodule(path)._non_persistent_buffers_set.add(short)


def _graph_over_user_inputs(program: ExportedProgram) -> Graph:
    graph, known = Graph(), {}
    held = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.kind is not InputKind.USER_INPUT}
    for node in program.graph.nodes:
        if node.op == "output":
            _write_back(graph, program, node.args[0], known)
        elif node.op == "placeholder" and node.name in held:
            known[node] = graph.get_attr(held[node.name])
            known[node].meta = dict(node.meta)
        else:
            known[node] = graph.node_copy(node, known.__getitem__)
    return graph


def _write_back(graph: Graph, program: ExportedProgram, results: tuple, known: dict[Node, Node]) -> None:
    """Copy the new contents back to state and inputs, and return the user's results."""
    specs = program.graph_signature
    targets = {spec.target: spec.arg.name for spec in specs.input_specs if spec.target is not None}
    by_name = {node.name: copied for node, copied in known.items()}
    values = [known.get(result, result) if isinstance(result, Node) else result for result in results]
    returned = [value for spec, value in zip(specs.output_specs, values, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    for spec, value in zip(specs.output_specs, values, strict=True):
        if spec.kind is not OutputKind.USER_OUTPUT:
            target = by_name[targets.get(spec.target, spec.target)]
            _write(graph, target, value, spec.kind)
            returned = [target if other is value else other for other in returned]
    graph.output(tuple(returned))


def _write(graph: Graph, target: Node, value: Node, kind: OutputKind) -> None:
    """Copy new contents to an input, without history: batch statistics depend on parameters."""
    trace = value.meta.get("stack_trace")
    if kind is not OutputKind.USER_INPUT_MUTATION:
        target, value = (_call(graph, "detach", (node,), trace) for node in (target, value))
    _call(graph, "copy_", (target, value), trace)


def _call(graph: Graph, operator: str, args: tuple, trace: str | None) -> Node:
    node = graph.call_function(aten(operator), args)
    if trace:
        node.meta["stack_trace"] = trace
    return node


# Inputs


def flatten_inputs(spec: TreeSpec, args: tuple, kwargs: dict) -> list:
    """Return the leaves of arguments. ValueError where their structure differs from the example's."""
    wanted = spec.children[1].keys or ()
    if set(wanted) == set(kwargs):
        kwargs = {name: kwargs[name] for name in wanted}
    leaves, found = tree_flatten((args, kwargs))
    if found != spec:
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec:\n{spec}\nbut actually got inputs with tree spec "
            f"of:\n{found}.\nPlease check that the inputs have the same number and type of args and kwargs as the ones you "
            "used when tracing."
        )
    return leaves


class OpenSize(NamedTuple):
    """The requirement of an open size: an expression, the name of the symbol that it is (or ""), and limits if they are known.

    It holds no SymInt: a capture that follows the checks would ask it for its value, which fixes the symbol.
    """

    expression: Expr
    symbol: str
    bounds: ValueRanges | None


class TensorRequirement(NamedTuple):
    """The requirements of an input that is a tensor."""

    dtype: dtype
    sizes: tuple[int | OpenSize, ...]


def _requirement_of(value: Any, ranges: Mapping[Expr, ValueRanges]) -> Any:
    """Return the requirement of an input whose example is a tensor; other examples as they are."""
    if not isinstance(value, Tensor):
        return value
    return TensorRequirement(value.dtype, tuple(_size_requirement(size, ranges) for size in value.shape))


def _size_requirement(size: int | SymInt, ranges: Mapping[Expr, ValueRanges]) -> int | OpenSize:
    if type(size) is not SymInt:
        return size
    return OpenSize(size.expr, size.expr.name if type(size.expr) is Var else "", ranges.get(size.expr))


class InputChecks:
    """The checks of the leaves of a call's arguments."""

    def __init__(self, program: ExportedProgram) -> None:
        names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        ranges = program.range_constraints
        self.inputs = [(name, _requirement_of(nodes[name].meta["val"], ranges)) for name in names]
        self.relations = program._relations

    def check(self, leaves: list) -> None:
        """Raise AssertionError that names the input which violates a requirement."""
        symbols: dict[str, tuple[int, str]] = {}  # by name, a value and the size that has it
        later: list[Callable[[], None]] = []
        for (name, wanted), given in zip(self.inputs, leaves, strict=True):
            if isinstance(wanted, TensorRequirement):
                self._check_tensor(name, wanted, given, symbols, later)
            elif type(given) is not type(wanted) or given != wanted:
                raise AssertionError(f"Guard failed: {name} == {wanted!r}, got {given!r}")
        for check in later:
            check()
        for relation in self.relations:
            free = _sorted_variables(relation.expression)
            values = {symbol: symbols[symbol.name][0] for symbol in free if symbol.name in symbols}
            if len(values) == len(free) and not relation.holds(values):
                shown = ", ".join(f"{symbols[symbol.name][1]} = {symbol} = {values[symbol]}" for symbol in free)
                raise AssertionError(f"Guard failed: {relation}, where {shown}")

    def _check_tensor(self, name: str, wanted: TensorRequirement, given: Any, symbols: dict, later: list) -> None:
        if not isinstance(given, Tensor):
            raise AssertionError(f"Guard failed: isinstance({name}, torch.Tensor), got {type(given).__name__}")
        if given.dtype is not wanted.dtype:
            raise AssertionError(f"Guard failed: {name}.dtype == {wanted.dtype}, got {given.dtype}")
        if given.dim() != len(wanted.sizes):
            raise AssertionError(f"Guard failed: {name}.dim() == {len(wanted.sizes)}, got {given.dim()}")
        for dim, (size, found) in enumerate(zip(wanted.sizes, given.shape, strict=True)):
            source = f"{name}.size()[{dim}]"
            if not isinstance(size, int):
                self._check_size(source, size, found, symbols, later)
            elif size != found:
                raise AssertionError(f"Guard failed: {source} == {size}, got {found}")

    def _check_size(self, source: str, size: OpenSize, found: int, symbols: dict, later: list) -> None:
        bounds = size.bounds
        if bounds is not None and not bounds.lower <= found <= bounds.upper:
            limit = f"{bounds.lower} <= {source}" if found < bounds.lower else f"{source} <= {bounds.upper}"
            raise AssertionError(f"Guard failed: {limit}, got {found}")
        if size.symbol and size.symbol not in symbols:
            symbols[size.symbol] = found, source
        else:
            later.append(lambda: _check_equal(source, size.expression, found, symbols))


def _check_equal(source: str, expression: Any, found: int, symbols: dict) -> None:
    """Check that a size equals its expression; symbols that no input has alone are not checked."""
    free = _sorted_variables(expression)
    if all(symbol.name in symbols for symbol in free):
        value = expression.evaluate({symbol: symbols[symbol.name][0] for symbol in free})
        if value != found:
            shown = ", ".join(f"{symbols[symbol.name][1]} = {symbol} = {symbols[symbol.name][0]}" for symbol in free)
            where = f", where {shown}" if free else ""
            raise AssertionError(f"Guard failed: {source} == {expression}{where}, got {found}")


def _sorted_variables(expression: Any) -> list[Var]:
    return sorted(expression.free_variables(), key=str)
