"""Writes values of the loops IR as C++ statements over a lane (see include/rushlight/vec.h)."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.algebra import Expr, Var, to_cpp
from rushlight.core.dtype import bool_, dtype
from rushlight.inductor.codegen.cpp.types import c_type, compute_type, literal, size_operand, size_text
from rushlight.inductor.ir import (
    REPORTING,
    Call,
    Constant,
    IndexValue,
    Indirect,
    Load,
    Masked,
    RandomWord,
    Search,
    Value,
    substitute,
    walk,
)
from rushlight.inductor.sizes import Size, stride_along

SCALAR = "rl::scalar_lane{}"
INFIX = {"add": "+", "sub": "-", "mul": "*"}


def needs_scalar(body: Value, column: Var) -> bool:
    """Return whether a body cannot be vectorized along `column`, because of a load without a constant stride or a mask that
    varies along it."""
    return needs_branches(body, column) or any(
        isinstance(node, Load) and stride_along(node.index, column) is None for node in walk(body)
    )


def needs_branches(body: Value, column: Var) -> bool:
    """Return whether a body needs element-by-element branches, for reasons other than loads without a stride."""
    positions = looked_up(body, column)
    for node in walk(body):
        if isinstance(node, IndexValue) and (stride_along(node.index, column) is None or _contains(node.index, positions)):
            return True
        is_looked_up = isinstance(node, Load) and _contains(node.index, positions)
        if is_looked_up and _split_linear_index(node.index, positions, column) is None:
            return True
        if isinstance(node, Masked) and depends_on(node.mask, column):
            return True
        if isinstance(node, Search) and (node.row.index.contains(column) or _contains(node.row.index, positions)):
            return True
    return False


def looked_up(body: Value, column: Var) -> set[Var]:
    """Return the variables bound to positions that are read from memory and vary along `column`."""
    reads = [node for node in walk(body) if isinstance(node, Indirect)]
    found: set[Var] = set()
    while True:
        more = {node.variable for node in reads if depends_on(node.index, column) or _is_indexed_by(node.index, found)}
        if more <= found:
            return found
        found |= more


def _is_indexed_by(value: Value, variables: set[Var]) -> bool:
    return any(isinstance(node, Load | IndexValue) and _contains(node.index, variables) for node in walk(value))


def _contains(index: Expr, variables: set[Var]) -> bool:
    return any(index.contains(variable) for variable in variables)


def _split_linear_index(index: Expr, variables: set[Var], column: Var) -> tuple[Expr, Size, dict[Var, Size]] | None:
    """Split an index into a first position, a stride along `column`, and a stride along each variable; None if it is not
    linear."""
    own = [variable for variable in variables if index.contains(variable)]
    steps = {variable: stride_along(index, variable) for variable in own}
    first = index.substitute(dict.fromkeys(own, 0))
    stride = stride_along(first, column)
    if stride is None or None in steps.values():
        return None
    return first, stride, steps


def depends_on(value: Value, column: Var) -> bool:
    """Return whether a value varies along `column`."""
    return any(isinstance(node, Load | IndexValue) and node.index.contains(column) for node in walk(value))


class StatementWriter:
    """Writes values as `const auto tmpN = ...;` lines. Each text is written once per scope.

    `local` maps buffers to names of available elements (`value` in an epilogue, a temporary), and `row_values` to names of
    scalars for the whole row. Names start with `prefix`. `stream(seed, offset)` names a stream of random words. If `gathers` is
    true, vectors gather the elements of loads that have no stride. `captured`, if it is a dict, collects the names and texts of
    elements that are the same for the whole kernel: the caller loads them once, before the loop. Stores of bytes may alias
    everything, so compilers would load them again at each element.
    """

    def __init__(self, column: Var, pointer: Callable[[str], str], element_type: Callable[[str], dtype],
                 stream: Callable[[Load, int], str], lane: str = "lane", prefix: str = "tmp"):  # fmt: skip
        self.column = column
        self.pointer = pointer
        self.element_type = element_type
        self.stream = stream
        self.lane = lane
        self.prefix = prefix
        self.lines: list[str] = []
        self.local: dict[str, str] = {}
        self.row_values: dict[str, str] = {}
        self.gathers = False
        self.captured: dict[str, str] | None = None
        self.looked_up: set[Var] = set()  # variables read from index tables, with a value per lane
        self._texts: dict[str, str] = {}
        self._nodes: dict[tuple[int, str], str] = {}
        self._kept: list[Value] = []
        self._uniform: dict[int, bool] = {}
        self._count = 0
        self._indent = ""

    def write(self, value: Value) -> str:
        """Write a value; returns its name."""
        key = (id(value), self.lane)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._write(value)
            self._kept.append(value)
        return found

    def keep(self, value: Value, name: str) -> None:
        """Use an existing name for a value."""
        self._nodes[id(value), self.lane] = name
        self._kept.append(value)

    def bind(self, text: str) -> str:
        """Bind an expression to a name."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = self._fresh_name()
            self.lines.append(f"{self._indent}const auto {found} = {text};")
        return found

    def _fresh_name(self) -> str:
        self._count += 1
        return f"{self.prefix}{self._count - 1}"

    def _write(self, value: Value) -> str:
        if isinstance(value, Load):
            return self._write_load(value)
        if isinstance(value, Constant):
            if self.lane == SCALAR:
                return literal(value.number, value.dtype)
            return self.bind(f"{self.lane}.broadcast({literal(value.number, value.dtype)})")
        if isinstance(value, RandomWord):
            return self._write_random_word(value)
        if isinstance(value, IndexValue):
            return self._write_index(value)
        if isinstance(value, Indirect):
            return self._write_indirect(value)
        if isinstance(value, Masked):
            return self._emit_masked(value)
        if isinstance(value, Search):
            return self._write_search(value)
        return self._write_call(value)

    def _write_scalar(self, value: Value) -> str:
        """Write a value that all lanes share, as a scalar."""
        outer, self.lane = self.lane, SCALAR
        found = self.write(value)
        self.lane = outer
        return found

    def _write_load(self, value: Load) -> str:
        if value.buffer in self.row_values:
            scalar = self.row_values[value.buffer]
            return scalar if self.lane == SCALAR else self.bind(f"{self.lane}.broadcast({scalar})")
        local = self.local.get(value.buffer)
        if local is not None:
            return local
        if self.lane != SCALAR and _contains(value.index, self.looked_up):
            found = _split_linear_index(value.index, self.looked_up, self.column)
            if found is not None:  # without strides, lanes are scalars, so the element can be used directly
                return self._gather(value.buffer, *found)
        stride = stride_along(value.index, self.column)
        at = f"{self.pointer(value.buffer)} + {to_cpp(value.index)}"
        if stride == 0:
            return self.bind(f"{self.lane}.broadcast({self._load_scalar(value, at)})")
        if stride is None and self.gathers and self.lane != SCALAR:
            column = self.column.name
            return self.bind(f"{self.lane}.load_at({column}, [&](long {column}) {{ return {at}; }})")
        if stride in (1, None):
            return self.bind(f"{self.lane}.load({at})")
        if stride == -1:
            return self.bind(f"{self.lane}.load_reversed({at})")
        return self.bind(f"{self.lane}.load_strided({at}, {size_text(stride)})")

    def _load_scalar(self, value: Load, at: str) -> str:
        """Return an element that all lanes share: a captured one's name, or its load."""
        text = f"rl::scalar_lane{{}}.load({at})"
        if self.captured is None or self._indent or value.index.free_variables():
            return text
        return self.captured.setdefault(text, f"captured{len(self.captured)}")

    def _write_index(self, value: IndexValue) -> str:
        stride = stride_along(value.index, self.column)
        text = to_cpp(value.index)
        if stride == 0 or self.lane == SCALAR:
            return self.bind(f"{self.lane}.broadcast((int64_t)({text}))")
        if stride in (1, None):
            return self.bind(f"{self.lane}.index({text})")
        return self.bind(f"{self.lane}.index({text}, {size_text(stride)})")

    def _write_random_word(self, value: RandomWord) -> str:
        stride, position = stride_along(value.index, self.column), to_cpp(value.index)
        draw = f"{self.stream(value.seed, value.offset)}.{value.name}"
        if self.lane == SCALAR:
            return self.bind(f"{draw}({SCALAR}, {position})")
        if stride == 0:
            return self.bind(f"{self.lane}.broadcast({draw}({SCALAR}, {position}))")
        return self.bind(f"{draw}({self.lane}, {position}" + (")" if stride in (1, None) else f", {size_text(stride)})"))

    def _write_indirect(self, value: Indirect) -> str:
        wrap = "true" if value.wrap else "false"
        changes = depends_on(value.index, self.column) or _is_indexed_by(value.index, self.looked_up)
        size = f"{size_text(value.size)}, status"
        if changes and self.lane != SCALAR:
            position = Var(self.bind(f"rl::checked_places<{wrap}>({self.write(value.index)}, {size})"), value.size)
            self.looked_up.add(position)
        else:
            position = Var(self.bind(f"rl::checked_index<{wrap}>({self._write_scalar(value.index)}, {size})"), value.size)
        # A body merged from several elements may bind one variable to several positions.
        return self.write(substitute(value.body, {value.variable: position}))

    def _gather(self, buffer: str, first: Expr, stride: Size, steps: dict[Var, Size]) -> str:
        """Gather elements at positions that differ between lanes."""
        positions = [
            str(position) if step == 1 else f"{position} * (int64_t){size_operand(step)}" for position, step in steps.items()
        ]
        if stride != 0:
            positions.append(f"{self.lane}.index(0, {size_text(stride)})")
        return self.bind(f"{self.lane}.gather({self.pointer(buffer)} + {to_cpp(first)}, {' + '.join(positions)})")

    def _write_search(self, value: Search) -> str:
        row = f"{self.pointer(value.row.buffer)} + {to_cpp(value.row.index)}"
        sizes = f"{size_text(value.step)}, {size_text(value.count)}"
        side = "true" if value.right else "false"
        return self.bind(f"rl::search<{side}>({self.lane}, {row}, {sizes}, {self.write(value.value)}, status)")

    def _emit_masked(self, value: Masked) -> str:
        mask = self._write_scalar(value.mask)
        name = self._fresh_name()
        self.lines.append(f"{self._indent}auto {name} = {self.lane}.broadcast({literal(0, value.dtype)});")
        self._write_branch(f"if ({mask}) {{", name, value.body)
        self._write_branch("} else {", name, value.other)
        self.lines.append(f"{self._indent}}}")
        return name

    def _write_branch(self, head: str, name: str, body: Value) -> None:
        self.lines.append(f"{self._indent}{head}")
        texts, nodes, indent = dict(self._texts), dict(self._nodes), self._indent
        self._indent += "  "
        result = self.write(body)
        self.lines.append(f"{self._indent}{name} = {result};")
        self._texts, self._nodes, self._indent = texts, nodes, indent

    def _is_uniform(self, value: Value) -> bool:
        """Return whether a value made of numbers and positions is the same in all lanes, so that a scalar suffices."""
        if isinstance(value, Constant):
            return True
        if isinstance(value, IndexValue):
            return not value.index.contains(self.column)
        if not isinstance(value, Call):
            return False
        found = self._uniform.get(id(value))
        if found is None:
            found = self._uniform[id(value)] = all(map(self._is_uniform, value.arguments))
            self._kept.append(value)
        return found

    def _write_call(self, value: Call) -> str:
        if self.lane != SCALAR and not value.dtype.is_floating_point and self._is_uniform(value):
            return self.bind(f"{self.lane}.broadcast({self._write_scalar(value)})")
        if self.lane != SCALAR and value.name == "where" and value.dtype is not bool_ and self._is_uniform(value.arguments[0]):
            mask, first, second = self._write_scalar(value.arguments[0]), *map(self.write, value.arguments[1:])
            return self.bind(f"{mask} ? {first} : {second}")
        arguments = [self.write(argument) for argument in value.arguments]
        if value.name == "cast":
            source, target = value.arguments[0].dtype, value.dtype
            if compute_type(source) == compute_type(target) and (source is target or source.itemsize < target.itemsize):
                return arguments[0]
            return self.bind(f"rl::cast<{c_type(target)}, {compute_type(source)}>({arguments[0]})")
        if value.name in REPORTING:
            arguments.append("status")
        if value.name in INFIX and value.dtype.name in ("float32", "float64"):
            return self.bind(f"{arguments[0]} {INFIX[value.name]} {arguments[1]}")
        return self.bind(f"rl::{value.name}({', '.join(arguments)})")

