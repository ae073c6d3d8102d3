"""A scripted method as a structured program: a form with native loops and branches, for known sizes.

In: a jit graph and arguments. Out: C++ functions: the program, the values derived once from weights, and the form, which stores
numbers and addresses into the program's cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.checks import same_value
from rushlight.compiler.scripted.external import may_be_external
from rushlight.compiler.scripted.plan import Source
from rushlight.compiler.scripted.readers import Argument, Held, Reader, Slot
from rushlight.compiler.scripted.regions import Unsupported, function_of
from rushlight.compiler.scripted.structured_program import structured_form
from rushlight.compiler.scripted.translate import Given, Joined, Named, Optional
from rushlight.compiler.scripted.values import Fixed, kind_of
from rushlight.core.tensor import Tensor
from rushlight.deploy.graph_form import in_namespace, includes_of
from rushlight.deploy.model import Model, Parameter, check_tensor
from rushlight.deploy.readers import Values
from rushlight.deploy.spelling import NotExportable, c_constant, c_string, constant_text
from rushlight.deploy.state import States
from rushlight.inductor.codegen.cpp.structured import StructuredWriter
from rushlight.inductor.codegen.cpp.structured_parts import width_of
from rushlight.inductor.structured import BOOL, FLOAT, INT, ListOf, Scalar, TensorOf, contiguous_strides
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.runtime.objects import ScriptObject

_KINDS = {INT: "INT", FLOAT: "FLOAT", BOOL: "BOOL"}


class StructuredForm:
    """A translated graph. `fits` says whether it supports a call."""

    def __init__(self, graph: Graph, arguments: Sequence[object]):
        self.translation, self.changing = structured_form(graph, arguments, True, frozenset(), None)
        program = self.translation.program
        if program.calls:
            names = ", ".join(sorted({node.kind for node in graph.all_nodes() if _is_external(node)})) or "operators"
            raise NotExportable(f"these operators have no native form in a program of their own: {names}")
        self.arguments = list(arguments)
        self.kinds = [var.kind for var in program.inputs]

    def fits(self, arguments: Sequence[object]) -> bool:
        """Return whether the form supports a call: whether its assumed values and input types match."""
        for source, value in self.translation.guards.items():
            if not same_value(source.read(arguments), value):
                return False
        for source, kind in zip(self.translation.sources, self.kinds, strict=True):
            found = source.read(arguments)
            if kind_of(found) != kind and not (isinstance(kind, ListOf) and found == []):
                return False
        return True

    # Write the form as C++

    def add(
        self, model: Model, states: States, method: str, function: str, names: Sequence[str], size_names: dict[str, str]
    ) -> list[Parameter]:  # fmt: skip
        """Add the form's functions; returns the descriptions of its results. `names` are those of all arguments."""
        program, number = self.translation.program, model.programs
        source = StructuredWriter(program, is_kept=True).write()
        model.programs += 1
        model.includes.update(dict.fromkeys(includes_of(source)))
        self.constants = self._constants(states)
        model.functions += [in_namespace(source, f"program_{number}"), self._make_kept(model, number)]
        values = Values(states, model.weights, self.arguments, names)
        for source_, value in self.translation.guards.items():
            if values.first <= source_.argument < len(names) or self._is_state(source_):
                if not isinstance(value, ScriptObject):
                    values.check_value(self._make_reader(source_), value)
        self._check_given(values)
        results = self._call(values, number)
        body = "\n".join(f"  {line}" for line in values.lines)
        model.forms.append(f"int {function}(model_handle& self, const value* inputs, value* outputs) {{\n{body}\n}}")
        return results

    def _make_reader(self, source: Source) -> Reader:
        read: Reader = Argument(source.argument)
        if not source.path:
            return read
        owner = Source(source.argument, source.path[:-1])
        return Slot(Held(owner.read(self.arguments), (source.argument, *source.path[:-1])), source.path[-1])

    def _is_state(self, source: Source) -> bool:
        return source in self.changing or source in self.translation.written

    def _constants(self, states: States) -> dict[int, Tensor]:
        """Return the inputs that are weights, by position."""
        found = {}
        for position, source in enumerate(self.translation.sources):
            if isinstance(source, Fixed):
                found[position] = source.tensor
            elif source.path and not self._is_state(source):
                value = source.read(self.arguments)
                if isinstance(value, Tensor):
                    found[position] = value
        return found

    def _make_kept(self, model: Model, k: int) -> str:
        """Write the function that computes, once, the values derived from weights, and an array of the addresses of weights and
        derived values."""
        count = len(self.kinds)
        lines = [
            f"void** const kept = (void**)held.made.take({count + 1} * (long)sizeof(void*));",
            "if (!kept) return nullptr;",
            f"kept[{count}] = held.made.take(program_{k}::kept_bytes());",
            f"if (!kept[{count}]) return nullptr;",
            f"int64_t cells[{count + 1}] = {{}};",
        ]
        for position, tensor in self.constants.items():
            offset = model.weights.add(tensor if tensor.is_contiguous() else tensor.contiguous())
            lines.append(f"kept[{position}] = (void*)(held.data + {offset}L);")
            lines.append(f"cells[{position}] = (int64_t)(intptr_t)kept[{position}];")
        lines += [f"void* buffers[] = {{cells, kept[{count}]}};", f"program_{k}::prepare(buffers, 1);", "return kept;"]
        body = "\n".join(f"  {line}" for line in lines)
        return f"static void** make_kept_{k}(weights& held) {{\n{body}\n}}"

    def _check_given(self, values: Values) -> None:
        """Check that all arguments have the kinds of the example's arguments, including those that the program does not
        read."""
        for index in range(values.first, len(values.names)):
            value, reader = self.arguments[index], Argument(index)
            name = c_string(values.text(reader))
            if isinstance(value, Tensor):
                check_tensor(values.text(reader), value.dtype, value.shape)
                self._check_tensor(values, values.pointer(reader), name, TensorOf(value.dtype, tuple(value.shape)))
                continue
            kinds = {bool: "BOOL", int: "INT", float: "FLOAT", str: "STRING", list: "LIST", dict: "DICT", type(None): "NONE"}
            kind = kinds.get(type(value)) or ("TUPLE" if isinstance(value, tuple) else None)
            if kind is None:
                raise NotExportable(f"an argument of {type(value).__name__}, which has no form in C")
            values.lines.append(
                f"if (!self.has_kind(*{values.pointer(reader)}, {name}, RL_CONSTANT({kind}), -1)) return unfit;"
            )

    @staticmethod
    def _check_tensor(values: Values, pointer: str, name: str, kind: TensorOf) -> str:
        """Check a tensor's dtype and sizes; returns the variable with its address."""
        found = values.temporary("tensor")
        shown = c_string(str(list(kind.size)))
        values.lines += [
            f"const tensor* const {found} = self.tensor_in(*{pointer}, {name}, {c_constant(kind.dtype)}, {len(kind.size)});",
            f"if (!{found}) return unfit;",
        ]
        if kind.size:
            test = " || ".join(f"{found}->sizes[{dim}] != {size}" for dim, size in enumerate(kind.size))
            values.lines.append(f"if ({test}) return self.wrong_sizes(*{found}, {name}, {shown});")
        return found

    # A run

    def _call(self, values: Values, k: int) -> list[Parameter]:
        program, lines = self.translation.program, values.lines
        inputs, outputs = len(program.inputs), len(program.outputs)
        lines += ["(void)inputs, (void)outputs;", f"void** const kept = kept_of(*self.held, {k}, make_kept_{k});"]
        lines += ["if (!kept) return self.no_more();", f"int64_t cells[{inputs + outputs + 1}] = {{}};"]
        backs: list[str] = []
        for position, (source, kind) in enumerate(zip(self.translation.sources, self.kinds, strict=True)):
            lines += self._fill_cell(values, position, source, kind, backs)
        for position, operand in enumerate(program.outputs, inputs):
            if isinstance(operand.kind, TensorOf):
                lines.append(f"void* const room_{position} = self.take({operand.kind.nbytes}L);")
                lines.append(f"if (!room_{position}) return self.no_more();")
                lines.append(f"cells[{position}] = (int64_t)(intptr_t)room_{position};")
        said = c_string(
            "the program raises for these inputs: an index is out of range, a divisor is 0, or an exception of its own"
        )
        lines += [
            f"void* const arena = self.take(program_{k}::arena_bytes(self.threads));",
            "if (!arena) return self.no_more();",
            f"void* buffers[] = {{cells, arena, kept[{inputs}]}};",
            f"if (program_{k}::entry(buffers, self.threads)) return self.say(failed, {said});",
            *backs,
        ]
        for position, operand in enumerate(program.outputs):
            lines.append(f"const value found_{position} = {self._result_expression(values, inputs + position, operand.kind)};")
        return self._write_results(values)

    def _fill_cell(self, values: Values, position: int, source: Source | Fixed, kind, backs: list[str]) -> list[str]:
        if position in self.constants:
            return [f"cells[{position}] = (int64_t)(intptr_t)kept[{position}];"]
        reader = self._make_reader(source)
        pointer, name = values.pointer(reader), c_string(values.text(reader))
        if isinstance(kind, TensorOf):
            found = self._check_tensor(values, pointer, name, kind)
            strides = ", ".join(f"{step}L" for step in contiguous_strides(kind.size)) or "0"
            if source in self.translation.written:
                copied = f"tensor_of(data_{position}, {found}->dtype, {found}->rank, {found}->sizes, strides_{position})"
                backs.append(f"if (data_{position} != {found}->data) copy_tensor(*{found}, {copied});")
            return [
                f"const int64_t strides_{position}[] = {{{strides}}};",
                f"void* const data_{position} = self.laid(*{found}, strides_{position});",
                f"if (!data_{position}) return self.no_more();",
                f"cells[{position}] = (int64_t)(intptr_t)data_{position};",
            ]
        if isinstance(kind, ListOf):
            return [
                f"cells[{position}] = (int64_t)(intptr_t)self.listed(*{pointer}, {name}, {_layout(kind)});",
                f"if (!cells[{position}]) return unfit;",
            ]
        check = [f"if (!self.has_kind(*{pointer}, {name}, RL_CONSTANT({_KINDS[kind]}), -1)) return unfit;"]
        if kind is FLOAT:
            return [*check, f"cells[{position}] = bits_of(({pointer})->as.real);"]
        return [*check, f"cells[{position}] = ({pointer})->as.integer{' != 0' if kind is BOOL else ''};"]

    @staticmethod
    def _result_expression(values: Values, position: int, kind) -> str:
        if isinstance(kind, TensorOf):
            sizes = f"sizes_of({', '.join(f'{size}L' for size in kind.size) or '0'}).numbers"
            return f"of_tensor(tensor_of(room_{position}, {c_constant(kind.dtype)}, {len(kind.size)}, {sizes}, nullptr))"
        if isinstance(kind, ListOf):
            return f"self.unlisted((void*)(intptr_t)cells[{position}], {_layout(kind)})"
        return {INT: f"of_integer(cells[{position}])", BOOL: f"of_boolean(cells[{position}] != 0)"}.get(
            kind, f"of_real(real_of(cells[{position}]))"
        )

    def _write_results(self, values: Values) -> list[Parameter]:
        structure = self.translation.structure
        count = len(structure) - len(self.changing)
        names, parts = _flatten_results(structure[:count])
        found = []
        for number, (name, part) in enumerate(zip(names, parts, strict=True)):
            result = values.temporary("result")
            values.lines.append(f"const value {result} = {self._build_result(values, part)};")
            values.lines.append(f"if ({result}.kind == RL_CONSTANT(LIST) && !{result}.as.list.items) return self.no_more();")
            values.lines.append(
                f"if (const int status = self.deliver(outputs[{number}], {result}, {c_string(name)})) return status;"
            )
            found.append(self._describe_parameter(name, part))
        kept = []
        for source, part in zip(self.changing, structure[count:], strict=True):
            name = values.temporary("next")
            values.lines.append(f"const value {name} = {self._build_result(values, part)};")
            kept.append(f"if (!self.states[{values.states.number(source.path)}].keep({name})) return self.no_more();")
        values.lines += [*kept, "return ok;"]
        return found

    def _build_result(self, values: Values, part: object) -> str:
        if isinstance(part, int):
            return f"found_{part}"
        if isinstance(part, Named | tuple):
            items = [self._build_result(values, each) for each in (part.parts if isinstance(part, Named) else part)]
            name = values.temporary("items")
            values.lines.append(f"value* const {name} = (value*)self.take({max(len(items), 1)} * (long)sizeof(value));")
            values.lines.append(f"if (!{name}) return self.no_more();")
            values.lines += [f"{name}[{position}] = {item};" for position, item in enumerate(items)]
            return f"of_items(RL_CONSTANT(TUPLE), {name}, {len(items)})"
        if isinstance(part, Joined):
            name = values.temporary("joined")
            is_stack = str(part.operator == "aten::stack").lower()
            values.lines.append(f"value {name};")
            values.lines.append(
                f"if (const int status = self.joined({name}, found_{part.tensors}, {part.dim}, {is_stack})) return status;"
            )
            return name
        if isinstance(part, Given):
            name = values.temporary("copied")
            values.lines.append(f"value {name};")
            source = f"*{values.pointer(self._make_reader(part.source))}"
            values.lines.append(f"if (!copy_value({name}, {source}, self.run_memory())) return self.no_more();")
            return name
        if isinstance(part, Optional):
            return f"(found_{part.present}.as.integer ? found_{part.value} : none())"
        if isinstance(part.value, Tensor):
            return values.constant_tensor(part.value)
        return constant_text(part.value)

    def _describe_parameter(self, name: str, part: object) -> Parameter:
        kind = None
        if isinstance(part, int):
            kind = self.translation.program.outputs[part].kind
        elif isinstance(part, Joined):
            element = self.translation.program.outputs[part.tensors].kind.element
            return Parameter(name, "tensor", element.dtype)
        elif isinstance(part, Given):
            value = part.source.read(self.arguments)
            kind = kind_of(value)
        elif isinstance(part, Named | tuple):
            return Parameter(name, "tuple")
        if isinstance(kind, TensorOf):
            check_tensor(name, kind.dtype, kind.size)
            return Parameter(name, "tensor", kind.dtype, tuple(kind.size))
        if isinstance(kind, Scalar):
            return Parameter(name, kind.name)
        return Parameter(name, "list" if isinstance(kind, ListOf) else "value")


def _flatten_results(structure: Sequence[object]) -> tuple[list[str], list[object]]:
    """Return the results, with the elements of a tuple as separate results."""
    if len(structure) == 1 and isinstance(structure[0], Named):
        return list(structure[0].type.fields), list(structure[0].parts)
    parts = list(structure[0]) if len(structure) == 1 and isinstance(structure[0], tuple) else list(structure)
    is_alone = len(parts) == 1 and not isinstance(structure[0], tuple)
    return ["result"] if is_alone else [f"result_{number}" for number in range(len(parts))], parts


def _layout(kind: ListOf) -> str:
    """Return a key for kinds of lists: their depth, and the innermost kind."""
    depth, element = 0, kind.element
    while isinstance(element, ListOf):
        depth, element = depth + 1, element.element
    if isinstance(element, TensorOf):
        sizes = ", ".join(f"{size}L" for size in element.size) or "0"
        return (
            f"list_layout{{{depth}, RL_CONSTANT(TENSOR), {width_of(element)}, {c_constant(element.dtype)}, "
            f"{len(element.size)}, sizes_of({sizes})}}"
        )
    return f"list_layout{{{depth}, RL_CONSTANT({_KINDS[element]}), {width_of(element)}, RL_CONSTANT(NO_DTYPE), 0, sizes_of(0)}}"


def _is_external(node: Node) -> bool:
    """Return whether a program would need Python to run a node."""
    try:
        function_of(node)
    except Unsupported:
        return may_be_external(node)
    return False
