"""`compile(..., verify=True)`: compares native code with the interpreter at each call, and finds the first node that differs.

In: a graph of aten operators, its native callable, and a builder that compiles parts of it. Out: a callable with the native
results, which raises `CompiledResultDiffers` if the interpreter's differ. Stage: compiler, for debugging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rushlight.aot.memory import is_write, owner_of, written_arguments
from rushlight.compiler.differences import Difference, compare, is_rounding
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.dtype import dtype, float64
from rushlight.core.generator import default_generator
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.annotations import innermost_frame
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
Build = Callable[[GraphModule], Callable[..., tuple]]


class CompiledResultDiffers(RuntimeError):
    """Native code gave a different result than the interpreter. `node` names the first node that differs, "" if none was
    found."""

    def __init__(self, message: str, node: str = ""):
        super().__init__(message)
        self.node = node


class Verified:
    """Runs a graph both ways. Writes to inputs and draws from the generator take effect once."""

    def __init__(self, name: str, module: GraphModule, native: Callable[..., tuple], build: Build):
        self.name = name
        self.module = module
        self.native = native
        self.build = build
        self._placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._written = list(dict.fromkeys(_written_owners(module.graph)))

    def __call__(self, *inputs: object) -> tuple:
        """Return the native results; CompiledResultDiffers if they differ from the interpreter's."""
        written = [self._tensor(node, inputs) for node in self._written]
        before = _Snapshot(written)
        with ExcludeKeys(AUTOGRAD_BITS):
            expected = [_copy_tensor(value) for value in Interpreter(self.module).run(*inputs)]
            expected_writes = [_copy_tensor(tensor) for tensor in written]
        before.restore()
        results = self.native(*inputs)
        pairs = [*zip(results, expected, strict=True), *zip(written, expected_writes, strict=True)]
        if any(compare(got, want) for got, want in pairs) and not self._is_rounding(inputs, before, pairs):
            after = default_generator.get_state()
            before.restore()
            self._raise_difference(inputs, before, pairs)
            default_generator.set_state(after)
        return results

    def _is_rounding(self, inputs: Sequence[object], before: _Snapshot, pairs: list[tuple]) -> bool:
        """Return whether results differ only by rounding where values cancel, as in gradients that are zero: the graph runs
        once more in float64. Graphs that write to their inputs are not checked this way."""
        if self._written:
            return False
        after = default_generator.get_state()
        before.restore()
        try:
            with ExcludeKeys(AUTOGRAD_BITS):
                exact = _InFloat64(self.module).run(*inputs)
        except Exception:  # an operator may have no float64 version
            return False
        finally:
            default_generator.set_state(after)
        triples = [(got, want, wide) for (got, want), wide in zip(pairs, exact, strict=True)]
        return all(not compare(got, want) or is_rounding(got, want, wide) for got, want, wide in triples)

    def _tensor(self, node: Node, inputs: Sequence[object]) -> Tensor:
        """Return the tensor that a placeholder or `get_attr` node stands for."""
        if node.op == "get_attr":
            return getattr(self.module, node.target)
        return inputs[self._placeholders.index(node)]

    def _raise_difference(self, inputs: Sequence[object], before: _Snapshot, pairs: list[tuple]) -> None:
        """Find the first node that differs, and raise CompiledResultDiffers."""
        found = Search(self.module, self.build, inputs, before).first_difference()
        if found is None:
            difference = next(filter(None, (compare(got, want) for got, want in pairs)))
            raise CompiledResultDiffers(
                f"verify: native code for {self.name} gives another result than the interpreter: {difference}. Parts of the "
                "graph give the same, so that no node can be named: the error lies in how they are put together, or in a write "
                "to an input"
            )
        node, difference = found
        raise CompiledResultDiffers(
            f"verify: native code for {self.name} differs from the interpreter from node {node.name} on ({node.target}"
            f"{_line(node)}): {difference}", node.name,
        )  # fmt: skip


class _Snapshot:
    """The contents of tensors and the state of the default generator."""

    def __init__(self, tensors: Sequence[Tensor]):
        self._kept = [(tensor, _copy_tensor(tensor), tensor._impl.version.value) for tensor in tensors]
        self._state = default_generator.get_state()

    def restore(self) -> None:
        """Restore contents, versions and generator state."""
        default_generator.set_state(self._state)
        for tensor, contents, version in self._kept:
            with ExcludeKeys(AUTOGRAD_BITS):
                aten.copy_.default(tensor, contents)
            tensor._impl.version.value = version


def _written_owners(graph: Graph) -> Iterator[Node]:
    """Yield the inputs and constants that the graph writes to."""
    for node in graph.nodes:
        if is_write(node):
            owners = (owner_of(target) for _, target in written_arguments(node))
            yield from (owner for owner in owners if owner.op in ("placeholder", "get_attr"))


def _copy_tensor(value: object) -> object:
    """Copy a tensor without recording gradients; return other values unchanged."""
    if not isinstance(value, Tensor):
        return value
    with ExcludeKeys(AUTOGRAD_BITS):
        return aten.clone.default(value)


def _line(node: Node) -> str:
    frame = innermost_frame(node.stack_trace)
    return "" if frame is None else f", {frame[0]}:{frame[1]} in {frame[2]}: {frame[3]}"


class Search:
    """Finds the first differing node by bisection over prefixes of the graph."""

    def __init__(self, module: GraphModule, build: Build, inputs: Sequence[object], before: _Snapshot):
        self.module = module
        self.build = build
        self.inputs = inputs
        self.before = before
        self.values = _Recording(module)
        before.restore()
        with ExcludeKeys(AUTOGRAD_BITS):
            self.values.run(*inputs)
        before.restore()
        self.calls = [node for node in module.graph.nodes if node.op == "call_function" and not _writes_outside(node)]

    def first_difference(self) -> tuple[Node, Difference] | None:
        """Return the node, and how its value differs; None if no prefix of the graph differs."""
        wrong = self._find_difference(len(self.calls))
        right, end = 0, len(self.calls)
        if wrong is None:
            return None
        while end - right > 1:
            middle = (right + end) // 2
            found = self._find_difference(middle)
            if found is None:
                right = middle
            else:
                wrong, end = found, middle
        return wrong

    def _find_difference(self, count: int) -> tuple[Node, Difference] | None:
        """Return how the prefix of `count` calls differs in the values that later calls use."""
        part, shown = self._prefix_module(count)
        if not shown:
            return None
        run = self.build(part)
        self.before.restore()
        results = run(*self.inputs)
        for node, got in reversed(list(zip(shown, results, strict=True))):
            difference = compare(got, self.values.seen[node])
            if difference:
                return node, difference
        return None

    def _prefix_module(self, count: int) -> tuple[GraphModule, list[Node]]:
        """Make a module of the first `count` calls of the graph, which returns the values that later calls use."""
        taken = set(self.calls[:count])
        graph, copied = Graph(), {}
        for node in self.module.graph.nodes:
            if node in taken or node.op in ("placeholder", "get_attr"):
                copied[node] = graph.node_copy(node, copied.__getitem__)
        shown = [node for node in self.calls[:count] if _is_shown(node, taken)]
        graph.output(tuple(copied[node] for node in shown))
        return GraphModule(self.module, graph, "part"), shown


def _writes_outside(node: Node) -> bool:
    """Return whether a node writes to an input or constant."""
    return is_write(node) and any(owner_of(target).op != "call_function" for _, target in written_arguments(node))


def _is_shown(node: Node, taken: set[Node]) -> bool:
    """Return whether a node's value is used outside the taken nodes, unmodified."""
    is_tensor, written = isinstance(node.meta.get("val"), Tensor), any(map(is_write, node.users.keys() & taken))
    return is_tensor and not written and not node.users.keys() <= taken


class _Recording(Interpreter):
    """Records a copy of every value."""

    def __init__(self, module: GraphModule):
        super().__init__(module, garbage_collect_values=False)
        self.seen: dict[Node, object] = {}

    def run_node(self, node: Node) -> object:
        """Return the node's result."""
        result = super().run_node(node)
        self.seen[node] = _copy_tensor(result)
        return result


class _InFloat64(Interpreter):
    """Computes in float64 what a graph computes in any real dtype."""

    def run_node(self, node: Node) -> object:
        """Return the node's result."""
        result = super().run_node(node)
        return result if node.op in ("call_function", "output") else _widen_to_float64(result)

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> object:
        """Return the call with float64 instead of other real dtypes."""
        keywords = {name: _widen_to_float64(item) for name, item in kwargs.items()}
        return super().call_function(target, tuple(map(_widen_to_float64, args)), keywords)


def _widen_to_float64(value: object) -> object:
    """Convert floating-point tensors and dtypes to float64; return other values unchanged."""
    if isinstance(value, Tensor) and value.dtype.is_floating_point:
        return value.to(float64)
    return float64 if isinstance(value, dtype) and value.is_floating_point else value
