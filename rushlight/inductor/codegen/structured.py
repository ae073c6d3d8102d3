"""A structured program as one C++ translation unit.

`rushlight_entry(void** buffers)` runs it: `buffers[0]` are cells of 64 bits, those of the inputs and then those of the outputs,
`buffers[1]` is the arena. Numbers lie in their cells, tensors where the cells point; a list comes and goes as a length with its
elements behind it. The status is 1 where the program gave up. Each straight-line piece is a namespace with what inductor writes
for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.core.dtype import float64, int64
from rushlight.inductor.codegen.types import c_type, literal
from rushlight.inductor.ir import Buffer
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    INT,
    Branch,
    Compute,
    Element,
    ListOf,
    Literal,
    Operand,
    Read,
    Region,
    Repeat,
    Run,
    Scalar,
    Statement,
    Stop,
    StructuredProgram,
    TensorOf,
    Var,
)

_SCALARS = {"int": "int64_t", "float": "double", "bool": "bool"}
_ALIGNMENT = 64
_NOT_ZERO = "{1} == 0"  # of ints; floats give what IEEE says
_SHIFT = "{1} < 0 || {1} > 63"
_UNORDERED = "!({0} >= -9223372036854775808.0 && {0} < 9223372036854775808.0)"

# op: (C++ of the operands, what makes the program stop instead or None, what the result is: None for the operands' own type)
OPERATIONS: dict[str, tuple[str, str | None, Scalar | None]] = {
    "add": ("rl::program::add({0}, {1})", None, None), "sub": ("rl::program::sub({0}, {1})", None, None),
    "mul": ("rl::program::mul({0}, {1})", None, None), "neg": ("rl::program::neg({0})", None, None),
    "abs": ("rl::program::absolute({0})", None, None),
    "floordiv": ("rl::program::floordiv({0}, {1})", _NOT_ZERO, None),
    "remainder": ("rl::program::remainder({0}, {1})", _NOT_ZERO, None),
    "div": ("(double){0} / (double){1}", None, FLOAT),
    "min": ("rl::program::least({0}, {1})", None, None), "max": ("rl::program::most({0}, {1})", None, None),
    **{name: (f"{{0}} {sign} {{1}}", None, BOOL) for name, sign in
       (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    "not": ("!{0}", None, BOOL), "and": ("{0} & {1}", None, None), "or": ("{0} | {1}", None, None),
    "xor": ("{0} ^ {1}", None, None), "invert": ("~{0}", None, None),
    "lshift": ("(int64_t)((uint64_t){0} << {1})", _SHIFT, None), "rshift": ("{0} >> {1}", _SHIFT, None),
    "to_float": ("(double){0}", None, FLOAT), "to_int": ("(int64_t){0}", None, INT), "to_bool": ("{0} != 0", None, BOOL),
    "truncate": ("(int64_t){0}", _UNORDERED, INT), "floor": ("(int64_t)floor({0})", _UNORDERED, INT),
    "ceil": ("(int64_t)ceil({0})", _UNORDERED, INT),
    "range_length": ("rl::program::range_length({0}, {1}, {2})", "{2} == 0", INT),
    "derive_index": ("rl::program::add({1}, rl::program::mul({0}, {2}))", None, INT),
    "copy": ("{0}", None, None),
    "sqrt": ("({0} < 0 ? __builtin_nan(\"\") : sqrt({0}))", None, FLOAT),
    **{name: (f"{name}({{0}})", None, FLOAT) for name in
       ("sin", "cos", "tan", "tanh", "atan", "asinh", "fabs", "erf", "erfc")},
    **{name: (f"{name}({{0}})", "!({0} < 700 && {0} > -700)", FLOAT) for name in ("exp", "expm1", "sinh", "cosh")},
    "pow": ("pow((double){0}, (double){1})", None, FLOAT),
}  # fmt: skip


def result_kind(op: str, operands: Sequence[Operand]) -> Scalar:
    """The type of an operation's result: its own, or float where an operand is one, or that of the operands."""
    fixed = OPERATIONS[op][2]
    if fixed is not None:
        return fixed
    kinds = {operand.kind for operand in operands}
    return FLOAT if FLOAT in kinds else INT if INT in kinds else BOOL


class StructuredWriter:
    """Writes the text of one program."""

    def __init__(self, program: StructuredProgram):
        self.program = program
        self.arena = 0
        self.temporaries = 0

    def write(self) -> str:
        """The translation unit."""
        regions = [self._region(number, region) for number, region in enumerate(self.program.regions)]
        inputs = list(self._inputs())
        work = [*self._prepare(), *self._block(self.program.body), *self._outputs()]
        body = [*inputs, f"char* const scratch = arena + {self.arena}L;", "(void)scratch;", *work]
        text = "\n".join(f"  {line}" for line in body)
        entry = f'extern "C" int rushlight_entry(void** buffers) {{\n{text}\n}}'
        scratch = [f"region_{number}::arena_bytes()" for number in range(len(regions))]
        total = f"{self.arena}L + rl::largest(0L{''.join(f', {each}' for each in scratch)})"
        size = f'extern "C" long rushlight_arena_bytes() {{ return {total}; }}'
        return "\n\n".join([self._includes(), *regions, size, entry]) + "\n"

    def _includes(self) -> str:
        found: dict[str, None] = {"#include <rushlight/vec.h>": None, "#include <rushlight/parallel.h>": None}
        for region in self.program.regions:
            lines = region.program.source.splitlines()
            found.update(dict.fromkeys(line for line in lines if line.startswith("#include")))
        return "\n".join([*found, "#include <rushlight/program.h>"])

    def _region(self, number: int, region: Region) -> str:
        """A piece's functions in a namespace of its own."""
        lines = [line for line in region.program.source.splitlines() if line and not line.startswith("#include")]
        text = "\n".join(lines).replace('extern "C" ', "static ").replace("static void kernel_", "static inline void kernel_")
        for name in ("entry", "prepare", "arena_bytes"):
            text = text.replace(f"rushlight_{name}(", f"{name}(")
        return f"namespace region_{number} {{\n{text}\n}}"

    def _allocate(self, nbytes: int) -> str:
        """The address of a new part of the arena."""
        offset = self.arena
        self.arena += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return f"(arena + {offset}L)"

    # Inputs, constants, outputs

    def _inputs(self) -> Iterator[str]:
        yield "int64_t* cells = (int64_t*)buffers[0];"
        yield "char* const arena = (char*)buffers[1];"
        yield "rl::program::heap memory;"
        yield "(void)cells; (void)arena;"
        for number, var in enumerate(self.program.inputs):
            yield from self._input(var, f"cells[{number}]")

    def _input(self, var: Var, cell: str) -> Iterator[str]:
        if isinstance(var.kind, ListOf):
            width = _width(var.kind.element)
            yield f"rl::program::list* {var} = rl::program::received(memory, {width}, (const int64_t*){cell});"
            yield f"if (!{var}) return 1;"
        elif isinstance(var.kind, TensorOf):
            kind = c_type(var.kind.dtype)
            yield f"{kind}* {var} = ({kind}*){cell};"
        elif var.kind == FLOAT:
            yield f"const double {var} = rl::program::from_bits({cell});"
        else:
            yield f"const {_SCALARS[var.kind.name]} {var} = {cell}{' != 0' if var.kind == BOOL else ''};"

    def _prepare(self) -> Iterator[str]:
        """What pieces make of the inputs that never change."""
        for number, region in enumerate(self.program.regions):
            program = region.program
            sizes = {buffer.name: buffer.layout.numel * buffer.layout.dtype.itemsize for buffer in program.folded}
            sizes |= {operand.name: 4 * operand.depth * (operand.columns + 64) for operand in program.packed}
            addresses = [f"(void*){var}" for var in region.constants]
            addresses += [f"(void*){self._allocate(int(nbytes))}" for nbytes in sizes.values()]
            yield f"void* kept_{number}[] = {{{', '.join([*addresses, 'nullptr'])}}};"
            if sizes:
                yield f"region_{number}::prepare(kept_{number});"
            else:
                yield f"(void)kept_{number};"

    def _outputs(self) -> Iterator[str]:
        first = len(self.program.inputs)
        for number, operand in enumerate(self.program.outputs):
            cell = f"cells[{first + number}]"
            kind = operand.kind
            if isinstance(kind, TensorOf):
                yield from self._not_an_input(operand)
                yield f"memcpy((void*){cell}, {operand}, {kind.nbytes}L);"
            elif isinstance(kind, ListOf):
                yield f"{cell} = (int64_t)rl::program::returned({operand});"
                yield f"if (!{cell}) return 1;"
            elif kind == FLOAT:
                yield f"{cell} = rl::program::to_bits({self._text(operand)});"
            else:
                yield f"{cell} = (int64_t){self._text(operand)};"
        yield "return 0;"

    def _not_an_input(self, output: Var) -> Iterator[str]:
        """An output that shares memory with an input can't be a copy."""
        for var in self.program.inputs:
            if isinstance(var.kind, TensorOf) and var.kind.nbytes:
                at, first = f"(const char*){output}", f"(const char*){var}"
                yield f"if ({at} >= {first} && {at} < {first} + {var.kind.nbytes}L) return 1;"

    # Statements

    def _block(self, statements: Sequence[Statement]) -> Iterator[str]:
        for statement in statements:
            yield from _WRITERS[type(statement)](self, statement)

    def _indented(self, statements: Sequence[Statement]) -> Iterator[str]:
        return (f"  {line}" for line in self._block(statements))

    def _text(self, operand: Operand, wanted: Scalar | None = None) -> str:
        if isinstance(operand, Literal):
            value = operand.value
            if wanted == FLOAT or isinstance(value, float):
                return literal(float(value), float64)
            return ("true" if value else "false") if isinstance(value, bool) else literal(value, int64)
        needs_cast = wanted is not None and isinstance(operand.kind, Scalar) and operand.kind != wanted
        return f"({_SCALARS[wanted.name]}){operand}" if needs_cast else str(operand)

    def _compute(self, statement: Compute) -> Iterator[str]:
        special = _LISTS.get(statement.op)
        if special is not None:
            yield from special(self, statement)
            return
        template, stops, fixed = OPERATIONS[statement.op]
        kinds = {operand.kind for operand in statement.operands}
        wanted = FLOAT if FLOAT in kinds and len(kinds) > 1 else INT if INT in kinds and len(kinds) > 1 else None
        texts = [self._text(operand, wanted) for operand in statement.operands]
        if stops is not None and not (stops is _NOT_ZERO and FLOAT in kinds):
            yield f"if ({stops.format(*texts)}) return 1;"
        yield f"{self._target(statement.target)} = {template.format(*texts)};"

    def _target(self, var: Var) -> str:
        return f"const {_SCALARS[var.kind.name]} {var}"

    def _element(self, statement: Element) -> Iterator[str]:
        source, target = statement.source.kind, statement.target
        kind = c_type(source.dtype)
        at = self._temporary("at")
        yield f"const int64_t {at} = rl::program::position({self._text(statement.index)}, {source.size[0]}L);"
        yield f"if ({at} < 0) return 1;"
        yield f"{kind}* {target} = {statement.source} + {at} * {target.kind.numel}L;"

    def _read(self, statement: Read) -> Iterator[str]:
        target = statement.target
        yield f"{self._target(target)} = ({_SCALARS[target.kind.name]})*{statement.source};"

    def _temporary(self, name: str) -> str:
        self.temporaries += 1
        return f"{name}_{self.temporaries}"

    def _run(self, statement: Run) -> Iterator[str]:
        region = self.program.regions[statement.region]
        addresses = []
        for operand in statement.inputs:
            if isinstance(operand.kind, TensorOf):
                addresses.append(f"(void*){operand}")
                continue
            name = self._temporary("scalar")
            yield f"{_SCALARS[operand.kind.name]} {name} = {self._text(operand)};"
            addresses.append(f"(void*)&{name}")
        program = region.program
        kept = len(region.constants) + len(program.folded) + len(program.packed)
        addresses += [f"kept_{statement.region}[{index}]" for index in range(kept)]
        places = {name: self._allocate(_bytes_of(program.groups, name)) for name in program.outputs}
        addresses += [f"(void*){place}" for place in places.values()]
        slots = self._temporary("slots")
        yield f"void* {slots}[] = {{{', '.join([*addresses, '(void*)scratch'])}}};"
        yield f"if (region_{statement.region}::entry({slots})) return 1;"
        for var, name in zip(statement.outputs, region.outputs, strict=True):
            kind = c_type(var.kind.dtype)
            yield f"{kind}* {var} = ({kind}*){places[name]};"

    def _stop(self, statement: Stop) -> Iterator[str]:
        yield "return 1;"

    def _branch(self, statement: Branch) -> Iterator[str]:
        for var, _, _ in statement.results:
            yield f"{_declared(var)} {var}{' = nullptr' if not isinstance(var.kind, Scalar) else ' = 0'};"
        yield f"if ({self._text(statement.condition)}) {{"
        yield from self._indented(statement.then)
        yield from (f"  {line}" for line in self._assignments([(var, then) for var, then, _ in statement.results]))
        yield "} else {"
        yield from self._indented(statement.otherwise)
        yield from (f"  {line}" for line in self._assignments([(var, other) for var, _, other in statement.results]))
        yield "}"

    def _assignments(self, pairs: list[tuple[Var, Operand | None]]) -> Iterator[str]:
        for var, operand in pairs:
            if operand is not None:
                yield f"{var} = {self._text(operand, var.kind if isinstance(var.kind, Scalar) else None)};"

    def _repeat(self, statement: Repeat) -> Iterator[str]:
        going, round_ = self._temporary("going"), self._temporary("round")
        for var, initial, _ in statement.carried:
            yield f"{_declared(var)} {var} = {self._text(initial, var.kind if isinstance(var.kind, Scalar) else None)};"
        yield f"bool {going} = {self._text(statement.condition)};"
        yield f"for (int64_t {round_} = 0; {round_} < {self._text(statement.limit)} && {going}; ++{round_}) {{"
        yield f"  const int64_t {statement.counter} = {round_};"
        yield f"  (void){statement.counter};"
        yield from self._indented(statement.body)
        yield from (f"  {line}" for line in self._carry(statement))
        yield f"  {going} = {self._text(statement.next_condition)};"
        yield "}"

    def _carry(self, statement: Repeat) -> Iterator[str]:
        """Assign what is carried, all at once. Tensors are copied: the next round writes again where this one has written.
        Lists stay where they are."""
        changed = [(var, following) for var, _, following in statement.carried if var is not following]
        numbers = [pair for pair in changed if not isinstance(pair[0].kind, TensorOf)]
        fresh = _made_by_runs(statement.body)
        names = []
        for var, following in numbers:
            name = self._temporary("next")
            names.append(name)
            wanted = var.kind if isinstance(var.kind, Scalar) else None
            yield f"{_declared(var)} const {name} = {self._text(following, wanted)};"
        tensors = [
            (var, following, self._allocate(var.kind.nbytes))
            for var, following in changed if isinstance(var.kind, TensorOf)
        ]  # fmt: skip
        staged = {}
        for var, following, _ in tensors:
            if following not in fresh and len(tensors) > 1:
                staged[var] = self._allocate(var.kind.nbytes)
                yield f"memmove({staged[var]}, {following}, {var.kind.nbytes}L);"
        for var, following, place in tensors:
            source = staged.get(var, following)
            yield f"memmove({place}, {source}, {var.kind.nbytes}L);"
            yield f"{var} = ({c_type(var.kind.dtype)}*){place};"
        for (var, _), name in zip(numbers, names, strict=True):
            yield f"{var} = {name};"

    # Lists

    def _list(self, statement: Compute) -> Iterator[str]:
        target, element = statement.target, statement.target.kind.element
        yield f"rl::program::list* {target} = memory.make({_width(element)}, {max(4, len(statement.operands))});"
        yield f"if (!{target}) return 1;"
        for operand in statement.operands:
            yield from self._append(Compute(None, "append", [target, operand]))

    def _append(self, statement: Compute) -> Iterator[str]:
        values, item = statement.operands
        place = self._temporary("place")
        yield f"char* {place} = rl::program::append({values});"
        yield f"if (!{place}) return 1;"
        yield self._store(place, values.kind.element, item)

    def _store(self, place: str, element: Scalar | TensorOf, item: Operand) -> str:
        if isinstance(element, TensorOf):
            return f"memcpy({place}, {item}, {element.nbytes}L);"
        return f"*({_SCALARS[element.name]}*){place} = {self._text(item, element)};"

    def _at(self, values: Var, index: Operand) -> tuple[list[str], str]:
        """The lines that find an element, and its address."""
        at = self._temporary("at")
        found = f"rl::program::position({self._text(index)}, {values}->length)"
        lines = [f"const int64_t {at} = {found};", f"if ({at} < 0) return 1;"]
        return lines, f"({values}->data + {at} * {_width(values.kind.element)})"

    def _getitem(self, statement: Compute) -> Iterator[str]:
        values, index = statement.operands
        lines, place = self._at(values, index)
        yield from lines
        yield f"{self._target(statement.target)} = *({_SCALARS[values.kind.element.name]}*){place};"

    def _setitem(self, statement: Compute) -> Iterator[str]:
        values, index, item = statement.operands
        lines, place = self._at(values, index)
        yield from lines
        yield self._store(place, values.kind.element, item)

    def _length(self, statement: Compute) -> Iterator[str]:
        yield f"const int64_t {statement.target} = {statement.operands[0]}->length;"

    def _clear(self, statement: Compute) -> Iterator[str]:
        yield f"{statement.operands[0]}->length = 0;"

    def _pop(self, statement: Compute) -> Iterator[str]:
        values, index = statement.operands
        lines, place = self._at(values, index)
        yield from lines
        element = values.kind.element
        yield f"{self._target(statement.target)} = *({_SCALARS[element.name]}*){place};"
        end = f"({values}->data + {values}->length * {_width(element)})"
        yield f"memmove({place}, {place} + {_width(element)}, (size_t)({end} - {place} - {_width(element)}));"
        yield f"--{values}->length;"

    def _multiplied(self, statement: Compute) -> Iterator[str]:
        values, count = statement.operands
        yield f"rl::program::list* {statement.target} = rl::program::repeat(memory, {values}, {self._text(count)});"
        yield f"if (!{statement.target}) return 1;"

    def _joined(self, statement: Compute) -> Iterator[str]:
        first, second = statement.operands
        yield f"rl::program::list* {statement.target} = rl::program::joined(memory, {first}, {second});"
        yield f"if (!{statement.target}) return 1;"

    def _stacked(self, statement: Compute) -> Iterator[str]:
        target, (values, count) = statement.target, statement.operands
        kind = c_type(target.kind.dtype)
        yield f"if ({values}->length != {self._text(count)}) return 1;"
        place = self._allocate(target.kind.nbytes)
        yield f"memcpy({place}, {values}->data, {target.kind.nbytes}L);"
        yield f"{kind}* {target} = ({kind}*){place};"


_WRITERS = {
    Compute: StructuredWriter._compute, Run: StructuredWriter._run, Element: StructuredWriter._element,
    Read: StructuredWriter._read, Stop: StructuredWriter._stop, Branch: StructuredWriter._branch,
    Repeat: StructuredWriter._repeat,
}  # fmt: skip
_LISTS = {
    "list": StructuredWriter._list, "append": StructuredWriter._append, "getitem": StructuredWriter._getitem,
    "setitem": StructuredWriter._setitem, "len": StructuredWriter._length, "pop": StructuredWriter._pop,
    "repeat": StructuredWriter._multiplied, "concat": StructuredWriter._joined, "stacked": StructuredWriter._stacked,
    "clear": StructuredWriter._clear,
}  # fmt: skip


def _declared(var: Var) -> str:
    if isinstance(var.kind, TensorOf):
        return f"{c_type(var.kind.dtype)}*"
    return "rl::program::list*" if isinstance(var.kind, ListOf) else _SCALARS[var.kind.name]


def _width(element: Scalar | TensorOf) -> int:
    return element.nbytes if isinstance(element, TensorOf) else 1 if element == BOOL else 8


def _bytes_of(groups: Sequence, name: str) -> int:
    """The size of an output; one without elements is written by no group."""
    members: list[Buffer] = [member for group in groups for member in group.members if member.name == name]
    return int(members[0].layout.numel * members[0].layout.dtype.itemsize) if members else 0


def _made_by_runs(body: Sequence[Statement]) -> set[Var]:
    """The tensors that pieces of a loop's body, not of blocks inside it, write anew in each round."""
    return {var for statement in body if isinstance(statement, Run) for var in statement.outputs}
