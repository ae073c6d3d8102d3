"""GraphLowering: lowers an fx graph of aten operators, node by node, to buffers of the loops IR.

In: a GraphModule whose nodes carry fake values in `meta["val"]`. Out: a `LoweredGraph`: buffers in order, inputs, constants,
and each output as a view of a buffer.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rushlight.core.dtype import dtype
from rushlight.core.storage import StorageImpl
from rushlight.core.symbolic import SymFloat, SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.annotations import innermost_frame
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.symbolic_sizes import environment_of
from rushlight.inductor.ir import Buffer, ConstantBuffer, FixedLayout, InputBuffer, Load, Operand, buffer_text, walk
from rushlight.inductor.lowering.builder import GraphBuilder, same_strides
from rushlight.inductor.lowering.complex_box import ComplexBox, complex_operand, into_memory, parts_of_memory
from rushlight.inductor.lowering.complex_numbers import COMPLEX, takes_complex_numbers, to_copy
from rushlight.inductor.lowering.registry import LOWERINGS
from rushlight.inductor.lowering.target import CPU, Target
from rushlight.inductor.origins import note
from rushlight.inductor.partial_writes import PartialWrite, lower_partial_write, partial_writes
from rushlight.inductor.plan import OutputView
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.sizes import Size, UnsupportedSize, as_size, as_sizes, row_major
from rushlight.inductor.tensor_box import StorageBox, TensorBox
from rushlight.inductor.write_backs import WriteBack, is_write_back
from rushlight.ops.registry import aten

SELECT = aten("select.int")


@dataclass(slots=True)
class LoweredGraph:
    """A graph in the loops IR. `symbols` are the sizes that vary between calls."""

    buffers: list[Buffer]
    inputs: list[InputBuffer]
    constants: list[ConstantBuffer]
    outputs: list[OutputView]
    symbols: SizeSymbols = field(default_factory=SizeSymbols)
    writes: list[WriteBack] = field(default_factory=list)

    def __str__(self) -> str:
        outputs = ", ".join(f"{view.buffer}{list(view.size)}" for view in self.outputs)
        head = [str(self.symbols)] if self.symbols else []
        writes = [f"{write.target} <- {write.buffer}" for write in self.writes]
        return "\n\n".join([*head, *map(buffer_text, self.buffers), *writes, f"return ({outputs})\n"])


class GraphLowering:
    """Lowers one GraphModule; `boxes` maps each node to its lowered value."""

    def __init__(self, module: GraphModule, target: Target = CPU):
        self.module = module
        self._target = target
        self.builder = self._new_builder()
        self.boxes: dict[Node, object] = {}
        self._root: dict[StorageImpl, Node] = {}
        self._placed: dict[Node, Operand] = {}
        self._owners: dict[str, StorageImpl] = {}

    def run(self) -> LoweredGraph:
        """Lower every node. NotImplementedError if an operator has no rule, UnsupportedSize if it needs a known size.

        If lowering learns that two sizes are equal, it starts again, because buffers made before still distinguish them.
        """
        while True:
            version = self._count_known_equalities()
            lowered = self._lower_all()
            if self._count_known_equalities() == version:
                return lowered
            self.builder, self.boxes, self._root, self._placed, self._owners = self._new_builder(), {}, {}, {}, {}

    def _new_builder(self) -> GraphBuilder:
        taken = [node.name for node in self.module.graph.nodes if node.op in ("placeholder", "get_attr")]
        return GraphBuilder(taken, self._target)

    def _count_known_equalities(self) -> int:
        """Return a number that changes whenever two sizes are found equal."""
        values = (node.meta["val"] for node in self.module.graph.nodes if node.op == "placeholder")
        environment = environment_of(list(values))
        return 0 if environment is None else environment.version

    def _lower_all(self) -> LoweredGraph:
        outputs: list[OutputView] = []
        writes: list[Node] = []
        partial = partial_writes(self.module.graph.nodes)
        inner = {node for write in partial.values() for node in write.scatters[1:]}
        for node in self.module.graph.nodes:
            if node in inner:
                continue
            if node.op == "output":
                outputs = self._lower_outputs(node.args[0])
                continue
            if is_write_back(node):
                writes.append(node)
                continue
            self.boxes[node] = self._lower_partial(node, partial[node]) if node in partial else self._lower(node)
            if isinstance(node.meta["val"], Tensor):
                self._root.setdefault(_storage_of(node), node)
                _check_sizes(node, self.boxes[node])
        backs = self._write_backs(writes)
        buffers = self.builder.buffers
        symbols = SizeSymbols([node.meta["val"] for node in self.module.graph.nodes if node.op == "placeholder"])
        symbols.require([size for buffer in buffers for size in (*buffer.layout.size, *buffer.layout.stride)])
        symbols.require([size for view in outputs for size in (*view.size, *view.stride, view.offset)])
        return LoweredGraph(
            buffers,
            [buffer for buffer in buffers if isinstance(buffer, InputBuffer)],
            [buffer for buffer in buffers if isinstance(buffer, ConstantBuffer)],
            outputs,
            symbols,
            backs,
        )

    def _lower(self, node: Node) -> object:
        if type(node.meta["val"]) is SymFloat:
            return node.meta["val"]
        if isinstance(node.meta["val"], SymInt | int):
            return _resolve_size(node.meta["val"])
        if node.op == "placeholder":
            return self._add_external(InputBuffer(node.name, _layout_of(node.meta["val"])), node.meta["val"])
        if node.op == "get_attr":
            constant = ConstantBuffer(node.name, _layout_of(node.meta["val"]), target=node.target)
            return self._add_external(constant, node.meta["val"])
        if node.target is operator.getitem:
            return self.boxes[node.args[0]][node.args[1]]
        rule = (COMPLEX if takes_complex_numbers(node) else LOWERINGS).get(node.target)
        if rule is None:
            raise NotImplementedError(f"no lowering for {node.target} ({node.format_node()})")
        builder = self.builder
        builder.origin, builder.lines, builder.consumers = node.name, source_line(node), len(node.users)
        builder.items_used = frozenset(user.args[1] for user in node.users if user.target is operator.getitem)
        args, kwargs = map_arg(node.args, self.boxes.__getitem__), map_arg(node.kwargs, self.boxes.__getitem__)
        before = len(builder.buffers)
        result = self._cast_result(node.meta["val"], rule(builder, *args, **kwargs))
        note(node.name, builder.lines, _storages((args, kwargs)), _storages(result), builder.buffers[before:])
        if len(node.users) > 1 and not _select_different_indices(node.users):
            self._realize_shared(node, result)
        return result

    def _lower_partial(self, node: Node, write: PartialWrite) -> TensorBox:
        self.builder.origin, self.builder.lines = node.name, source_line(node)
        before = len(self.builder.buffers)
        result = lower_partial_write(self.builder, write, self.boxes)
        note(node.name, self.builder.lines, [], _storages(result), self.builder.buffers[before:])
        return result

    def _cast_result(self, value: object, result: object) -> object:
        """Cast a rule's result to the operator's dtype: rules compute in the dtype of type promotion, which may differ."""
        if isinstance(result, tuple):
            return tuple(map(self._cast_result, value, result))
        if isinstance(result, ComplexBox):
            return result if result.dtype is value.dtype else to_copy(self.builder, result, dtype=value.dtype)
        if not isinstance(result, TensorBox) or not isinstance(value, Tensor) or result.dtype is value.dtype:
            return result
        return self.builder.pointwise(result.size, value.dtype, result.value)

    def _add_external(self, buffer: Buffer, value: Tensor) -> TensorBox:
        self.builder.add(buffer)
        self._owners[buffer.name] = value._impl.storage
        if value.dtype.is_complex:
            return parts_of_memory(self.builder, buffer, value.shape)
        return TensorBox(StorageBox(None, buffer), value.shape, value.dtype)

    def _realize_shared(self, node: Node, result: object) -> None:
        """Realize a value with several users, so that it is computed once. Index arithmetic and constants are cheap and get
        repeated."""
        for each in result if isinstance(result, tuple) else (result,):
            for box in (each.real, each.imag) if isinstance(each, ComplexBox) else (each,):
                if isinstance(box, TensorBox) and not box.is_realized and _reads_memory(box):
                    self.builder.realize(box)

    def _lower_outputs(self, values: tuple) -> list[OutputView]:
        """Return the outputs. Outputs that share memory in eager share it here, with eager's strides."""
        nodes = dict.fromkeys(value for value in values if isinstance(value, Node) and not _is_number(value))
        viewers = Counter(_storage_of(node) for node in nodes)
        made = {node: self._lower_output(node, viewers[_storage_of(node)] > 1) for node in nodes}
        made |= {node: OutputView("", (), (), 0, as_size(node.meta["val"])) for node in values if _is_number(node)}
        return [made[value] if isinstance(value, Node) else OutputView("", (), (), 0, value) for value in values]

    def _lower_output(self, node: Node, shared: bool) -> OutputView:
        box, fake = self.boxes[node], node.meta["val"]
        size, stride = as_sizes(box.size), as_sizes(fake.stride())
        self.builder.origin, self.builder.lines = node.name, source_line(node)
        if node.op != "call_function":
            name = (box.real if isinstance(box, ComplexBox) else box).storage.buffer.name
            return OutputView(name, size, stride, 0, is_whole=True)
        if not fake.numel():
            return OutputView(self.builder.copy(box).storage.buffer.name, size, stride, 0)
        root = self._root[_storage_of(node)]
        same_elements = root.meta["val"].dtype is fake.dtype  # a complex tensor may be viewed as pairs of reals
        if root.op == "call_function" and same_elements and (shared or not _is_dense(fake)):
            whole, base = self._in_layout(root), root.meta["val"]
            offset = as_size(whole.offset + as_size(fake.storage_offset()) - as_size(base.storage_offset()))
            return OutputView(whole.buffer, size, stride, offset)
        found = self._in_layout(node)
        return OutputView(found.buffer, size, stride if same_elements and _is_dense(fake) else found.strides, found.offset)

    def _in_layout(self, node: Node) -> Operand:
        """Return a buffer with a node's elements and the strides of its fake value; copies if necessary."""
        found = self._placed.get(node)
        if found is None:
            found = self._placed[node] = self._find_or_copy(node, as_sizes(node.meta["val"].stride()))
        return found

    def _find_or_copy(self, node: Node, stride: tuple[Size, ...]) -> Operand:
        box = self.boxes[node]
        if isinstance(box, ComplexBox):
            return complex_operand(self.builder, box, stride) or self._complex_copy(box, stride)
        size = as_sizes(box.size)
        if not box.is_realized and not same_strides(size, row_major(size), stride):
            self.builder.origin, self.builder.lines = box.storage.data.origin, box.storage.lines
            return self._copy_with(box, stride)  # compute the loop directly in its final layout
        found = self.builder.operand(box, box.size)
        is_own = found is not None and self._has_dtype(found.buffer, box.dtype) and not self.builder.is_folded(found.buffer)
        if is_own and same_strides(size, found.strides, stride):
            # A template's results may share one buffer, but outputs that do not share memory in eager must not here.
            if self._owners.setdefault(found.buffer, _storage_of(node)) is _storage_of(node):
                return found
        return self._copy_with(box, stride)

    def _complex_copy(self, box: ComplexBox, stride: tuple[Size, ...]) -> Operand:
        """Return a complex tensor in memory with these strides, or row-major if they leave gaps."""
        size = as_sizes(box.size)
        order = _outermost_first(size, stride)
        return Operand(into_memory(self.builder, box, order), 0, _strides_in_order(size, order))

    def _has_dtype(self, name: str, kind: dtype) -> bool:
        """Return whether a buffer has this dtype. It may differ: pairs of reals may be stored in a complex buffer."""
        return next(buffer for buffer in self.builder.buffers if buffer.name == name).layout.dtype is kind

    def _copy_with(self, box: TensorBox, stride: tuple[Size, ...]) -> Operand:
        """Return a copy with these strides."""
        order = _outermost_first(as_sizes(box.size), stride)
        moved = box.view([box.size[dim] for dim in order], lambda index: _unpermute(index, order))
        copied = self.builder.copy(moved).view(box.size, lambda index: [index[dim] for dim in order])
        return self.builder.operand(copied, box.size)

    # Mutated inputs

    def _write_backs(self, nodes: list[Node]) -> list[WriteBack]:
        """Return the values to write back to inputs, each in a buffer with its input's layout."""
        made: list[WriteBack] = []
        viewers = Counter(_storage_of(node) for node in self.module.graph.nodes if node.op in ("placeholder", "get_attr")
                          and isinstance(node.meta["val"], Tensor))  # fmt: skip
        for node in nodes:
            target, source = node.args[:2]
            self.builder.origin, self.builder.lines = node.name, source_line(node)
            buffer = self._in_layout_of(source, target, {write.buffer for write in made})
            made.append(WriteBack(self.boxes[target].storage.buffer.name, buffer, viewers[_storage_of(target)] == 1))
        return made

    def _in_layout_of(self, source: Node, target: Node, taken: set[str]) -> str:
        """Return the name of a buffer in an input's layout that holds only a node's value."""
        box, stride = self.boxes[source], as_sizes(target.meta["val"].stride())
        found, size = self.builder.operand(box, box.size), as_sizes(box.size)
        if found is not None and found.offset == 0 and same_strides(size, found.strides, stride) and found.buffer not in taken:
            buffer = self.builder.by_name[found.buffer]
            own = not isinstance(buffer, InputBuffer | ConstantBuffer) and not self.builder.is_folded(found.buffer)
            if own and buffer.layout.numel == as_size(math.prod(box.size)):
                return found.buffer
        return self._copy_with(box, stride).buffer


def _storages(value: object) -> list[StorageBox]:
    """Return the storages of all boxes in a rule's arguments or results."""
    if isinstance(value, ComplexBox):
        return _storages([value.real, value.imag])
    if isinstance(value, list | tuple | dict):
        return [storage for item in (value.values() if isinstance(value, dict) else value) for storage in _storages(item)]
    return [value.storage] if isinstance(value, TensorBox) else []


def _storage_of(node: Node) -> StorageImpl:
    return node.meta["val"]._impl.storage


def _is_dense(value: Tensor) -> bool:
    """Return whether a tensor's elements fill a block of memory without overlap."""
    size, stride = as_sizes(value.shape), as_sizes(value.stride())
    if not all(isinstance(number, int) for number in (*size, *stride)):
        return _innermost_first(size, stride) is not None
    expected = 1
    for step, extent in sorted(zip(stride, size, strict=True)):
        if extent > 1 and step != expected:
            return False
        expected *= extent
    return True


def _outermost_first(size: tuple[Size, ...], stride: tuple[Size, ...]) -> list[int]:
    """Return the dimensions in the order in which a row-major tensor would have these strides; UnsupportedSize if it depends on
    sizes."""
    if all(isinstance(step, int) for step in stride):
        return sorted(range(len(stride)), key=lambda dim: (-stride[dim], dim))
    order = _innermost_first(size, stride)
    if order is None:
        raise UnsupportedSize(f"the order in which dimensions of strides {list(stride)} lie depends on their sizes")
    return order[::-1]


def _innermost_first(size: tuple[Size, ...], stride: tuple[Size, ...]) -> list[int] | None:
    """Return the dimensions by increasing symbolic stride, where each stride spans the dimensions before it; None if there is
    no such order."""
    order = [dim for dim, extent in enumerate(size) if extent == 1]
    left = [dim for dim, extent in enumerate(size) if extent != 1]
    expected: Size = 1
    while left:
        following = next((dim for dim in left if stride[dim] == expected), None)
        if following is None:
            return None
        left.remove(following)
        order.append(following)
        expected = as_size(expected * size[following])
    return order


def _resolve_size(value: SymInt | int) -> SymInt | int:
    """Return a size for lowering rules: an int if the size is known by now."""
    return as_size(value) if isinstance(as_size(value), int) else value


def _is_number(value: object) -> bool:
    return isinstance(value, Node) and isinstance(value.meta["val"], SymInt | SymFloat | int)


def _check_sizes(node: Node, box: object) -> None:
    """Raise UnsupportedSize unless the box has the sizes of the fake tensor, if these are symbolic."""
    shape = tuple(node.meta["val"].shape)
    if not isinstance(box, TensorBox) or not any(isinstance(size, SymInt) for size in (*shape, *box.size)):
        return
    have, want = as_sizes(box.size), as_sizes(shape)
    if have != want and not (len(have) == len(want) and all(a == b for a, b in zip(box.size, shape, strict=True))):
        raise UnsupportedSize(f"{node.name} was captured with sizes {list(want)} and lowered to {list(have)}")


def _strides_in_order(size: Sequence[Size], order: Sequence[int]) -> tuple[Size, ...]:
    """Return the strides of a dense tensor with this order of dimensions, the outermost first."""
    steps = row_major([size[dim] for dim in order])
    return tuple(steps[order.index(dim)] for dim in range(len(size)))


def _unpermute(index, order):
    placed = [None] * len(order)
    for position, dim in enumerate(order):
        placed[dim] = index[position]
    return placed


def _select_different_indices(users: Collection[Node]) -> bool:
    """Return whether each user selects another index of the same dimension, so that every element is used once."""
    selections = [user.args[1:] for user in users if user.target is SELECT and not user.kwargs]
    known = all(isinstance(number, int) and number >= 0 for selection in selections for number in selection)
    apart = len(set(selections)) == len(selections) == len(users) and len({dim for dim, _ in selections}) == 1
    return known and apart


def _reads_memory(box: TensorBox) -> bool:
    return any(isinstance(node, Load) for node in walk(box.storage.data.body))


def _layout_of(value: Tensor) -> FixedLayout:
    return FixedLayout(value.dtype, as_sizes(value.shape), as_sizes(value.stride()))


def source_line(node: Node) -> tuple[str, ...]:
    """Return the user's source line of a node as `path:line in function: code`, if it is known.

    Trailing backslashes are stripped, because a C++ comment with one would continue on the next line.
    """
    frame = innermost_frame(node.stack_trace)
    if frame is None:
        return ()
    path, line, function, code = frame
    text = f"{path}:{line} in {function}: {code}".rstrip("\\ \t\v\f")
    return (text.encode("utf-8", "backslashreplace").decode(),)  # a path may contain undecodable bytes
