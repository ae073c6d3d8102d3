"""A scripted method as one graph: a form for arguments and state like the example's.

In: a jit graph and arguments. Out: a C++ function over the method's inputs and outputs. Every run checks the example's
decisions, such as branches on numbers. Where they differ the form returns `unfit`, and another form runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rushlight.compiler.passes import for_fusion
from rushlight.compiler.scripted.execution import Budget
from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.program import Form, WholeProgram
from rushlight.compiler.scripted.readers import Argument, Item, Reader, Slot
from rushlight.compiler.scripted.templates import Items, Output, Read, Template
from rushlight.compiler.scripted.whole import Captured, Wish
from rushlight.core.pytree import LEAF, TreeSpec
from rushlight.core.symbolic import ShapeGuard
from rushlight.core.tensor import Tensor
from rushlight.deploy.exported import shown_sizes
from rushlight.deploy.graph_form import GraphForm, graph_form
from rushlight.deploy.model import Model, Parameter, check_tensor
from rushlight.deploy.parts import DECOMPOSITIONS, PartsForm, PartsWriter
from rushlight.deploy.readers import Values
from rushlight.deploy.refusals import refuse_unsupported
from rushlight.deploy.spelling import NotExportable, c_string
from rushlight.deploy.state import States
from rushlight.inductor.compile_fx import interpreter_of
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes, written_constants
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.objects import ScriptObject

KINDS = {bool: "BOOL", int: "INT", float: "FLOAT", str: "STRING", type(None): "NONE"}
_ROUNDS, _NODES = 512, 12_000


class WholeForm:
    """A captured graph. `program` runs it in Python, for the example calls that discover further forms."""

    def __init__(self, graph: Graph, arguments: Sequence[object], dims: Dims, changing: frozenset, budget: Budget):
        captured = Captured(graph, arguments, Wish(changing, dims, False, budget, DECOMPOSITIONS))
        for graph_pass in () if captured.unknown.calls else for_fusion(fallback_random=False):
            graph_pass(captured.module)
        self.captured = captured
        self.form: Form = captured.form(arguments)
        self.program = WholeProgram(interpreter_of(captured.module), self.form)
        self.arguments = list(arguments)
        self.written: set[int] = set()  # the indices of the arguments that the form writes to

    def fits(self, arguments: Sequence[object]) -> bool:
        """Return whether the form supports a call."""
        return self.program.fits(arguments)

    def fixes_contents(self, given: int) -> bool:
        """Return whether the form holds only for certain strings or floats, or certain contents of lists or dicts: in the first
        `given` arguments, which callers pass, or in an attribute of the module that a run changes."""
        if self.form.changes or self._fixes_float(given):
            return True
        at = 0
        for index, spec in zip(self.form.inputs.positions, self.form.inputs.spec.children, strict=True):
            indices = range(at, at + spec.num_leaves)
            at += spec.num_leaves
            fixed = any(position in indices and leaf is not None for position, leaf in self.form.inputs.fixed)
            if index < given and (fixed or (spec.num_leaves == 0 and spec is not LEAF)):
                return True
        return False

    def _fixes_float(self, given: int) -> bool:
        """Return whether one of the first `given` arguments is a float that must have the example's value."""
        readers = [reader for reader, expected in self.form.conditions if type(expected) is float]
        return any(isinstance(reader, Argument) and reader.index < given for reader in readers)

    def relations(self) -> Iterator[ShapeGuard]:
        """Return the form's guards on its open sizes."""
        return self.captured.sizes.environment.relations()

    # Write the form as C++

    def add(
        self, model: Model, states: States, method: str, function: str, names: Sequence[str], size_names: dict[str, str]
    ) -> list[Parameter]:
        """Add the form's functions; returns the descriptions of its results. `names` are those of all arguments."""
        module, form = self.captured.module, self.form
        self._refuse_effects()
        in_parts = bool(self.captured.unknown.calls)
        written, seeds = ([], []) if in_parts else (written_constants(module), seed_nodes(module))
        written_states = [states.number(self._path_of(getattr(module, node.target))) for node in written]
        if not in_parts:
            module = as_last_inputs(module, [*written, *seeds])
            refuse_unsupported(module, method)
        values = Values(states, model.weights, self.arguments, names)
        self._check_structure(values)
        for reader, expected in form.conditions:
            if isinstance(reader, Argument) and reader.index >= len(names):
                continue  # callers don't pass these arguments
            if not isinstance(expected, ScriptObject | Tensor):
                values.check_value(reader, expected)
        for reader, kind in form.kinds:
            if isinstance(kind, tuple):
                values.check_kind(reader, {list: "LIST", dict: "DICT"}.get(kind[0], "TUPLE"), self._count_items(kind))
        leaves = self._readers_of_leaves()
        given = [values.pointer(leaves[index]) for index in form.inputs.distinct]
        called = [values.text(leaves[index]) for index in form.inputs.distinct]
        for reader in form.late:
            name = values.temporary("late")
            values.lines.append(f"const value* const {name} = {values.pointer(reader)};")
            given.append(name)
            called.append(values.text(reader))
        given += [f"&self.states[{number}].now" for number in written_states]
        called += [f"the state {model.states[number][0]}" for number in written_states]
        for number in range(len(seeds)):
            values.lines.append(f"const value seed_{number} = self.next_seed();")
            given.append(f"&seed_{number}")
            called.append("the seed")
        if in_parts:
            writer = PartsWriter(model, method, size_names, lambda _, tensor: states.number(self._path_of(tensor)))
            graph = writer.write(module, called, self.captured.unknown)
        else:
            graph = graph_form(model.programs, module, called, model.weights, size_names)
            model.add_graph(graph)
        sources = [leaves[index] for index in form.inputs.distinct]
        self.written = {_argument_of(sources[position]) for position in graph.written if position < len(sources)}
        results = self._call(values, graph, given, size_names)
        body = "\n".join(f"  {line}" for line in values.lines)
        model.forms.append(f"int {function}(model_handle& self, const value* inputs, value* outputs) {{\n{body}\n}}")
        return results

    def _refuse_effects(self) -> None:
        """Raise NotExportable for side effects outside of the module's own attributes."""
        for reader, _, _ in self.form.changes:
            if not isinstance(reader, Slot):
                raise NotExportable("a list or dict among the arguments is changed, which a caller in C would not see")
        if self.captured.unread:
            raise NotExportable("a list among the arguments is appended to, which a caller in C would not see")

    def _path_of(self, tensor: Tensor) -> tuple[str, ...]:
        """Return the attribute path of a tensor that the code writes to."""
        for owner, name, value in self.form.reads:
            if value is tensor:
                for path, (holder, held, _) in zip(self.form.paths, self.form.reads, strict=True):
                    if holder is owner and held == name:
                        return (*path[1:], name)
        raise NotExportable("the code writes to a tensor that is no attribute of a module")

    @staticmethod
    def _count_items(kind: tuple) -> int:
        return 2 * len(kind[1]) if isinstance(kind[1], tuple) else kind[1]

    # Arguments

    def _check_structure(self, values: Values) -> None:
        """Check that the arguments have the kinds of the example's."""
        inputs = self.form.inputs
        at = 0
        for index, spec in zip(inputs.positions, inputs.spec.children, strict=True):
            at = self._check_spec(values, Argument(index), spec, at) if index < len(values.names) else at + spec.num_leaves

    def _check_spec(self, values: Values, reader: Reader, spec: TreeSpec, at: int) -> int:
        inputs = self.form.inputs
        if spec is LEAF:
            leaf = inputs.leaves[at]
            if not isinstance(leaf, Tensor):
                if type(leaf) not in KINDS:
                    raise NotExportable(f"an argument of {type(leaf).__name__}, which has no form in C")
                values.check_kind(reader, KINDS[type(leaf)], None)
                if any(index == at for index, _ in inputs.fixed):
                    values.check_value(reader, leaf)
            return at + 1
        kind = {list: "LIST", dict: "DICT"}.get(spec.kind, "TUPLE")
        values.check_kind(reader, kind, len(spec.children) * (2 if spec.keys is not None else 1))
        keys = spec.keys if spec.keys is not None else range(len(spec.children))
        for key, child in zip(keys, spec.children, strict=True):
            at = self._check_spec(values, Item(reader, key), child, at)
        return at

    def _readers_of_leaves(self) -> list[Reader]:
        """Return the reader of each leaf of the arguments."""
        found: list[Reader] = []

        def walk(reader: Reader, spec: TreeSpec) -> None:
            if spec is LEAF:
                found.append(reader)
            keys = spec.keys if spec.keys is not None else range(len(spec.children))
            for key, child in zip(keys, spec.children, strict=True):
                walk(Item(reader, key), child)

        for index, spec in zip(self.form.inputs.positions, self.form.inputs.spec.children, strict=True):
            walk(Argument(index), spec)
        return found

    # Results

    def _call(
        self, values: Values, graph: GraphForm | PartsForm, given: list[str], size_names: dict[str, str]
    ) -> list[Parameter]:
        templates, names = self._flatten_results()
        places = ["nullptr"] * len(graph.outputs)
        for number, template in enumerate(templates):
            if isinstance(template, Output) and places[template.place] == "nullptr":
                places[template.place] = f"&outputs[{number}]"
        lines = values.lines
        lines += ["(void)inputs, (void)outputs;", f"const value* const given[] = {{{', '.join(given) or 'nullptr'}}};"]
        lines += [
            f"value* const places[] = {{{', '.join(places) or 'nullptr'}}};",
            f"value made[{max(len(graph.outputs), 1)}];",
        ]
        lines += [f"if (const int status = {graph.call}(self, given, places, made)) return status;"]

        def output(place: int) -> str:
            return f"made[{place}]"

        found = []
        for number, (template, name) in enumerate(zip(templates, names, strict=True)):
            result = values.temporary("result")
            lines.append(f"const value {result} = {values.template(self._replace_changed_containers(template), output)};")
            lines.append(f"if (const int status = self.deliver(outputs[{number}], {result}, {c_string(name)})) return status;")
            found.append(self._describe_parameter(name, template, graph, size_names))
        self._store_attributes(values, output)
        lines.append("return ok;")
        return found

    def _replace_changed_containers(self, template: Template) -> Template:
        """Return a result in which a changed list or dict is replaced by its new state."""
        if isinstance(template, Read):
            return next(
                (contents for reader, _, contents in self.form.changes if reader.to_data() == template.reader.to_data()),
                template,
            )
        if isinstance(template, Items):
            return replace(template, items=[self._replace_changed_containers(each) for each in template.items])
        return template

    def _flatten_results(self) -> tuple[list[Template], list[str]]:
        """Return the results, with the elements of a tuple as separate results."""
        results = self.form.results
        if (
            len(results) == 1
            and isinstance(results[0], Items)
            and isinstance(results[0].kind, type)
            and issubclass(results[0].kind, tuple)
        ):
            fields = getattr(results[0].kind, "_fields", None)
            names = [f"result_{number}" for number in range(len(results[0].items))] if fields is None else list(fields)
            return results[0].items, names
        return list(results), ["result"] if len(results) == 1 else [f"result_{number}" for number in range(len(results))]

    def _describe_parameter(
        self, name: str, template: Template, graph: GraphForm | PartsForm, size_names: dict[str, str]
    ) -> Parameter:
        if isinstance(template, Output):
            found = graph.tensor_at(template.place)
            if found is None:
                return Parameter(name, "int")
            check_tensor(name, *found)
            return Parameter(name, "tensor", found[0], shown_sizes(found[1], size_names))
        if isinstance(template, Items):
            return Parameter(name, {list: "list", dict: "dict"}.get(template.kind, "tuple"))
        return Parameter(name, "value")

    def _store_attributes(self, values: Values, output) -> None:
        """Store changed attributes of the module. All values are computed before any is stored."""
        kept = []
        for owner, name, template in self.form.assignments:
            kept.append((values.states.number((*values.owner(owner), name)), template))
        for reader, grows, contents in self.form.changes:
            if grows:
                raise NotExportable("a list that is only appended to, in an attribute")
            kept.append((values.states.number((*values.owner(reader.owner), reader.name)), contents))
        made = []
        for number, template in kept:
            name = values.temporary("next")
            values.lines.append(f"const value {name} = {values.template(template, output)};")
            made.append(f"if (!self.states[{number}].keep({name})) return self.no_more();")
        values.lines += made


def _argument_of(reader: Reader) -> int:
    """Return the index of the argument in which a leaf lies."""
    while isinstance(reader, Item):
        reader = reader.owner
    return reader.index


def whole_form(graph: Graph, arguments: Sequence[object], dims: Dims, open_loops: bool) -> WholeForm:
    """Return the form for arguments like these; `dims` are open dimensions. With `open_loops`, loops whose trip count is a
    number are unrolled for that number.

    Numbers that are arguments or state become inputs of the graph where possible.
    """

    def made(changing: frozenset) -> WholeForm:
        return WholeForm(graph, arguments, dims, changing, Budget(_ROUNDS, _NODES, open_loops, draws=True))

    first = made(frozenset())
    return made(frozenset(first.form.numbers)) if first.form.numbers else first
