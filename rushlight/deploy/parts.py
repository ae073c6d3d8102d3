"""A graph with data-dependent sizes, as C++: programs of known or open sizes, and between them functions that read values.

In: a captured graph of aten operators, in which `nonzero`, `item()` and the like produce unbacked symbols. Out: one C++
function over all parts, in their order:

    static int parts_0(model_handle& self, const value* const* given, value* const* places, value* made)

Each program is captured again, with the sizes found before it as open sizes of its inputs. If its guards exclude a value, such
as 1, it has a second form for that value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rushlight.aot.functionalize import functionalize
from rushlight.aot.memory import is_alias, is_write, storage_of, written_arguments
from rushlight.compiler.passes import for_fusion
from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import bool_, dtype, uint8
from rushlight.core.storage import without_data
from rushlight.core.symbolic import Relation, ShapeEnv, SymInt
from rushlight.core.symbolic.relations import NOT_NEGATIVE
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import UNKNOWN_NBYTES
from rushlight.deploy.graph_form import TESTS, GraphForm, excluded_values, graph_form
from rushlight.deploy.model import Model, tensor_text
from rushlight.deploy.refusals import MAY_FAIL, refusal_of, refuse_kept_eager, refuse_unsupported
from rushlight.deploy.spelling import constant_text, format_text, real_text
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.fx.fake_tensor import needs_values
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import environment_of
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes
from rushlight.inductor.plan import OutputView
from rushlight.inductor.size_symbols import TensorInput
from rushlight.inductor.sizes import Size, as_size, as_sizes
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

MAX_FORMS = 8  # limits the forms of one program for sizes that its general form excludes
_CALLS = {
    "nonzero": "find_nonzero", "_local_scalar_dense": "read_integer", "_unique2": "find_unique",
    "unique_consecutive": "find_runs", "nms": "find_apart",
}  # fmt: skip

StateOf = Callable[[str, Tensor], int]
"""The state number of a mutable attribute, by its name and tensor."""


@dataclass
class PartsForm:
    """The counterpart of `GraphForm` for a graph in parts: the number of the function, its inputs and its outputs,
    and the positions of the inputs that it writes to."""

    number: int
    inputs: list[TensorInput | Size]
    outputs: list[OutputView]
    kinds: list[tuple[dtype, tuple[Size, ...]] | None]
    written: frozenset[int]

    @property
    def call(self) -> str:
        """The function's name."""
        return f"parts_{self.number}"

    def tensor_at(self, position: int) -> tuple[dtype, tuple[Size, ...]] | None:
        """Return the dtype and sizes of an output; None if it is no tensor."""
        return self.kinds[position]


def _masks_to_positions(change: OpOverload, self: Tensor, indices: list, *rest: object, **options: object) -> object:
    """Decompose an index with masks into one with the masks' nonzero positions."""
    if not any(_is_mask(index) for index in indices):
        return NotImplemented
    if change is not aten("index.Tensor") and rest[0].numel() == 1:
        return NotImplemented
    lists: list[Tensor | None] = []
    for index in indices:
        if _is_mask(index):
            positions = aten("nonzero")(index)
            lists += [aten("select.int")(positions, 1, dim) for dim in range(index.dim())]
        else:
            lists.append(index)
    return change(self, lists, *rest, **options)


def _is_mask(index: object) -> bool:
    return isinstance(index, Tensor) and index.dtype in (bool_, uint8)


DECOMPOSITIONS = {
    change: lambda *arguments, change=change, **options: _masks_to_positions(change, *arguments, **options)
    for change in map(aten, ("index.Tensor", "index_put", "index_put_"))
}
"""Decompositions of data-dependent operators, including those into functions that exist in C++."""


@dataclass
class _Step:
    """The nodes of one program, followed by the nodes that read values from its results."""

    nodes: list[Node] = field(default_factory=list)
    calls: list[Node] = field(default_factory=list)


def _split_into_steps(graph: Graph) -> list[_Step]:
    """Split the graph's calls into steps, so that a tensor is not written before earlier reads of it are done."""
    steps = [_Step()]
    after: set[Node] = set()  # results of the last step's calls that read values, and values derived from them
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        last, uses = steps[-1], not after.isdisjoint(node.all_input_nodes)
        if node.target is operator.getitem and node.args[0] in after:
            last.calls.append(node)
            after.add(node)
            continue
        is_call = isinstance(node.target, OpOverload) and needs_values(node.target, _fake_values(node.args))
        writes = isinstance(node.target, OpOverload) and node.target.is_mutable
        if uses or (writes and last.calls):
            steps.append(last := _Step())
            after = set()
        if is_call:
            last.calls.append(node)
            after.add(node)
        else:
            last.nodes.append(node)
    return steps


def _is_of_known_size(node: Node) -> bool:
    sizes = [as_size(size) for size in node.meta["val"].shape]
    environment = environment_of([node.meta["val"]])
    variables = {each for size in sizes if isinstance(size, Expr) for each in size.free_variables()}
    return environment is None or variables.isdisjoint(environment.unknown)


def _refuse_views_across(steps: Sequence[_Step], method: str) -> None:
    """Raise NotExportable for a write to memory of which an earlier program made a view that is used from then on."""
    place = {node: number for number, step in enumerate(steps) for node in (*step.nodes, *step.calls)}
    order = {node: position for position, node in enumerate(place)}
    views = [node for node in place if is_alias(node)]
    for write in filter(is_write, place):
        written = {storage_of(target) for _, target in written_arguments(write)}
        for view in views:
            is_used = any(order.get(user, len(order)) >= order[write] for user in view.users)
            if storage_of(view) in written and place[view] < place[write] and is_used:
                raise refusal_of(method, write)


def _fake_values(arguments: Sequence[object]) -> object:
    return map_arg(tuple(arguments), lambda node: node.meta.get("val"))


class PartsWriter:
    """Writes one graph. `state_of` returns the number of a state that a program writes to."""

    def __init__(self, model: Model, method: str, size_names: dict[str, str], state_of: StateOf):
        self.model, self.method, self.size_names, self.state_of = model, method, size_names, state_of
        self.states: dict[str, int] = {}  # the numbers of the attributes that the graph writes to
        self.lines: list[str] = []
        self.texts: dict[Node, str] = {}  # the C++ pointer to the value of each node
        self.known: dict[str, str] = {}  # the C++ expression of each symbol's value

    def write(self, module: GraphModule, names: Sequence[str], unknown: UnknownSizes) -> PartsForm:
        """Add the function and its programs. NotExportable lists the operators without a native form."""
        self.module, self.names = module, list(names)
        # A program's results are copies, so that writes to a view in one would not reach its base in another.
        with unknown.supposing():
            functionalize(module, _is_of_known_size)
        refuse_kept_eager(module, self.method)
        written = [node.args[0] for node in module.graph.nodes if node.target is aten("copy_")]
        self.states = {
            node.target: self.state_of(node.target, getattr(module, node.target)) for node in written if node.op == "get_attr"
        }
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        for position, node in enumerate(inputs):
            self.texts[node] = f"given[{position}]"
        for node in module.graph.nodes:
            if node.op == "get_attr":
                number = self.states.get(node.target)
                where = self._declare_constant(node) if number is None else f"self.states[{number}].now"
                self.texts[node] = f"&{where}"
        steps = _split_into_steps(module.graph)
        _refuse_views_across(steps, self.method)
        for step in steps:
            if step.nodes:
                self._write_program(step.nodes)
            for node in step.calls:
                self._write_call(node)
        results = module.graph.output_node().args[0]
        self._write_checks(unknown)
        for position, result in enumerate(results):
            self.lines.append(f"made[{position}] = {self._result_text(result)};")
        self.model.looks_at_values = True
        number = len(self.model.forms)
        body = "\n".join(f"  {line}" for line in ["(void)given, (void)places, (void)made;", *self.lines, "return ok;"])
        head = f"static int parts_{number}(model_handle& self, const value* const* given, value* const* places, value* made)"
        self.model.forms.append(f"{head} {{\n{body}\n}}")
        symbols = [_input_spec_of(node.meta["val"]) for node in inputs]
        changed = frozenset(inputs.index(node) for node in written if node in inputs)
        return PartsForm(number, symbols, list(map(_view, results)), list(map(_dtype_and_sizes, results)), changed)

    def _declare_constant(self, node: Node) -> str:
        name = f"constant_{len(self.lines)}"
        self.lines.append(f"const value {name} = {tensor_text(getattr(self.module, node.target), self.model.weights)};")
        return name

    # Programs

    def _write_program(self, nodes: list[Node]) -> None:
        """Write the calls of one program's forms; the first form that fits runs."""
        used = dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in nodes)
        inside = set(nodes)
        results = [node for node in nodes if any(user not in inside for user in node.users)]
        if not results and not any(isinstance(node.target, OpOverload) and node.target.is_mutable for node in nodes):
            return
        made = f"values_{len(self.lines)}"
        self.lines.append(f"value {made}[{max(len(results), 1)}];")
        for position, node in enumerate(results):
            self.texts[node] = f"&{made}[{position}]"
        part = _Part(self.module, nodes, [node for node in used if node.op != "get_attr"], results)
        general = part.captured({})
        forms = [self._form(part, general, {})]
        for fixed in _excluded_values(general, [guard.relation for guard in general.environment.relations()]):
            with suppress(*MAY_FAIL), self.model.whole():  # this combination of values may be impossible
                forms.append(self._form(part, part.captured(fixed), fixed))
        self.lines.append(f"value* const {made}_at[] = {{{', '.join(['nullptr'] * max(len(results), 1))}}};")
        self.lines.append(f"int {made}_status = unfit;")
        for position, (form, conditions, given) in enumerate(forms):
            self.lines.append(f"const value* const {made}_given_{position}[] = {{{', '.join(given) or 'nullptr'}}};")
            condition = " && ".join([f"{made}_status == unfit", *conditions])
            call = f"graph_{form.number}(self, {made}_given_{position}, {made}_at, {made})"
            self.lines.append(f"if ({condition}) {made}_status = {call};")
        self.lines.append(f"if ({made}_status) return {made}_status;")

    def _form(self, part: _Part, captured: _Captured, fixed: dict[Var, int]) -> tuple[GraphForm, list[str], list[str]]:
        """Return a form of a program: its functions, the values of integers that it assumes, and its inputs."""
        module = captured.module
        for graph_pass in for_fusion(fallback_random=False):
            graph_pass(module)
        states = [node for node in module.graph.nodes if node.op == "get_attr" and node.target in self.states]
        seeds = seed_nodes(module)
        conditions, given, names = [], [], []
        for node, value in zip(part.inputs, captured.values, strict=True):
            if isinstance(value, Tensor | SymInt):
                given.append(self.texts[node])
                names.append(self._describe_origin(node))
            else:
                conditions.append(f"({self.texts[node]})->as.integer == {value}L")
        for node in states:
            given.append(f"&self.states[{self.states[node.target]}].now")
            names.append(f"the state {node.target}")
        for _ in seeds:
            seed = f"seed_{len(self.lines)}"
            self.lines.append(f"const value {seed} = self.next_seed();")
            given.append(f"&{seed}")
            names.append("the seed")
        module = as_last_inputs(module, [*states, *seeds])
        refuse_unsupported(module, self.method)
        form = graph_form(self.model.programs, module, names, self.model.weights, self.size_names)
        self.model.add_graph(form)
        return form, conditions, given

    def _describe_origin(self, node: Node) -> str:
        inputs = [each for each in self.module.graph.nodes if each.op == "placeholder"]
        return self.names[inputs.index(node)] if node in inputs else f"a value of {node.name}"

    # Functions that read values

    def _write_call(self, node: Node) -> None:
        if node.target is operator.getitem:
            self.texts[node] = f"{self.texts[node.args[0]].removeprefix('&')}[{node.args[1]}]"
            self.texts[node] = f"&{self.texts[node]}"
            return
        name = node.target._opname
        if name not in _CALLS or (name == "unique_consecutive" and _argument(node, "dim") is not None):
            raise refusal_of(self.method, node)
        made = f"found_{len(self.lines)}"
        count = len(node.meta["val"]) if isinstance(node.meta["val"], tuple | list) else 1
        self.lines.append(f"value {made}[{count}];")
        arguments = [self._argument_text(argument) for argument in node.target.normalize(list(node.args), dict(node.kwargs))]
        call = f"{_CALLS[name]}({', '.join(['self', *arguments, made])})"
        self.lines.append(f"if (const int status = {call}) return status;")
        self.texts[node] = f"&{made}" if count > 1 else f"&{made}[0]"
        self._note_symbols(node, made)

    def _argument_text(self, argument: object) -> str:
        if isinstance(argument, Node):
            return f"*{self.texts[argument]}"
        if isinstance(argument, bool):
            return str(argument).lower()
        return "0" if argument is None else real_text(argument) if isinstance(argument, float) else f"{argument}L"

    def _note_symbols(self, node: Node, made: str) -> None:
        """Record the results that define symbols of data-dependent sizes."""
        value = node.meta["val"]
        for position, each in enumerate(value if isinstance(value, tuple | list) else [value]):
            if isinstance(each, SymInt) and isinstance(each.expr, Var):
                self.known.setdefault(str(each.expr), f"{made}[{position}].as.integer")
            elif isinstance(each, Tensor):
                for dim, size in enumerate(as_sizes(each.shape)):
                    if isinstance(size, Var):
                        self.known.setdefault(str(size), f"{made}[{position}].as.tensor.sizes[{dim}]")

    def _write_checks(self, unknown: UnknownSizes) -> None:
        """Check the assumptions about data-dependent numbers after everything has run, before results are returned or
        stored."""
        declared: set[str] = set()
        for relation in dict.fromkeys(unknown.supposed):
            free = sorted(map(str, relation.expression.free_variables()))
            if not all(name in self.known for name in free):
                continue
            for name in free:
                if name not in declared:
                    declared.add(name)
                    self.lines.append(f"const int64_t {name} = {self.known[name]};")
            said = format_text(f"the model was exported for values with {relation}, which these have not")
            holds = f"({_checked_arithmetic(relation.expression)}).{TESTS[relation.kind]}()"
            self.lines.append(f"if (!{holds}) return self.say(failed, {said});")

    def _result_text(self, result: object) -> str:
        return f"*{self.texts[result]}" if isinstance(result, Node) else constant_text(result)


def _checked_arithmetic(expression: Expr) -> str:
    """Return an expression of sizes as C++ with 64-bit overflow checks."""
    names = "|".join(map(str, expression.free_variables()))
    text = re.sub(rf"\b(?:{names})\b", r"counted(\g<0>)", str(expression)) if names else str(expression)
    return f"counted({text})"


def _argument(node: Node, name: str) -> object:
    position = node.target._schema.positions[name]
    return node.target.normalize(list(node.args), dict(node.kwargs))[position]


def _input_spec_of(value: object) -> TensorInput | Size:
    if isinstance(value, Tensor):
        return TensorInput(as_sizes(value.shape), as_sizes(value.stride()), value.dtype)
    return as_size(value)


def _view(result: object) -> OutputView:
    value = result.meta["val"] if isinstance(result, Node) else result
    number = None if isinstance(value, Tensor) else as_size(value) if isinstance(value, SymInt) else value
    return OutputView("", (), (), 0, number)


def _dtype_and_sizes(result: object) -> tuple[dtype, tuple[Size, ...]] | None:
    value = result.meta["val"] if isinstance(result, Node) else result
    return (value.dtype, as_sizes(value.shape)) if isinstance(value, Tensor) else None


@dataclass
class _Captured:
    """A captured program. `values` are its inputs, with fixed ones as ints; `unknown` are the symbols of data-dependent
    sizes."""

    module: GraphModule
    environment: ShapeEnv
    values: list[object]
    unknown: list[Var]


class _Part:
    """The nodes of one program, as a module that can be captured for given sizes."""

    def __init__(self, module: GraphModule, nodes: list[Node], inputs: list[Node], results: list[Node]):
        graph, copied = Graph(), {}
        for node in inputs:
            copied[node] = graph.placeholder(node.name)
            copied[node].meta = dict(node.meta)
        attributes = dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used.op == "get_attr")
        for node in (*attributes, *nodes):
            copied[node] = graph.node_copy(node, copied.__getitem__)
        graph.output(tuple(copied[node] for node in results))
        self.module, self.inputs = GraphModule(module, graph), inputs
        self.attributes = {getattr(module, node.target)._impl: node.target for node in attributes}

    def captured(self, fixed: dict[Var, int]) -> _Captured:
        """Return the program's graph, over symbols of a new environment; `fixed` ones are numbers."""
        renewal = _SymbolCopier(fixed)
        values = [renewal.value(node.meta["val"]) for node in self.inputs]
        found = capture(
            self.module, tuple(values), names=self.attributes,
            open_leaves=[value if isinstance(value, SymInt) else None for value in values],
            input_names=[node.name for node in self.inputs],
        )  # fmt: skip
        return _Captured(found.module, renewal.environment, values, renewal.unknown)


class _SymbolCopier:
    """Copies fake values from one environment to symbols of a new one."""

    def __init__(self, fixed: dict[Var, int]):
        self.environment, self.unknown = ShapeEnv(), []
        self._fixed = {symbol.name: value for symbol, value in fixed.items()}
        self._symbols: dict[Var, Expr] = {}

    def value(self, value: object) -> object:
        """Return the copied value; one without symbols stays."""
        if not isinstance(value, Tensor):
            return self._copy_number(value)
        impl = value._impl.alias(tuple(map(self._copy_number, value.shape)), tuple(map(self._copy_number, value.stride())), 0)
        impl.storage = without_data(UNKNOWN_NBYTES)  # each value has its own storage, because programs return copies
        return wrap(impl)

    def _copy_number(self, number: object) -> object:
        if not isinstance(number, SymInt):
            return number
        for symbol in sorted(number.expr.free_variables(), key=str):
            if symbol not in self._symbols:
                self._symbols[symbol] = self._new_symbol(number.environment, symbol)
        return self.environment.integer(number.expr.substitute(self._symbols))

    def _new_symbol(self, old: ShapeEnv, symbol: Var) -> Expr:
        """Return the new symbol for an old one. A data-dependent size may be 0 or 1."""
        of_values = symbol in old.unknown
        least = 0 if of_values and symbol.least is not None else symbol.least
        made = self.environment.create_symbol(max(old.hint_of(symbol), 2), (str(symbol), None), share=False, least=least).expr
        if of_values:
            self.unknown.append(made)
        return as_expr(self._fixed[made.name]) if made.name in self._fixed else made


def _excluded_values(general: _Captured, relations: list[Relation]) -> Iterator[dict[Var, int]]:
    """Yield sizes that the general form excludes: each alone, and one value for all data-dependent sizes."""
    found = {(symbol, value) for symbol, values in excluded_values(relations).items() for value in values if value >= 0}
    for relation in relations:  # a size assumed to be at least one may be zero
        for symbol in relation.expression.free_variables():
            if relation.kind == NOT_NEGATIVE and relation.substitute({symbol: 0}).constant() is False:
                found.add((symbol, 0))
    alone = sorted((each for each in found if each[0] in general.unknown), key=str)
    yield from ({symbol: value} for symbol, value in alone[:MAX_FORMS])
    if len(general.unknown) > 1:
        yield from (dict.fromkeys(general.unknown, value) for value in sorted({value for _, value in alone}))
