"""Readers and templates as C++: how a form of a scripted method finds its values and builds its results.

In: readers and templates, as `compiler/scripted` has them. Out: C++ expressions over `inputs` and `self.states`, of type
`value`, and statements that come before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.compiler.scripted.readers import Applied, Argument, AsTensor, Held, Item, Known, Reader, Slot
from rushlight.compiler.scripted.scalars import SCALAR_OPERATORS
from rushlight.compiler.scripted.templates import Items, Output, Read, Template, Value
from rushlight.core.tensor import Tensor
from rushlight.deploy.model import tensor_text
from rushlight.deploy.spelling import NotExportable, c_string, constant_text, format_text, integer_text, real_text
from rushlight.deploy.state import Path, States
from rushlight.deploy.weights import Weights
from rushlight.inductor.codegen.cpp.structured_parts import SCALARS
from rushlight.inductor.codegen.cpp.structured_scalars import FAILURES, result_kind, spelled
from rushlight.inductor.structured import BOOL, FLOAT, INT, Scalar, Var

_KINDS = {bool: BOOL, int: INT, float: FLOAT}
_MAKERS = {BOOL: "of_boolean", INT: "of_integer", FLOAT: "of_real"}
_FIELDS = {BOOL: "as.integer != 0", INT: "as.integer", FLOAT: "as.real"}
_SIGNS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*", "div": "/",
    "floordiv": "//", "remainder": "%", "and": "and", "or": "or",
}  # fmt: skip
_DTYPES = {bool: "BOOLEAN", int: "INT64", float: "FLOAT64"}


class Values:
    """Writes the values of one form as C++. `lines` are the statements so far; `read` returns a reader's value in the
    example."""

    def __init__(self, states: States, weights: Weights, arguments: Sequence[object], names: Sequence[str]):
        """`names` are the names of the arguments that callers pass, preceded by an empty one for the module itself. Any further
        arguments are values that are the same in every call."""
        self.first = 1 if names and not names[0] else 0  # the index of the first argument that callers pass
        self.states = states
        self.weights = weights
        self.arguments = arguments
        self.names = names
        self.lines: list[str] = []
        self.temporaries = 0
        self._made: dict[int, str] = {}

    def temporary(self, word: str) -> str:
        """Return a fresh C++ name."""
        self.temporaries += 1
        return f"{word}_{self.temporaries}"

    # Readers

    def pointer(self, reader: Reader) -> str:
        """Return the address of a reader's value: `const value*`, never null."""
        if isinstance(reader, Argument) and reader.index < len(self.names):
            return f"&inputs[{reader.index - self.first}]"
        if isinstance(reader, Slot):
            return f"&self.states[{self.states.number((*self.owner(reader.owner), reader.name))}].now"
        if isinstance(reader, Item):
            name = self.temporary("item")
            owner, key = self.pointer(reader.owner), constant_text(reader.key)
            self.lines.append(f"const value* const {name} = part_of({owner}, {key});")
            said = format_text(f"{self.text(reader.owner)} has other items than the model was exported for")
            self.lines.append(f"if (!{name}) return self.say(unfit, {said});")
            return name
        name = self.temporary("found")
        self.lines.append(f"const value {name} = {self.made(reader)};")
        return f"&{name}"

    def made(self, reader: Reader) -> str:
        """Return a computed value."""
        if isinstance(reader, Known):
            return constant_text(reader.value)
        if isinstance(reader, Argument):
            return constant_text(self.arguments[reader.index])
        if isinstance(reader, AsTensor):
            kind = _KINDS[reader.type]
            name = self.temporary("number")
            self.lines.append(f"const {SCALARS[kind.name]} {name} = {self.number(reader.number, kind)};")
            held = self.temporary("held")
            self.lines.append(
                f"const tensor {held} = tensor_of((void*)&{name}, RL_CONSTANT({_DTYPES[reader.type]}), 0, nullptr, nullptr);"
            )
            return f"of_tensor({held})"
        if isinstance(reader, Applied):
            kind = _KINDS.get(type(reader(self.arguments)))
            if kind is None:
                raise NotExportable(f"a value that {reader.operator.schema.name} decides, which is no number")
            return f"{_MAKERS[kind]}({self.number(reader, kind)})"
        return f"*{self.pointer(reader)}"

    def number(self, reader: Reader, kind: Scalar) -> str:
        """Return a reader's value as a C++ number."""
        if isinstance(reader, Applied):
            return self._evaluate_operator(reader)
        if isinstance(reader, Known):
            value = reader.value
            return (
                real_text(value)
                if isinstance(value, float)
                else str(value).lower()
                if isinstance(value, bool)
                else integer_text(value)
            )
        return f"({self.pointer(reader)})->{_FIELDS[kind]}"

    def _evaluate_operator(self, reader: Applied) -> str:
        """Return an operator on numbers, folded for constants."""
        if any(isinstance(each, Held) for each in reader.arguments):
            value = reader(self.arguments)
            return self.number(Known(value), _KINDS[type(value)])
        kinds = [_KINDS.get(type(each(self.arguments))) for each in reader.arguments]
        if None in kinds:
            raise NotExportable(f"a decision by {reader.operator.schema.name} of what is no number")
        operands = [Var(self.temporary("operand"), kind) for kind in kinds]
        for var, each in zip(operands, reader.arguments, strict=True):
            self.lines.append(f"const {SCALARS[var.kind.name]} {var} = {self.number(each, var.kind)};")
        name = reader.operator.schema.name
        op = SCALAR_OPERATORS.get(name)
        op = op(operands) if callable(op) else op
        if op is None:
            raise NotExportable(f"{name} on numbers")

        def text(operand: Var, wanted: Scalar | None) -> str:
            return f"({SCALARS[wanted.name]}){operand}" if wanted is not None and operand.kind != wanted else str(operand)

        value, stops = spelled(op, operands, text)
        if stops is not None:
            said = c_string(FAILURES[op])
            self.lines.append(f"if ({stops}) return self.say(failed, {said});")
        result = self.temporary("result")
        self.lines.append(f"const {SCALARS[result_kind(op, operands).name]} {result} = {value};")
        return result

    def owner(self, reader: Reader) -> Path:
        """Return the path of an object below the module. NotExportable if it may differ between calls."""
        if isinstance(reader, Held) and all(isinstance(each, str) for each in reader.path[1:]):
            return tuple(reader.path[1:])
        if isinstance(reader, Argument) and reader.index < self.first:
            return ()
        raise NotExportable("attributes of an object that is an argument, or that the code replaces")

    def text(self, reader: Reader) -> str:
        """Return a reader's name in messages."""
        if isinstance(reader, Argument):
            return self.names[reader.index] if reader.index < len(self.names) else f"argument {reader.index}"
        if isinstance(reader, Slot):
            return f"the state {'.'.join((*self.owner(reader.owner), reader.name))}"
        if isinstance(reader, Item):
            return f"{self.text(reader.owner)}[{reader.key!r}]"
        if isinstance(reader, Known):
            return repr(reader.value)
        if isinstance(reader, AsTensor):
            return self.text(reader.number)
        if isinstance(reader, Applied):
            name, parts = reader.operator.schema.name.partition("::")[2].strip("_"), list(map(self.text, reader.arguments))
            sign = _SIGNS.get(name)
            return f"({parts[0]} {sign} {parts[1]})" if sign and len(parts) == 2 else f"{name}({', '.join(parts)})"
        return "a constant"

    # Checks

    def check_value(self, reader: Reader, value: object) -> None:
        """Restrict the form to calls in which a reader gives this value."""
        name = self.text(reader)
        if isinstance(reader, Applied | AsTensor):
            kind = _KINDS[type(value)]
            test = f"same_number({self.number(reader, kind)}, {self.number(Known(value), kind)})"
        else:
            test = f"is_same(*{self.pointer(reader)}, {constant_text(value)})"
        said = format_text(f"the model is exported for other values: {name} is {value!r} there")
        self.lines.append(f"if (!{test}) return self.say(unfit, {said});")

    def check_kind(self, reader: Reader, kind: str, count: int | None) -> None:
        """Restrict the form to calls in which a reader gives a list, tuple or dict with this many items."""
        name = c_string(self.text(reader))
        wanted = f"RL_CONSTANT({kind}), {-1 if count is None else count}"
        self.lines.append(f"if (!self.has_kind(*{self.pointer(reader)}, {name}, {wanted})) return unfit;")

    # Templates

    def template(self, template: Template, output: Callable[[int], str]) -> str:
        """Return a value built from native outputs and read values."""
        if isinstance(template, Output):
            return output(template.place)
        if isinstance(template, Read):
            return self._copy_to_run_memory(f"*{self.pointer(template.reader)}")
        if isinstance(template, Value):
            if isinstance(template.value, Tensor):
                return self.constant_tensor(template.value)
            return constant_text(template.value)
        return self._build_items(template, output)

    def constant_tensor(self, tensor: Tensor) -> str:
        """Return a tensor of the weights."""
        return self._copy_to_run_memory(tensor_text(tensor, self.weights))

    def _copy_to_run_memory(self, text: str) -> str:
        """Copy a value into the run's own memory; return the copy's name."""
        name = self.temporary("copied")
        self.lines.append(f"value {name};")
        self.lines.append(f"if (!copy_value({name}, {text}, self.run_memory())) return self.no_more();")
        return name

    def _build_items(self, template: Items, output: Callable[[int], str]) -> str:
        kinds = {list: "LIST", dict: "DICT"}
        kind = kinds.get(template.kind) or (
            "TUPLE" if isinstance(template.kind, type) and issubclass(template.kind, tuple) else None
        )
        if kind is None:
            raise NotExportable("a result that is an object of a class")
        if template.number in self._made:
            return self._made[template.number]
        parts: list[str] = []
        for index, item in enumerate(template.items):
            if template.keys is not None:
                parts.append(constant_text(template.keys[index]))
            parts.append(self.template(item, output))
        name = self.temporary("items")
        self.lines.append(f"value* const {name} = (value*)self.take({max(len(parts), 1)} * (long)sizeof(value));")
        self.lines.append(f"if (!{name}) return self.no_more();")
        self.lines += [f"{name}[{position}] = {part};" for position, part in enumerate(parts)]
        made = f"of_items(RL_CONSTANT({kind}), {name}, {len(parts)})"
        self._made[template.number] = made
        return made
