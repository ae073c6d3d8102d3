"""The loops IR: plain data.

A *value* is an expression tree over loads, constants, index expressions and named scalar functions. A *loop* (Pointwise or
Reduction) has a value for each point of its ranges. A *buffer* is memory with a layout: an input, a constant, the result of a
loop (ComputedBuffer) or of a hand-written template (TemplateBuffer).
In: made by lowering. Out: grouped by the scheduler, written out by codegen. Everything prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rushlight.core.algebra import Expr, Var
from rushlight.core.dtype import dtype
from rushlight.inductor.sizes import Size, product, row_major

# Values


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """Base of values; `dtype` is the type of each element."""

    dtype: dtype


@dataclass(frozen=True, eq=False, slots=True)
class Constant(Value):
    """A number."""

    number: bool | int | float


@dataclass(frozen=True, eq=False, slots=True)
class Load(Value):
    """The element at `index` of a buffer, counted in elements from its start."""

    buffer: str
    index: Expr


@dataclass(frozen=True, eq=False, slots=True)
class IndexValue(Value):
    """An index expression as a number."""

    index: Expr


@dataclass(frozen=True, eq=False, slots=True)
class RandomWord(IndexValue):
    """Element `index` of the random stream given by seed and offset: an integer ("bits") or a number in [0, 1) ("uniform")."""

    name: str
    seed: Load
    offset: int


@dataclass(frozen=True, eq=False, slots=True)
class Call(Value):
    """A scalar function of other values, named as in `rl::`; casts are named `cast`."""

    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Indirect(Value):
    """`body` with `variable` bound to the integer `index`.

    The index must lie in [0, size). If it does not, execution reports an index error and reads element 0.
    """

    variable: Var
    index: Value
    size: Size
    body: Value
    wrap: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Masked(Value):
    """`body` where `mask` holds, else `other`. `body` is only evaluated, loads included, where the mask holds."""

    mask: Value
    body: Value
    other: Value


@dataclass(frozen=True, eq=False, slots=True)
class Search(Value):
    """The number of elements in a sorted row that come before `value`: the smaller ones, and with `right` the equal ones. The
    row has `count` elements, `step` apart, and begins at the place that `row` loads."""

    value: Value
    row: Load
    step: Size
    count: Size
    right: bool


REPORTING = ("nonzero_divisor", "required")  # functions that may hand the call over to eager


def may_report(node: Value) -> bool:
    """Return whether a node itself, apart from its operands, may hand the call over to eager, mostly to raise an error."""
    return isinstance(node, Indirect | Search) or (isinstance(node, Call) and node.name in REPORTING)


def children(value: Value) -> tuple[Value, ...]:
    """Return the operands of `value`."""
    if isinstance(value, Call):
        return value.arguments
    if isinstance(value, Indirect):
        return (value.index, value.body)
    if isinstance(value, Masked):
        return (value.mask, value.body, value.other)
    if isinstance(value, Search):
        return (value.value, value.row)
    return (value.seed,) if isinstance(value, RandomWord) else ()


def walk(value: Value) -> Iterator[Value]:
    """Yield `value` and all its operands; shared nodes come once."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        stack.extend(children(current))


def substitute(value: Value, replacements: dict[Var, Expr]) -> Value:
    """Return `value` with loop variables replaced in all indices; shared nodes stay shared."""
    memo: dict[int, Value] = {}

    def rewrite(node: Value) -> Value:
        found = memo.get(id(node))
        if found is None:
            found = memo[id(node)] = _rewrite(node)
        return found

    def _rewrite(node: Value) -> Value:
        if isinstance(node, Load | IndexValue):
            index = node.index.substitute(replacements)
            return node if index is node.index else replace(node, index=index)
        if isinstance(node, Call):
            return replace(node, arguments=tuple(map(rewrite, node.arguments)))
        if isinstance(node, Indirect):
            return replace(node, index=rewrite(node.index), body=rewrite(node.body))
        if isinstance(node, Masked):
            return replace(node, mask=rewrite(node.mask), body=rewrite(node.body), other=rewrite(node.other))
        if isinstance(node, Search):
            return replace(node, value=rewrite(node.value), row=rewrite(node.row))
        return node

    return rewrite(value)


# Loops


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """Base of loops: `body` is evaluated at each point of `variables`, whose extents are `ranges`."""

    dtype: dtype
    ranges: tuple[Size, ...]
    variables: tuple[Var, ...]
    body: Value
    origin: str

    @property
    def numel(self) -> Size:
        """The number of results."""
        return product(self.ranges)

    def values(self) -> tuple[Value, ...]:
        """Return all values of the loop."""
        return (self.body,)

    def text_parts(self) -> tuple[str, str, list[str]]:
        """Return the printed form: the body's parameters, the lines before it, and the fields after it."""
        indices = ", ".join(variable.name for variable in self.variables) or "_"
        return "index", f"{indices} = index", [f"ranges={list(self.ranges)}"]


@dataclass(frozen=True, eq=False, slots=True)
class Pointwise(Loop):
    """One result per point."""


@dataclass(frozen=True, eq=False, slots=True)
class Reduction(Loop):
    """One result per point: `reduction_type` over `body` at each point of `reduction_variables`."""

    reduction_ranges: tuple[Size, ...] = ()
    reduction_variables: tuple[Var, ...] = ()
    reduction_type: str = "sum"

    @property
    def reduction_numel(self) -> Size:
        """The number of values combined in each result."""
        return product(self.reduction_ranges)

    def text_parts(self) -> tuple[str, str, list[str]]:
        _, unpack, fields = Loop.text_parts(self)
        inner = ", ".join(variable.name for variable in self.reduction_variables)
        fields += [f"reduction_ranges={list(self.reduction_ranges)}", f"reduction_type={self.reduction_type}"]
        return "index, rindex", f"{unpack}\n{inner} = rindex", fields


# Buffers


@dataclass(frozen=True, slots=True)
class FixedLayout:
    """Sizes, strides and dtype of a buffer."""

    dtype: dtype
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    device: str = "cpu"

    @property
    def numel(self) -> Size:
        """The number of elements."""
        return product(self.size)

    def __str__(self) -> str:
        return f"FixedLayout('{self.device}', {self.dtype}, size={list(self.size)}, stride={list(self.stride)})"


def contiguous_layout(kind: dtype, size: tuple[Size, ...]) -> FixedLayout:
    """Return a row-major layout."""
    return FixedLayout(kind, tuple(size), row_major(size))


@dataclass(eq=False, slots=True)
class Buffer:
    """Named memory. `lines` are the user's source lines behind it, `origins` the names of the graph's nodes."""

    name: str
    layout: FixedLayout
    lines: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def reads(self) -> set[str]:
        """Return the names of the buffers that this one is computed from."""
        return set()


@dataclass(eq=False, slots=True)
class InputBuffer(Buffer):
    """A tensor that the caller passes."""


@dataclass(eq=False, slots=True)
class ConstantBuffer(Buffer):
    """A parameter or another tensor known at compile time."""

    target: str = ""


@dataclass(eq=False, slots=True)
class ComputedBuffer(Buffer):
    """The results of a loop, row-major over its ranges."""

    data: Loop | None = None
    _reads: set[str] | None = field(default=None, repr=False)

    def reads(self) -> set[str]:
        if self._reads is None:
            self._reads = {node.buffer for value in self.data.values() for node in walk(value) if isinstance(node, Load)}
        return self._reads


@dataclass(frozen=True, slots=True)
class Operand:
    """A template's view of a buffer: an element offset, and a stride for each dimension of the template."""

    buffer: str
    offset: Size
    strides: tuple[Size, ...]


@dataclass(eq=False, slots=True)
class TemplateBuffer(Buffer):
    """The result of a hand-written kernel: `kind` names it, `operands` are its inputs, `parameters` its constants.

    The result is a matrix of `rows` x `columns` (row-major over the layout), to which epilogues apply. `score` is a function
    applied to each attention score, which it loads from the buffer `parameters["scores"]`.
    """

    kind: str = ""
    operands: dict[str, Operand] = field(default_factory=dict)
    parameters: dict[str, object] = field(default_factory=dict)
    rows: Size = 0
    columns: Size = 0
    origin: str = ""
    score: Pointwise | None = None

    def reads(self) -> set[str]:
        found = {operand.buffer for operand in self.operands.values()}
        if self.score is not None:
            loads = (node.buffer for node in walk(self.score.body) if isinstance(node, Load))
            found.update(name for name in loads if name != self.parameters["scores"])
        return found


# Printing


def value_text(value: Value) -> str:
    """Return a value as numbered statements, one per distinct node, like the body of inductor's inner_fn."""
    lines: list[str] = []
    names: dict[int, str] = {}

    def visit(node: Value) -> str:
        if id(node) not in names:
            text = _node_text(node, visit)
            names[id(node)] = f"tmp{len(lines)}"
            lines.append(f"{names[id(node)]} = {text}")
        return names[id(node)]

    last = visit(value)
    return "\n".join([*lines, f"return {last}"])


def _node_text(node: Value, visit) -> str:
    if isinstance(node, Constant):
        return f"ops.constant({node.number!r}, {node.dtype})"
    if isinstance(node, Load):
        return f"ops.load({node.buffer}, {node.index})"
    if isinstance(node, RandomWord):
        return f"ops.random_{node.name}({visit(node.seed)}, {node.offset}, {node.index})"
    if isinstance(node, IndexValue):
        return f"ops.index_expr({node.index}, {node.dtype})"
    if isinstance(node, Indirect):
        bound = visit(node.index)
        return f"ops.indirect({node.variable} := {bound}, size={node.size}, {visit(node.body)})"
    if isinstance(node, Masked):
        return f"ops.masked({visit(node.mask)}, {visit(node.body)}, {visit(node.other)})"
    if isinstance(node, Search):
        row = f"{node.row.buffer}, {node.row.index}, step={node.step}, count={node.count}"
        return f"ops.search({visit(node.value)}, {row}, right={node.right})"
    arguments = ", ".join(map(visit, node.arguments))
    suffix = f", {node.dtype}" if node.name == "cast" else ""
    return f"ops.{node.name}({arguments}{suffix})"


def loop_text(loop: Loop) -> str:
    """Return a loop in inductor's notation."""
    parameters, unpack, extra = loop.text_parts()
    extra.append(f"origin_node={loop.origin}")
    body = _indent(f"{unpack}\n{value_text(loop.body)}", 2)
    fields = _indent(",\n".join(["'cpu'", str(loop.dtype), f"def inner_fn({parameters}):\n{body}", *extra]), 1)
    return f"{type(loop).__name__}(\n{fields}\n)"


def _indent(text: str, levels: int) -> str:
    return "\n".join("  " * levels + line for line in text.splitlines())


def buffer_text(buffer: Buffer) -> str:
    """Return a buffer in inductor's notation, with its source lines."""
    comments = "".join(f"# {line}\n" for line in buffer.lines)
    head = f"{type(buffer).__name__}(name='{buffer.name}', layout={buffer.layout}"
    if isinstance(buffer, ComputedBuffer):
        return f"{comments}{head}, data={loop_text(buffer.data)})"
    if isinstance(buffer, TemplateBuffer):
        operands = "".join(
            f"  {name}={operand.buffer} (offset {operand.offset}, strides {list(operand.strides)}),\n"
            for name, operand in buffer.operands.items()
        )
        score = "" if buffer.score is None else f"{_indent(f'score={loop_text(buffer.score)}', 1)},\n"
        return f"{comments}{head}, template='{buffer.kind}', parameters={buffer.parameters},\n{operands}{score})"
    if isinstance(buffer, ConstantBuffer):
        return f"{head}, target='{buffer.target}')"
    return f"{head})"

