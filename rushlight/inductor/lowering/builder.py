"""GraphBuilder: the interface of lowering rules. It makes values and loops, realizes buffers and keeps them in order."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence

from rushlight.core.algebra import Expr, Var, as_expr, bounds
from rushlight.core.dtype import bool_, dtype, float64, int32, int64, of_number, uint8
from rushlight.core.strides import broadcast_shapes
from rushlight.core.symbolic import SymFloat, SymInt, sym_float
from rushlight.inductor.ir import (
    Buffer,
    Call,
    ComputedBuffer,
    Constant,
    ConstantBuffer,
    IndexValue,
    Load,
    Masked,
    Operand,
    Pointwise,
    Reduction,
    TemplateBuffer,
    Value,
    contiguous_layout,
    walk,
)
from rushlight.inductor.lowering.layout import IMAGE_RANK, in_memory_order
from rushlight.inductor.lowering.target import CPU, Target
from rushlight.inductor.scheduler import is_foldable
from rushlight.inductor.sizes import Size, as_size, as_sizes, hint, is_size, row_major, stride_along
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables
from rushlight.ops.promotion import DIMENSIONED, NUMBER, ZERO_DIM, promote_kinds

# A loop body with more nodes than this is computed once into a buffer rather than repeated in each consumer.
INLINE_LIMIT = 64

# The results of empty reductions.
IDENTITIES = {"sum": 0, "prod": 1, "any": False, "all": True, "max": -math.inf, "min": math.inf}


def call(name: str, kind: dtype, *arguments: Value) -> Value:
    """Return a scalar function with a result of type `kind`. Comparisons that follow from index ranges are folded."""
    if name in _COMPARISONS and isinstance(arguments[0], IndexValue) and isinstance(arguments[1], Constant):
        truth = _COMPARISONS[name](*bounds(arguments[0].index), arguments[1].number)
        return Call(kind, name, arguments) if truth is None else Constant(bool_, truth)
    if name in ("logical_and", "logical_or"):
        settled = name == "logical_or"
        for value, other in (arguments, arguments[::-1]):
            if isinstance(value, Constant):
                return Constant(bool_, settled) if bool(value.number) is settled else other
    if name == "where" and isinstance(arguments[0], Constant):
        return arguments[1 if arguments[0].number else 2]
    return Call(kind, name, arguments)


def _is_less(low: int | None, high: int | None, number: int) -> bool | None:
    """Return True if all numbers of a range are below `number`, False if none is, None otherwise."""
    if high is not None and high < number:
        return True
    return False if low is not None and low >= number else None


def _is_not_less(low: int | None, high: int | None, number: int) -> bool | None:
    less = _is_less(low, high, number)
    return None if less is None else not less


_COMPARISONS = {"lt": _is_less, "ge": _is_not_less}


def masked(kind: dtype, mask: Value, body: Value, other: Value) -> Value:
    """Return `body` where the mask holds, else `other`; only the selected one is read."""
    if isinstance(mask, Constant):
        return body if mask.number else other
    return Masked(kind, mask, body, other)


def cast(value: Value, kind: dtype) -> Value:
    """Return `value` converted to `kind`; constants are folded."""
    if value.dtype is kind:
        return value
    if isinstance(value, Constant):
        return Constant(kind, convert_number(value.number, kind))
    if kind is int32 and value.dtype is uint8 and _is_cast_from(value, int32):
        return call("bitwise_and", int32, value.arguments[0], Constant(int32, 0xFF))  # cheaper than moving bytes between lanes
    return Call(kind, "cast", (value,))


def _is_cast_from(value: Value, kind: dtype) -> bool:
    return isinstance(value, Call) and value.name == "cast" and value.arguments[0].dtype is kind


_FLOAT_CALLS = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "div", operator.pow: "pow",
    operator.neg: "neg", operator.abs: "abs", math.sqrt: "sqrt",
}  # fmt: skip
"""The loops IR's calls for the functions of which open floats consist."""


def number_value(number: bool | int | float | SymInt | SymFloat | Expr, kind: dtype) -> Value:
    """Return a number, which may be a symbolic size or follow from such sizes, as a value of type `kind`."""
    if type(number) is SymFloat:
        return cast(_open_float(number), kind)
    if isinstance(number, SymInt | Expr):
        number = as_size(number)
        if isinstance(number, Expr):
            return cast(index_value(number), kind)
    return Constant(kind, convert_number(number, kind))


def _open_float(number: SymFloat) -> Value:
    """Return the calls that compute a float from open sizes, in float64 as Python does."""
    parts = [number_value(part, float64) for part in number.parts]
    if number.function is sym_float:
        return parts[0]
    if number.function not in _FLOAT_CALLS:
        raise NotImplementedError(f"no lowering for {number.function.__name__} of open sizes ({number})")
    return Call(float64, _FLOAT_CALLS[number.function], tuple(parts))


def convert_number(number: bool | int | float, kind: dtype) -> bool | int | float:
    """Return a Python number as one of type `kind`."""
    if kind is bool_:
        return bool(number)
    return int(number) if kind.is_integral else float(number)


class GraphBuilder:
    """The buffers of one graph, in the order they are made, and the constructors that lowering rules use."""

    def __init__(self, taken: Iterable[str] = (), target: Target = CPU):
        """`taken` are names that new buffers must not use."""
        self.target = target
        self.buffers: list[Buffer] = []
        self.by_name: dict[str, Buffer] = {}
        self.origin = ""
        self.lines: tuple[str, ...] = ()
        self.consumers = 0  # number of users of the node being lowered
        self.items_used: frozenset[int] = frozenset()  # indices of the used results, if the node has several results
        self.scaled_forms: dict[TensorBox, Callable[[TensorBox], TensorBox]] = {}
        self._fixed: dict[str, bool] = {}
        self._taken = frozenset(taken)
        self._numbers = itertools.count()
        self._indirect = itertools.count()

    # Buffers

    def add(self, buffer: Buffer) -> Buffer:
        """Append a buffer."""
        self.buffers.append(buffer)
        self.by_name[buffer.name] = buffer
        return buffer

    def fresh_name(self) -> str:
        """Return the next free name of buf0, buf1, ..."""
        return next(name for number in self._numbers if (name := f"buf{number}") not in self._taken)

    def indirect_variable(self, size: int | SymInt) -> Var:
        """Return a variable for an index that is read from memory."""
        return Var(f"indirect{next(self._indirect)}", as_size(size))

    def realize(self, box: TensorBox, row_major: bool = False) -> TensorBox:
        """Compute a box's storage into a buffer, if it is a loop, in the memory order of what the loop reads or in row-major
        order."""
        if box.is_realized:
            return box
        if not row_major and box.reindex is not None and len(box.size) == IMAGE_RANK != len(box.storage.data.ranges):
            self._make_image(box)
        storage = box.storage
        if storage.buffer is None:
            loop, layout = storage.data, contiguous_layout(storage.data.dtype, storage.data.ranges)
            if not row_major:
                loop, layout = in_memory_order(loop, self.by_name)
            storage.buffer = self.add(ComputedBuffer(self.fresh_name(), layout, storage.lines, storage.origins, data=loop))
        return box

    def _make_image(self, box: TensorBox) -> None:
        """If a box of images views a loop of another rank, replace it by a loop over images, if these are channels-last in
        memory."""
        made = self.pointwise(box.size, box.dtype, box.value)
        if made.is_realized or in_memory_order(made.storage.data, self.by_name)[0] is not made.storage.data:
            box.storage, box.reindex = made.storage, None

    # Loops

    def pointwise(self, size: Sequence[int | SymInt], kind: dtype, inner: Callable[[tuple[Var, ...]], Value]) -> TensorBox:
        """Return a box whose element at `index` is `inner(index)`."""
        ranges = as_sizes(size)
        variables = loop_variables(ranges)
        loop = Pointwise(kind, ranges, variables, cast(inner(variables), kind), self.origin)
        box = TensorBox(StorageBox(loop, None, self.lines), size, kind)
        if sum(1 for _ in walk(loop.body)) > INLINE_LIMIT:
            self.realize(box)
        return box

    def reduction(self, box: TensorBox, dims: Sequence[int], kind: str, dtype: dtype, keepdim: bool) -> TensorBox:
        """Return `kind` ("sum", "max", ...) over the dimensions `dims` of a box."""
        kept = [dim for dim in range(len(box.size)) if dim not in dims]
        ranges, reduced = [box.size[dim] for dim in kept], [box.size[dim] for dim in dims]
        if 0 in reduced:
            keptdims = [1 if dim in dims else size for dim, size in enumerate(box.size)] if keepdim else ranges
            return self.pointwise(keptdims, dtype, lambda index: Constant(dtype, IDENTITIES[kind]))
        kept_ranges, reduced_ranges = as_sizes(ranges), as_sizes(reduced)
        variables, inner = loop_variables(kept_ranges), loop_variables(reduced_ranges, "r")
        index: list[Expr] = [as_expr(0)] * len(box.size)
        for dims_of, names in ((kept, variables), (dims, inner)):
            for dim, variable in zip(dims_of, names, strict=True):
                index[dim] = variable
        body = box.value(index) if kind in ("argmax", "argmin") else cast(box.value(index), dtype)
        loop = Reduction(dtype, kept_ranges, variables, body, self.origin, reduced_ranges, inner, kind)
        buffer = ComputedBuffer(self.fresh_name(), contiguous_layout(dtype, kept_ranges), self.lines, data=loop)
        made = TensorBox(StorageBox(None, self.add(buffer)), ranges, dtype)
        if keepdim:
            made = made.reshape([1 if dim in dims else size for dim, size in enumerate(box.size)])
        return made

    # Elementwise calculation over boxes and numbers

    def load(self, operand: TensorBox | bool | int | float | SymInt, index: Sequence[Expr], size: tuple, kind: dtype) -> Value:
        """Return an operand's element at `index` of the broadcast shape `size`, as type `kind`."""
        if not isinstance(operand, TensorBox):
            return number_value(operand, kind)
        extra = len(size) - len(operand.size)
        own = [
            as_expr(0) if extent == 1 else index[extra + dim] for dim, extent in enumerate(operand.size)
        ]
        return cast(operand.value(own), kind)

    def prepare(self, operand: object, size: tuple[int, ...]) -> object:
        """Realize an operand whose elements broadcasting would recompute."""
        if isinstance(operand, TensorBox) and not operand.is_realized and _rereads_elements(operand.size, size):
            if _is_expensive(operand.storage.data.body):
                self.realize(operand)
        return operand

    def elementwise(self, name: str, compute: dtype, result: dtype, *operands: object) -> TensorBox:
        """Return the scalar function `name` over operands broadcast together, computed in `compute`."""
        size = broadcast_shapes(*[operand.size for operand in operands if isinstance(operand, TensorBox)])
        for operand in operands:
            self.prepare(operand, size)
        return self.pointwise(
            size, result, lambda index: call(name, result, *[self.load(o, index, size, compute) for o in operands])
        )

    def promote(self, *operands: object) -> dtype:
        """Return the dtype in which an operator computes over boxes and numbers."""
        kinds = []
        for operand in operands:
            if isinstance(operand, TensorBox):
                kinds.append((operand.dtype, DIMENSIONED if operand.size else ZERO_DIM))
            else:
                kinds.append((int64 if isinstance(operand, SymInt) else of_number(operand), NUMBER))
        return promote_kinds(kinds)

    # Operands of templates

    def operand(self, box: TensorBox, sizes: Sequence[int | SymInt]) -> Operand | None:
        """Return the box, reshaped to `sizes`, as a strided view of its buffer; None if strides cannot describe it."""
        box = self.realize(box).reshape(sizes)
        variables = loop_variables(as_sizes(sizes), "v")
        load = box.value(variables)
        if not isinstance(load, Load):
            return None
        strides = [stride_along(load.index, variable) for variable in variables]
        if any(stride is None for stride in strides):
            return None
        rest = load.index.substitute(dict.fromkeys(variables, as_expr(0)))
        return Operand(load.buffer, as_size(rest), tuple(strides)) if is_size(rest) else None

    def row_major_operand(self, box: TensorBox) -> Operand | None:
        """Return `operand` of a box that is dense and row-major in memory; None for any other."""
        found, size = self.operand(box, box.size), as_sizes(box.size)
        return found if found is not None and same_strides(size, found.strides, row_major(size)) else None

    def strided_operand(self, box: TensorBox, sizes: Sequence[int | SymInt], unit_dim: int | None = None) -> Operand:
        """Return `operand`; copies if the box has no strides, or not stride 1 in `unit_dim`."""
        found = self.operand(box, sizes)
        if found is None or (unit_dim is not None and as_size(sizes[unit_dim]) not in (0, 1) and found.strides[unit_dim] != 1):
            found = self.operand(self.copy(box.reshape(sizes)), sizes)
        return found

    def copy(self, box: TensorBox, row_major: bool = True) -> TensorBox:
        """Return a realized copy, in row-major order or in the order of what it reads."""
        return self.realize(self.pointwise(box.size, box.dtype, box.value), row_major)

    def is_constant(self, box: TensorBox) -> bool:
        """Return whether a box is computed from parameters alone."""
        if box.is_realized:
            return self.is_constant_buffer(box.storage.buffer.name)
        reads = {node.buffer for node in walk(box.storage.data.body) if isinstance(node, Load)}
        return bool(reads) and all(map(self.is_constant_buffer, reads))

    def is_constant_buffer(self, name: str) -> bool:
        """Return whether a buffer is a parameter or will be folded."""
        found = self._fixed.get(name)
        if found is None:
            buffer = self.by_name[name]
            found = isinstance(buffer, ConstantBuffer) or is_foldable(buffer, self.is_constant_buffer)
            self._fixed[name] = found
        return found

    def is_folded(self, name: str) -> bool:
        """Return whether a buffer is folded: computed once from parameters into the program's own memory."""
        return self.is_constant_buffer(name) and not isinstance(self.by_name[name], ConstantBuffer)

    def template(self, kind: str, layout_size: Sequence[int | SymInt], result: dtype, rows: int | SymInt,
                 columns: int | SymInt, operands: dict[str, Operand], **parameters: object) -> TensorBox:  # fmt: skip
        """Return the box of a template's results."""
        layout = contiguous_layout(result, as_sizes(layout_size))
        parameters = {name: as_parameter(value) for name, value in parameters.items()}
        buffer = TemplateBuffer(
            self.fresh_name(), layout, self.lines, kind=kind, operands=operands, parameters=parameters, rows=as_size(rows),
            columns=as_size(columns), origin=self.origin,
        )  # fmt: skip
        return TensorBox(StorageBox(None, self.add(buffer)), layout_size, result)


def same_strides(size: Sequence[Size], have: Sequence[Size], want: Sequence[Size]) -> bool:
    """Return whether strides provably address the same elements; strides of dimensions with one element do not matter."""
    return all(extent in (0, 1) or a == b for extent, a, b in zip(size, have, want, strict=True))


def as_parameter(value: object) -> object:
    """Return a template's parameter with symbolic sizes as expressions."""
    if isinstance(value, tuple):
        return tuple(map(as_parameter, value))
    return as_size(value) if isinstance(value, SymInt) else value


def _rereads_elements(size: Sequence[int | SymInt], wide: Sequence[int | SymInt]) -> bool:
    """Return whether broadcasting reads elements more than once (for the example's sizes)."""
    return math.prod(map(hint, size)) < math.prod(map(hint, wide))


def _is_expensive(body: Value) -> bool:
    return any(isinstance(node, Call) and node.name not in ("cast", "add", "sub", "mul") for node in walk(body))


def index_value(expression: Expr | SymInt | int, kind: dtype = int64) -> IndexValue:
    """Return an index expression as a value."""
    return IndexValue(kind, as_expr(expression))

