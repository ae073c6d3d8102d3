"""GraphLowering: an fx graph of aten operators, node by node, into buffers of the loops IR.

In: a GraphModule whose nodes carry fake values in `meta["val"]`. Out: a `LoweredGraph`: buffers in order, inputs,
constants, and how each output is a view of a buffer.
"""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass

from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.fx.annotations import innermost_frame
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.inductor.ir import Buffer, ConstantBuffer, FixedLayout, InputBuffer, Load, Operand, buffer_text, walk
from rushlight.inductor.lowering.builder import GraphBuilder, same_strides
from rushlight.inductor.lowering.registry import LOWERINGS
from rushlight.inductor.tensor_box import StorageBox, TensorBox


@dataclass(frozen=True, slots=True)
class OutputView:
    """A graph output: a strided view of a buffer, or a plain Python value. `is_whole`: an input or constant as it is."""

    buffer: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    value: object = None
    is_whole: bool = False


@dataclass(slots=True)
class LoweredGraph:
    """A graph in the loops IR."""

    buffers: list[Buffer]
    inputs: list[InputBuffer]
    constants: list[ConstantBuffer]
    outputs: list[OutputView]

    def __str__(self) -> str:
        outputs = ", ".join(f"{view.buffer}{list(view.size)}" for view in self.outputs)
        return "\n\n".join([*map(buffer_text, self.buffers), f"return ({outputs})\n"])


class GraphLowering:
    """Lowers one GraphModule. Each node's box is kept under its name until the outputs are made."""

    def __init__(self, module: GraphModule):
        self.module = module
        self.builder = GraphBuilder()
        self.boxes: dict[Node, object] = {}
        self._root: dict[StorageImpl, Node] = {}
        self._placed: dict[Node, Operand] = {}

    def run(self) -> LoweredGraph:
        """Lower every node; NotImplementedError when an operator has no rule."""
        outputs: list[OutputView] = []
        for node in self.module.graph.nodes:
            if node.op == "output":
                outputs = self._outputs(node.args[0])
                continue
            self.boxes[node] = self._lower(node)
            if isinstance(node.meta["val"], Tensor):
                self._root.setdefault(_storage(node), node)
        buffers = self.builder.buffers
        return LoweredGraph(
            buffers,
            [buffer for buffer in buffers if isinstance(buffer, InputBuffer)],
            [buffer for buffer in buffers if isinstance(buffer, ConstantBuffer)],
            outputs,
        )

    def _lower(self, node: Node) -> object:
        if node.op == "placeholder":
            return self._external(InputBuffer(node.name, _layout(node.meta["val"])), node.meta["val"])
        if node.op == "get_attr":
            return self._external(
                ConstantBuffer(node.name, _layout(node.meta["val"]), target=node.target), node.meta["val"]
            )
        if node.target is operator.getitem:
            return self.boxes[node.args[0]][node.args[1]]
        rule = LOWERINGS.get(node.target)
        if rule is None:
            raise NotImplementedError(f"no lowering for {node.target} ({node.format_node()})")
        builder = self.builder
        builder.origin, builder.lines = node.name, source_line(node)
        args, kwargs = map_arg(node.args, self.boxes.__getitem__), map_arg(node.kwargs, self.boxes.__getitem__)
        result = rule(builder, *args, **kwargs)
        if len(node.users) > 1:
            self._realize_shared(node, result)
        return result

    def _external(self, buffer: Buffer, value: Tensor) -> TensorBox:
        self.builder.add(buffer)
        return TensorBox(StorageBox(None, buffer), value.shape, value.dtype)

    def _realize_shared(self, node: Node, result: object) -> None:
        """Compute what several nodes use once; cheap index arithmetic and constants are repeated instead."""
        for box in result if isinstance(result, tuple) else (result,):
            if isinstance(box, TensorBox) and not box.is_realized and _reads_memory(box):
                self.builder.realize(box)

    def _outputs(self, values: tuple) -> list[OutputView]:
        """The outputs. Those that share memory in eager share it here, with eager's strides."""
        nodes = dict.fromkeys(value for value in values if isinstance(value, Node))
        viewers = Counter(_storage(node) for node in nodes)
        made = {node: self._output(node, viewers[_storage(node)] > 1) for node in nodes}
        return [made[value] if isinstance(value, Node) else OutputView("", (), (), 0, value) for value in values]

    def _output(self, node: Node, shared: bool) -> OutputView:
        box, fake = self.boxes[node], node.meta["val"]
        stride = tuple(fake.stride())
        self.builder.origin, self.builder.lines = node.name, source_line(node)
        if not fake.numel() and node.op == "call_function":
            return OutputView(self.builder.copy(box).storage.buffer.name, box.size, stride, 0)
        root = self._root[_storage(node)]
        if root.op == "call_function" and (shared or not _is_dense(fake)):
            whole, base = self._in_layout(root), root.meta["val"]
            return OutputView(whole.buffer, box.size, stride, whole.offset + fake.storage_offset() - base.storage_offset())
        found = self._in_layout(node)
        return OutputView(found.buffer, box.size, stride, found.offset, is_whole=node.op != "call_function")

    def _in_layout(self, node: Node) -> Operand:
        """Where the elements of a node lie in memory with the strides of its fake value, after a copy if need be."""
        found = self._placed.get(node)
        if found is None:
            found = self._placed[node] = self._find_or_copy(self.boxes[node], node.meta["val"].stride())
        return found

    def _find_or_copy(self, box: TensorBox, stride: tuple[int, ...]) -> Operand:
        found = self.builder.operand(box, box.size)
        if found is not None and same_strides(box.size, found.strides, stride):
            return found
        order = sorted(range(len(box.size)), key=lambda dim: (-stride[dim], dim))
        moved = box.view([box.size[dim] for dim in order], lambda index: _unpermute(index, order))
        copied = self.builder.copy(moved).view(box.size, lambda index: [index[dim] for dim in order])
        return self.builder.operand(copied, box.size)


def _storage(node: Node) -> StorageImpl:
    return node.meta["val"]._impl.storage


def _is_dense(value: Tensor) -> bool:
    """Whether a tensor's elements fill a block of memory, each in a place of its own."""
    expected = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _unpermute(index, order):
    placed = [None] * len(order)
    for position, dim in enumerate(order):
        placed[dim] = index[position]
    return placed


def _reads_memory(box: TensorBox) -> bool:
    return any(isinstance(node, Load) for node in walk(box.storage.data.body))


def _layout(value: Tensor) -> FixedLayout:
    return FixedLayout(value.dtype, tuple(value.shape), tuple(value.stride()))


def source_line(node: Node) -> tuple[str, ...]:
    """`path:line in function: code` of the user's line that a node comes from, if it is known."""
    frame = innermost_frame(node.stack_trace)
    if frame is None:
        return ()
    path, line, function, code = frame
    return (f"{path}:{line} in {function}: {code}",)
