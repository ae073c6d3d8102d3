"""The form of a scripted method that is translated statement by statement; it is tried last.

In: a jit graph and an example of its arguments. Out: a C++ function over the method's inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.dtype import complex128
from rushlight.core.tensor import Tensor
from rushlight.deploy.direct.memory import aliases_of, drop_assignments_of_themselves, written_arguments
from rushlight.deploy.direct.methods import resolve_methods
from rushlight.deploy.direct.program import Program, is_changed
from rushlight.deploy.direct.values import Kind, Operand, Plan, holds_tensors, representation, unboxed
from rushlight.deploy.model import Model, Parameter, check_tensor
from rushlight.deploy.spelling import NotExportable, c_constant, c_string, format_text
from rushlight.deploy.state import States
from rushlight.inductor.sizes import Size
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

_ROUNDS = 24
_CODES = {types.INT: "INT", types.FLOAT: "FLOAT", types.BOOL: "BOOL", types.STRING: "STRING", types.NONE: "NONE"}


class DirectForm:
    """An analyzed program. `names` maps the open dimensions of the arguments' tensors, numbered in order, to the user's
    names."""

    def __init__(
        self, graph: Graph, arguments: Sequence[object], dims: Mapping[int, Mapping[int, str]], bounds: Mapping[str, tuple]
    ):
        self.graph = graph.copy()
        self.arguments, self.dims, self.bounds = list(arguments), dims, bounds
        self.owner = arguments[0] if arguments and isinstance(arguments[0], ScriptObject) else None
        resolve_methods(self.graph, self.owner)
        drop_assignments_of_themselves(self.graph)
        eliminate_dead_code(self.graph)
        self.first = 0 if self.owner is None else 1
        if any(isinstance(each, ScriptObject) for each in arguments[self.first :]):
            raise Unsupported("an argument that is an object")
        self.aliases = aliases_of(self.graph, self.owner)
        for value in self.graph.inputs[self.first :]:
            if isinstance(value.type, types.ListType | types.DictType) and is_changed(value, self.aliases):
                raise Unsupported(f"the argument {value.debug_name} is changed, which a caller in C would not see")
        self.written = written_arguments(self.graph, self.owner)
        self.plan = Plan()
        for _ in range(_ROUNDS):
            self.plan.grew = False
            program = self._write_program(None)
            self._run(program)
            if not self.plan.grew:
                break
        if program.unfinished or self.plan.grew:
            raise Unsupported("a value of which nothing is ever found")

    def _write_program(self, model: Model | None) -> Program:
        program = Program(self.graph, self.aliases, self.owner, self.plan, None if model is None else model.weights)
        program.model = model
        return program

    def _run(self, program: Program) -> list[Operand]:
        """Write the statements; returns the results."""
        position = 0
        for number, (value, argument) in enumerate(zip(self.graph.inputs, self.arguments, strict=True)):
            if number < self.first:
                program.values[value] = Operand(value.type, path=())
                continue
            kind, position = self._argument_kind(program, argument, value.type, number, position)
            if kind is None:
                program.values[value] = program.constant(argument, value.type)
            else:
                program.values[value] = Operand(value.type, program.kind_or_default(value, kind), f"x{number}")
        program.block(self.graph.block)
        if program.ended:
            raise Unsupported("it raises an exception, whatever is given")
        return [program.operand(value) for value in self.graph.outputs]

    def _argument_kind(
        self, program: Program, argument: object, kind: types.Type, number: int, position: int
    ) -> tuple[Kind | None, int]:
        count = _count_tensors(argument)
        if not _can_cross_interface(argument):
            return None, position + count
        if isinstance(argument, Tensor):
            opened = self.dims.get(position, {})
            sizes = [
                self._make_symbol(program, opened[dim], size) if dim in opened else size
                for dim, size in enumerate(argument.shape)
            ]
            return program.kind_of(argument, kind, number, sizes), position + count
        return program.kind_of(argument, kind, number), position + count

    def _make_symbol(self, program: Program, name: str, size: int) -> Size:
        least = self.bounds.get(name, (0, None))[0]
        return program.plan.symbol(name, size, [value for value in (0, 1) if value >= (least or 0)])

    def fits(self, arguments: Sequence[object]) -> bool:
        """Return whether the form supports a call."""
        position = 0
        for number, (given, own) in enumerate(zip(arguments, self.arguments, strict=True)):
            if number < self.first:
                continue
            if not self._is_like(given, own, position):
                return False
            position += _count_tensors(own)
        return True

    def _is_like(self, given: object, own: object, position: int) -> bool:
        if isinstance(own, Tensor) and isinstance(given, Tensor):
            opened = self.dims.get(position, {})
            same = given.dtype is own.dtype and len(given.shape) == len(own.shape)
            return same and all(
                one == two or dim in opened for dim, (one, two) in enumerate(zip(given.shape, own.shape, strict=True))
            )
        if not _can_cross_interface(own):
            return given is own or given == own
        return type(given) is type(own) and (not isinstance(own, list | dict | tuple) or _same_inside(given, own))

    # Write the form as C++

    def add(
        self, model: Model, states: States, method: str, function: str, names: Sequence[str], size_names: dict[str, str]
    ) -> list[Parameter]:  # fmt: skip
        """Add the form's functions; returns the descriptions of its results. `names` are those of all arguments."""
        program = self._write_program(model)
        try:
            results = self._run(program)
            kept = self._store_attributes(program, states)
            parts, called = self._flatten_results(program, results)
            found = self._write_results(program, parts, called)
        except Unsupported as error:
            raise NotExportable(f"{method} cannot be exported: {error}") from error
        checks: list[str] = []
        self._check_arguments(program, names, checks)
        lines = ["(void)inputs, (void)outputs;", *checks, "tensors run(self);"]
        lines += self._declare_arguments(program, names)
        lines += self._check_unions(program, names)
        lines += [self._declare_state(states, attribute) for attribute in program.attributes.values()]
        lines += ['if (run.status) return run.at("");', *program.lines, *kept, "return ok;"]
        body = "\n".join(f"  {line}" for line in lines)
        model.includes["#include <rushlight/program.h>"] = None
        model.uses_language = True
        model.forms.append(f"int {function}(model_handle& self, const value* inputs, value* outputs) {{\n{body}\n}}")
        return found

    def _declare_arguments(self, program: Program, names: Sequence[str]) -> list[str]:
        lines = []
        for number in range(self.first, len(names)):
            value = self.graph.inputs[number]
            operand = program.values[value]
            if operand.text is None:
                continue
            kind = representation(operand.type)
            argument = _convert_argument(f"inputs[{number - self.first}]", kind)
            lines += [f"const {kind} x{number} = {argument};", f"(void)x{number};"]
        for number in range(len(names), len(self.arguments)):
            operand = program.values[self.graph.inputs[number]]
            if operand.text is not None:
                value = program.constant(self.arguments[number], operand.type)
                lines.append(f"const {representation(operand.type)} x{number} = {program.spelled(value, operand.type)};")
        return lines

    def _check_unions(self, program: Program, names: Sequence[str]) -> list[str]:
        """Return statements that check arguments whose type is a union."""
        lines = []
        for number in range(self.first, len(names)):
            kind = self.graph.inputs[number].type
            if isinstance(kind, types.UnionType) and program.values[self.graph.inputs[number]].text is not None:
                said = format_text(f"{names[number]} must be one of {', '.join(map(str, kind.members))}")
                lines.append(f"if (!({program.type_test(kind, f'x{number}')})) return self.say(unfit, {said});")
        return lines

    @staticmethod
    def _declare_state(states: States, attribute) -> str:
        kind = representation(attribute.type)
        return f"{kind} {attribute.variable} = {_convert_argument(f'self.states[{states.number(attribute.path)}].now', kind)};"

    @staticmethod
    def _store_attributes(program: Program, states: States) -> list[str]:
        """Return statements that store changed attributes after a run. All values are computed before any is stored."""
        made, kept = [], []
        for attribute in program.attributes.values():
            if attribute.is_assigned:
                name = program.name("next")
                made.append(f"const value {name} = run.given_back(any_of({attribute.variable}));")
                kept.append(f"if (!self.states[{states.number(attribute.path)}].keep({name})) return self.no_more();")
        return [*made, *(['if (run.status) return run.at("");'] if made else []), *kept]

    def _check_arguments(self, program: Program, names: Sequence[str], lines: list[str]) -> None:
        for number in range(self.first, len(names)):
            operand = program.values[self.graph.inputs[number]]
            pointer, name = f"inputs[{number - self.first}]", names[number]
            if operand.text is None:
                raise NotExportable(f"an argument of {type(self.arguments[number]).__name__}, which has no form in C")
            lines += _checks(pointer, c_string(name), operand.type, operand.kind, 0)

    # Results

    def _flatten_results(self, program: Program, results: list[Operand]) -> tuple[list[Operand], list[str]]:
        """Return the results, with the elements of a tuple as separate results."""
        if len(results) != 1 or not isinstance(results[0].type, types.TupleType):
            return results, ["result"] if len(results) == 1 else [f"result_{number}" for number in range(len(results))]
        (result,) = results
        kinds = result.type.elements
        names = list(result.type.fields) or [f"result_{number}" for number in range(len(kinds))]
        if result.list is not None:
            return list(result.list), names
        text = program.boxed(result)
        parts = result.kind.parts or [Kind()] * len(kinds)
        made = []
        for position, (kind, known) in enumerate(zip(kinds, parts, strict=True)):
            part = f"{text}.as.list->items[{position}]"
            spelled = unboxed(part, kind)
            made.append(Operand(kind, known, spelled))
        return made, names

    @staticmethod
    def _write_results(program: Program, parts: Sequence[Operand], names: Sequence[str]) -> list[Parameter]:
        found = []
        texts = [program.boxed(each) for each in parts]
        for number, (name, text, part) in enumerate(zip(names, texts, parts, strict=True)):
            _refuse_objects(part.type)
            result = program.name("result")
            program.emit(f"const value {result} = run.given_back({text});", 'if (run.status) return run.at("");')
            program.emit(f"if (const int status = self.deliver(outputs[{number}], {result}, {c_string(name)})) return status;")
            found.append(_describe_result(name, part, program.plan))
        return found


def _convert_argument(value: str, kind: str) -> str:
    """Convert a value of the C interface to a C++ type."""
    numbers = {"int64_t": f"{value}.as.integer", "double": f"{value}.as.real", "bool": f"{value}.as.integer != 0"}
    return numbers.get(kind, f"run.taken_from({value})")


def _describe_result(name: str, part: Operand, plan: Plan) -> Parameter:
    if part.kind.shape is not None and isinstance(part.type, types.TensorType):
        shape = part.kind.shape
        check_tensor(name, shape.dtype, shape.sizes)
        names = {symbol: key for key, symbol in plan.symbols.items() if isinstance(key, str)}
        return Parameter(
            name,
            "tensor",
            shape.dtype,
            tuple(size if isinstance(size, int) else names.get(size, "any") for size in shape.sizes),
        )
    if part.type is types.COMPLEX:
        return Parameter(name, "tensor", complex128, ())
    words = {types.INT: "int", types.FLOAT: "float", types.BOOL: "bool", types.STRING: "string"}
    if part.type in words:
        return Parameter(name, words[part.type])
    if isinstance(part.type, types.ListType | types.DictType | types.TupleType):
        word = "list" if isinstance(part.type, types.ListType) else "dict" if isinstance(part.type, types.DictType) else "tuple"
        return Parameter(name, word, about=str(part.type))
    return Parameter(name, "value", about=str(part.type))


def _refuse_objects(kind: types.Type) -> None:
    if isinstance(kind, types.ClassType | types.EnumType | types.InterfaceType):
        raise NotExportable(f"a result of type {kind}, which has no form in C")
    for part in kind.contained():
        _refuse_objects(part)


def _checks(pointer: str, name: str, kind: types.Type, known: Kind, depth: int) -> list[str]:
    """Return statements that check a caller's value: its kind, recursively, and the dtype, rank and known sizes of tensors."""
    if isinstance(kind, types.OptionalType):
        inner = _checks(pointer, name, kind.element, known, depth)
        return [f"if ({pointer}.kind != RL_CONSTANT(NONE)) {{", *(f"  {line}" for line in inner), "}"]
    if isinstance(kind, types.TensorType):
        if known.shape is None:
            raise NotExportable("an argument with tensors of which the example has none")
        sizes, tensor = known.shape.sizes, f"given_{depth}"
        wanted = f"{c_constant(known.shape.dtype)}, {len(sizes)}"
        lines = [
            f"const tensor* const {tensor} = self.tensor_in({pointer}, {name}, {wanted});",
            f"if (!{tensor}) return unfit;",
        ]
        tests = [f"{tensor}->sizes[{dim}] != {size}" for dim, size in enumerate(sizes) if isinstance(size, int)]
        shown = c_string(f"[{', '.join(str(size) if isinstance(size, int) else 'any' for size in sizes)}]")
        if tests:
            lines.append(f"if ({' || '.join(tests)}) return self.wrong_sizes(*{tensor}, {name}, {shown});")
        return ["{", *(f"  {line}" for line in lines), "}"]
    if isinstance(kind, types.UnionType) and not holds_tensors(kind) and depth == 0:
        return []  # the caller's checks cover it as a whole
    if kind in _CODES:
        return [f"if (!self.has_kind({pointer}, {name}, RL_CONSTANT({_CODES[kind]}), -1)) return unfit;"]
    if isinstance(kind, types.TupleType):
        lines = [f"if (!self.has_kind({pointer}, {name}, RL_CONSTANT(TUPLE), {len(kind.elements)})) return unfit;"]
        parts = known.parts or [Kind()] * len(kind.elements)
        for position, (each, part) in enumerate(zip(kind.elements, parts, strict=True)):
            lines += _checks(f"{pointer}.as.list.items[{position}]", name, each, part, depth + 1)
        return lines
    if isinstance(kind, types.ListType | types.DictType):
        return _check_container(pointer, name, kind, known, depth)
    raise NotExportable(f"an argument of type {kind}, which has no form in C")


def _check_container(pointer: str, name: str, kind: types.Type, known: Kind, depth: int) -> list[str]:
    is_dict = isinstance(kind, types.DictType)
    lines = [f"if (!self.has_kind({pointer}, {name}, RL_CONSTANT({'DICT' if is_dict else 'LIST'}), -1)) return unfit;"]
    position, item = f"i{depth}", None if known.items is None else known.items.root().kind
    at = f"{pointer}.as.list.items[{position}{' + 1' if is_dict else ''}]"
    inner = _checks(at, name, kind.value if is_dict else kind.element, item or Kind(), depth + 1)
    if is_dict:
        lines.append(f'if ({pointer}.as.list.count % 2) return self.say(unfit, "%s must have a value for each key", {name});')
        inner = [*_checks(f"{pointer}.as.list.items[{position}]", name, kind.key, Kind(), depth + 1), *inner]
    step = 2 if is_dict else 1
    return [*lines, f"for (size_t {position} = 0; {position} < {pointer}.as.list.count; {position} += {step}) {{",
            *(f"  {line}" for line in inner), "}"]  # fmt: skip


def _count_tensors(value: object) -> int:
    if isinstance(value, Tensor):
        return 1
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_count_tensors, items))


def _can_cross_interface(value: object) -> bool:
    """Return whether C callers can pass this kind of value."""
    return isinstance(value, Tensor | bool | int | float | str | list | tuple | dict)


def _same_inside(given: object, own: object) -> bool:
    """Return whether the tensors in a container have dtypes and shapes that occur in another."""

    def kinds(value: object) -> set:
        if isinstance(value, Tensor):
            return {(value.dtype, tuple(value.shape))}
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return set().union(*map(kinds, items)) if items else set()

    return kinds(given) <= kinds(own)
