"""GraphBuilder: what lowering rules work with. It makes values and loops, realizes buffers and keeps them in order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from rushlight.core.dtype import bool_, dtype, int64, of_number
from rushlight.core.strides import broadcast_shapes, contiguous_strides
from rushlight.inductor.indexing import Expr, Var, as_expr
from rushlight.inductor.ir import (
    Buffer,
    Call,
    ComputedBuffer,
    Constant,
    IndexValue,
    Load,
    Operand,
    Pointwise,
    Reduction,
    TemplateBuffer,
    Value,
    contiguous_layout,
    walk,
)
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables
from rushlight.ops.promotion import DIMENSIONED, NUMBER, ZERO_DIM, promote_kinds

# A loop body with more nodes than this is computed once into a buffer rather than repeated in each consumer.
INLINE_LIMIT = 64

# What reducing no values gives.
IDENTITIES = {"sum": 0, "prod": 1, "any": False, "all": True, "max": -math.inf, "min": math.inf}


def call(name: str, kind: dtype, *arguments: Value) -> Call:
    """A scalar function with a result of type `kind`."""
    return Call(kind, name, arguments)


def cast(value: Value, kind: dtype) -> Value:
    """`value` converted to `kind`; constants are converted at once."""
    if value.dtype is kind:
        return value
    if isinstance(value, Constant):
        return Constant(kind, convert_number(value.number, kind))
    return Call(kind, "cast", (value,))


def convert_number(number: bool | int | float, kind: dtype) -> bool | int | float:
    """A Python number as one of type `kind`."""
    if kind is bool_:
        return bool(number)
    return int(number) if kind.is_integral else float(number)


class GraphBuilder:
    """The buffers of one graph, in the order they are made, and the constructors that lowering rules use."""

    def __init__(self):
        self.buffers: list[Buffer] = []
        self.by_name: dict[str, Buffer] = {}
        self.origin = ""
        self.lines: tuple[str, ...] = ()
        self._numbers = itertools.count()
        self._indirect = itertools.count()

    # Buffers

    def add(self, buffer: Buffer) -> Buffer:
        """Append a buffer."""
        self.buffers.append(buffer)
        self.by_name[buffer.name] = buffer
        return buffer

    def fresh_name(self) -> str:
        """buf0, buf1, ..."""
        return f"buf{next(self._numbers)}"

    def indirect_variable(self, size: int) -> Var:
        """A variable for an index that is read from memory."""
        return Var(f"indirect{next(self._indirect)}", size)

    def realize(self, box: TensorBox) -> TensorBox:
        """The box over a buffer: its storage is computed if it is not yet."""
        storage = box.storage
        if storage.buffer is None:
            loop = storage.data
            layout = contiguous_layout(loop.dtype, loop.ranges)
            storage.buffer = self.add(ComputedBuffer(self.fresh_name(), layout, storage.lines, data=loop))
        return box

    # Loops

    def pointwise(self, size: Sequence[int], kind: dtype, inner: Callable[[tuple[Var, ...]], Value]) -> TensorBox:
        """A box whose element at `index` is `inner(index)`."""
        variables = loop_variables(size)
        loop = Pointwise(kind, tuple(size), variables, cast(inner(variables), kind), self.origin)
        box = TensorBox(StorageBox(loop, None, self.lines), size, kind)
        if sum(1 for _ in walk(loop.body)) > INLINE_LIMIT:
            self.realize(box)
        return box

    def reduction(self, box: TensorBox, dims: Sequence[int], kind: str, dtype: dtype, keepdim: bool) -> TensorBox:
        """`kind` ("sum", "max", ...) over the dimensions `dims` of a box."""
        kept = [dim for dim in range(len(box.size)) if dim not in dims]
        ranges, reduced = [box.size[dim] for dim in kept], [box.size[dim] for dim in dims]
        if 0 in reduced:
            keptdims = [1 if dim in dims else size for dim, size in enumerate(box.size)] if keepdim else ranges
            return self.pointwise(keptdims, dtype, lambda index: Constant(dtype, IDENTITIES[kind]))
        variables, inner = loop_variables(ranges), loop_variables(reduced, "r")
        index: list[Expr] = [as_expr(0)] * len(box.size)
        for dims_of, names in ((kept, variables), (dims, inner)):
            for dim, variable in zip(dims_of, names, strict=True):
                index[dim] = variable
        body = box.value(index) if kind in ("argmax", "argmin") else cast(box.value(index), dtype)
        loop = Reduction(dtype, tuple(ranges), variables, body, self.origin, tuple(reduced), inner, kind)
        buffer = ComputedBuffer(self.fresh_name(), contiguous_layout(dtype, tuple(ranges)), self.lines, data=loop)
        made = TensorBox(StorageBox(None, self.add(buffer)), ranges, dtype)
        if keepdim:
            made = made.reshape([1 if dim in dims else size for dim, size in enumerate(box.size)])
        return made

    # Elementwise calculation over boxes and numbers

    def load(self, operand: TensorBox | bool | int | float, index: Sequence[Expr], size: tuple, kind: dtype) -> Value:
        """An operand's element at `index` of the broadcast shape `size`, as type `kind`."""
        if not isinstance(operand, TensorBox):
            return Constant(kind, convert_number(operand, kind))
        extra = len(size) - len(operand.size)
        own = [
            as_expr(0) if extent == 1 else index[extra + dim] for dim, extent in enumerate(operand.size)
        ]
        return cast(operand.value(own), kind)

    def prepare(self, operand: object, size: tuple[int, ...]) -> object:
        """Realize a box that broadcasting would compute again and again."""
        if isinstance(operand, TensorBox) and not operand.is_realized and math.prod(operand.size) < math.prod(size):
            if _is_work(operand.storage.data.body):
                self.realize(operand)
        return operand

    def elementwise(self, name: str, compute: dtype, result: dtype, *operands: object) -> TensorBox:
        """The scalar function `name` over operands broadcast together, computed in `compute`."""
        size = broadcast_shapes(*[operand.size for operand in operands if isinstance(operand, TensorBox)])
        for operand in operands:
            self.prepare(operand, size)
        return self.pointwise(
            size, result, lambda index: call(name, result, *[self.load(o, index, size, compute) for o in operands])
        )

    def promote(self, *operands: object) -> dtype:
        """The dtype in which an operator computes over boxes and numbers."""
        kinds = []
        for operand in operands:
            if isinstance(operand, TensorBox):
                kinds.append((operand.dtype, DIMENSIONED if operand.size else ZERO_DIM))
            else:
                kinds.append((of_number(operand), NUMBER))
        return promote_kinds(kinds)

    # Operands of templates

    def operand(self, box: TensorBox, sizes: Sequence[int]) -> Operand | None:
        """The box, reshaped to `sizes`, as an affine view of its buffer; None when no strides describe it."""
        box = self.realize(box).reshape(sizes)
        variables = loop_variables(sizes, "v")
        load = box.value(variables)
        if not isinstance(load, Load):
            return None
        strides = [load.index.coefficient(variable) for variable in variables]
        if any(stride is None for stride in strides):
            return None
        rest = load.index.substitute(dict.fromkeys(variables, as_expr(0)))
        return Operand(load.buffer, int(rest), tuple(strides))

    def row_major_operand(self, box: TensorBox) -> Operand | None:
        """`operand` of a box whose elements lie in row-major order without gaps; None for any other."""
        found = self.operand(box, box.size)
        return found if found is not None and same_strides(box.size, found.strides, contiguous_strides(box.size)) else None

    def strided_operand(self, box: TensorBox, sizes: Sequence[int], unit_dim: int | None = None) -> Operand:
        """`operand`, after a copy where the box has no strides, or not stride 1 in `unit_dim`."""
        found = self.operand(box, sizes)
        if found is None or (unit_dim is not None and sizes[unit_dim] > 1 and found.strides[unit_dim] != 1):
            found = self.operand(self.copy(box.reshape(sizes)), sizes)
        return found

    def copy(self, box: TensorBox) -> TensorBox:
        """A realized row-major copy."""
        return self.realize(self.pointwise(box.size, box.dtype, box.value))

    def template(self, kind: str, layout_size: Sequence[int], result: dtype, rows: int, columns: int,
                 operands: dict[str, Operand], **parameters: object) -> TensorBox:  # fmt: skip
        """The box of a template's results."""
        layout = contiguous_layout(result, tuple(layout_size))
        buffer = TemplateBuffer(
            self.fresh_name(), layout, self.lines, kind=kind, operands=operands, parameters=parameters, rows=rows,
            columns=columns, origin=self.origin,
        )  # fmt: skip
        return TensorBox(StorageBox(None, self.add(buffer)), layout_size, result)


def same_strides(size: Sequence[int], have: Sequence[int], want: Sequence[int]) -> bool:
    """Whether two strides name the same elements; those of dimensions with one element do not matter."""
    return all(extent <= 1 or a == b for extent, a, b in zip(size, have, want, strict=True))


def _is_work(body: Value) -> bool:
    return any(isinstance(node, Call) and node.name not in ("cast", "add", "sub", "mul") for node in walk(body))


def index_value(expression: Expr | int, kind: dtype = int64) -> IndexValue:
    """An index expression as a value."""
    return IndexValue(kind, as_expr(expression))

