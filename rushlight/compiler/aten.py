"""Lower dynamo's graph to aten operators and compile it.

In: a GraphModule of library calls, example inputs, and a builder that compiles aten graphs. Out: a callable over the same
inputs. Dynamo's guards hold when it is called; assumptions of the aten graph beyond them are checked here.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rushlight._C import GraphLaunch
from rushlight.aot.errors import Untraceable
from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.autograd.profiler import compile_stage
from rushlight.compiler.kept_plans import KeptPlans, gives_inputs
from rushlight.compiler.logs import StageLog, heard_run
from rushlight.compiler.open_inputs import Opened, open_inputs
from rushlight.core.dtype import QUANTIZED
from rushlight.core.lazy_module import LazyModule
from rushlight.core.pytree import tree_flatten
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.inductor.compiled import ConstantChanged

if TYPE_CHECKING:
    from rushlight.compiler.kept_graphs import KeptGraph
    from rushlight.compiler.passes import Pass
    from rushlight.fx.proxy_tensor import Capture

training, graph_passes, proxy_tensor = map(LazyModule, (
    "rushlight.compiler.training", "rushlight.compiler.passes", "rushlight.fx.proxy_tensor",
))  # fmt: skip

Builder = Callable[[GraphModule, list[Tensor]], Callable]
# A graph that writes to memory is compiled for each way in which its inputs share memory. After this many it runs in eager.
_MAX_PLACEMENTS = 8


def compile_to_aten(
    module: GraphModule, inputs: list[Tensor], build: Builder, names: Callable[[], dict[TensorImpl, str]], log: StageLog,
    passes: Callable[[], list[Pass]], kept: KeptPlans | None = None,
) -> Callable:  # fmt: skip
    """Compile `module` by way of aten operators, with its backward if gradients are needed; returns `module.forward` if that
    fails.

    Sizes that dynamo left open stay open. With `kept`, a graph with a kept plan runs by it.
    """
    if any(isinstance(value, Tensor) and value.device.type not in ("cpu", "cuda") for value in inputs):
        log("graph_breaks", lambda: "runs as captured: an input is on a device that is neither the CPU nor a GPU")
        return heard_run(log, module.forward)
    if any(isinstance(value, Tensor) and value.dtype.category == QUANTIZED for value in inputs):
        log("graph_breaks", lambda: "runs as captured: an input is quantized")
        return heard_run(log, module.forward)
    log.graph("captured", module)
    opened = open_inputs(module)
    kind = training.TrainingGraph if needs_gradients(module) else AtenGraph
    graph = kind(lambda: module, build, names, log, passes, opened, kept)
    try:
        graph.compile(inputs)
    except Untraceable as reason:
        text = str(reason)
        log("graph_breaks", lambda: f"runs as captured, by eager's autograd: {text}")
        return heard_run(log, module.forward)
    except Exception as error:  # a compiler error must not break the program
        if opened is not None:
            raise  # dynamo captures again with fixed sizes
        warnings.warn(
            f"compile: running {log.name} as captured, because making its graph of aten operators failed, which should be "
            f"reported: {type(error).__name__}: {error}", stacklevel=2,
        )  # fmt: skip
        return heard_run(log, module.forward)
    return graph.run


def needs_gradients(module: GraphModule) -> bool:
    """Return whether the graph computes a value that needs gradients. A view of a parameter made in no_grad mode is a leaf and
    needs none."""
    calls = (node for node in module.graph.nodes if node.op.startswith("call_"))
    tensors = (tensor for node in calls for tensor in _tensors(node.meta.get("example_value")))
    return any(_requires_grad(tensor) and _has_history(tensor) for tensor in tensors)


def _has_history(tensor: Tensor) -> bool:
    try:
        return not tensor.is_leaf
    except RuntimeError:  # `requires_grad` raises for a no_grad view whose base was modified
        return False


def _tensors(value: object) -> Iterator[Tensor]:
    return (leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor))


def _requires_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _results_requiring_grad(module: GraphModule) -> list[bool]:
    """Return for each result whether it requires grad: an input, or a view of one made in no_grad mode, may."""
    results = tree_flatten(module.graph.output_node().args[0])[0]
    return [isinstance(result, Node) and _requires_grad(result.meta.get("example_value")) for result in results]


def _share_inputs(module: GraphModule) -> bool:
    """Return whether results of an aten graph share memory with its inputs: native code may return an input itself for a
    detached one."""
    read = (node for node in module.graph.nodes if node.op in ("placeholder", "get_attr"))
    memory = {tensor._impl.storage for node in read for tensor in _tensors(node.meta.get("val"))}
    results = (node for node in tree_flatten(module.graph.output_node().args[0])[0] if isinstance(node, Node))
    return any(tensor._impl.storage in memory for node in results for tensor in _tensors(node.meta.get("val")))


def _without_gradients(run: Callable, asking: list[bool]) -> Callable:
    """Wrap `run` of a program whose results have no history, although its inputs may require grad."""

    def call(*tensors: Tensor | int) -> tuple:
        with set_grad_enabled(False):
            results = run(*tensors)
            return tuple([
                result.detach() if _requires_grad(result) and not asks else result
                for result, asks in zip(results, asking, strict=True)
            ])  # fmt: skip

    return call


class Made(NamedTuple):
    """A compiled program: its callable, whether it only fits inputs that share memory in the same way, and whether it holds
    tensors that may change."""

    run: Callable
    is_placed: bool
    has_constants: bool


class AtenGraph:
    """Runs a module as aten operators. It is captured again when a parameter's size, strides or dtype changes; a graph that
    writes to memory also for each way in which inputs share memory. `captured` makes the module when it is needed.
    Thread-safe."""

    def __init__(
        self, captured: Callable[[], GraphModule], build: Builder, names: Callable[[], dict[TensorImpl, str]], log: StageLog,
        passes: Callable[[], list[Pass]], opened: Opened | None = None, kept: KeptPlans | None = None,
    ):  # fmt: skip
        self._captured = captured
        self.passes = passes
        self.opened = opened
        self.kept = kept
        self.build = build
        self.names = names
        self.log = log
        self.run: Callable = self._run_compiled
        self._compiled: Callable | None = None
        self._placed: dict[tuple, Callable] | None = None
        self._lock = threading.RLock()

    @functools.cached_property
    def module(self) -> GraphModule:
        """Return the captured graph."""
        return self._captured()

    @functools.cached_property
    def _attributes(self) -> dict[str, Tensor]:
        targets = [node.target for node in self.module.graph.nodes if node.op == "get_attr"]
        return {target: getattr(self.module, target) for target in targets}

    def resume(self, key: str, module: KeptGraph) -> GraphLaunch | None:
        """Run by the plan kept for `module` under this key; None if there is none, or if it needs more than a native launch."""
        found = self.kept.find(key, module, self._make_retracer(state.grad_enabled))
        if found is None or type(found[0]) is not GraphLaunch:
            return None
        run, plan = found
        self._use(run, bool(plan.constants), len(plan.inputs))
        return run

    def compile(self, inputs: list[Tensor]) -> Callable:
        """Capture and compile for inputs that share memory like these."""
        try:
            made, is_placed, has_constants = self._capture_and_compile(inputs)
        except UnguardedSizeError:
            # Compiling here would fix a size that the guards of the captured frame leave open: interpret the graph instead.
            self._compiled = self.run = heard_run(self.log, self.module.forward)
            return self.run
        if is_placed:
            self._placed = self._placed or {}
            self._placed[self._memory_sharing(inputs)] = made
            self.run = self._run_placed
            self._compiled = made
        else:
            self._use(made, has_constants, len(inputs))
        return made

    def _use(self, made: Callable, has_constants: bool, count: int) -> None:
        """Make a callable of `count` inputs run the graph from now on."""
        if type(made) is GraphLaunch and has_constants:
            made.general = self._make_fallback(made, made.general, count)
            self.run = made
        elif not has_constants:
            self.run = made
        self._compiled = made

    def _make_fallback(self, launch: GraphLaunch, general: Callable, count: int) -> Callable:
        """Return the Python fallback of a native launch. If a constant does not fit, it recaptures, for later calls as well. It
        may get a random seed after the program's `count` inputs."""

        def run(*tensors: Tensor | int) -> tuple:
            if self._compiled is not launch:
                return self._compiled(*tensors[:count])
            try:
                return general(*tensors)
            except ConstantChanged:
                return self._compile_again(launch, tensors[:count])(*tensors[:count])

        return run

    def _capture_and_compile(self, inputs: list[Tensor]) -> Made:
        # Only the first capture may use the kept plan; a later one happens because an attribute no longer matches the graph.
        is_first = self.kept is not None and self.opened is None and self._compiled is None
        key = self.kept.key_of(self.module) if is_first else None
        found = None if key is None else self.kept.find(key, self.module, self._make_retracer(state.grad_enabled))
        if found is not None:
            run, plan = found
            self.module.meta["kept_plan"] = key
            return Made(self._set_requires_grad(run, inputs, lambda: gives_inputs(plan)), False, bool(plan.constants))
        captured = self._trace(inputs)
        traced = captured.module
        self.log.graph("graph", traced)
        run = self.build(traced, inputs)
        is_placed = graph_passes.depends_on_placement(traced)
        if key is not None and not is_placed and self.kept.keep(key, self._attributes, traced, captured.constants):
            self.module.meta["kept_plan"] = key
        run = self._set_requires_grad(run, inputs, lambda: _share_inputs(traced))
        return Made(run, is_placed, bool(captured.constants))

    @compile_stage("create_aot_dispatcher_function")
    def _trace(self, inputs: list[Tensor]) -> Capture:
        with set_grad_enabled(state.grad_enabled):  # the graph itself may switch grad mode
            captured = proxy_tensor.capture(self.module, tuple(inputs), names=self._names(), open_leaves=self.opened)
        graph_passes.run(self.passes(), captured.module, self.log)
        return captured

    def _make_retracer(self, grad_enabled: bool) -> Callable[[], GraphModule]:
        """Return a function that traces the aten graph again, with fake inputs."""

        def trace() -> GraphModule:
            fakes = [node.meta["val"] for node in self.module.graph.nodes if node.op == "placeholder"]
            with set_grad_enabled(grad_enabled):
                return self._trace(fakes).module

        return trace

    def _set_requires_grad(self, run: Callable, inputs: list[Tensor], gives_its_inputs: Callable[[], bool]) -> Callable:
        """Wrap `run` so that its results require grad exactly where the captured program's do."""
        trained = any(_requires_grad(tensor) for tensor in (*inputs, *self._attributes.values()))
        if trained and (state.grad_enabled or gives_its_inputs()):
            return _without_gradients(run, _results_requiring_grad(self.module))
        return run

    def _names(self) -> dict[TensorImpl, str]:
        return {tensor._impl: name for name, tensor in self._attributes.items()} | self.names()

    def _run_compiled(self, *tensors: Tensor) -> tuple:
        compiled = self._compiled
        try:
            return compiled(*tensors)
        except ConstantChanged:
            return self._compile_again(compiled, tensors)(*tensors)

    def _compile_again(self, stale: Callable, tensors: tuple[Tensor, ...]) -> Callable:
        with self._lock:
            return self.compile(list(tensors)) if self._compiled is stale else self._compiled

    def _run_placed(self, *tensors: Tensor) -> tuple:
        place = self._memory_sharing(tensors)
        compiled = self._placed.get(place)
        if compiled is None:
            with self._lock:
                compiled = self._placed.get(place) or self._place_anew(tensors)
        try:
            return compiled(*tensors)
        except ConstantChanged:
            with self._lock:
                return self.compile(list(tensors))(*tensors)

    def _place_anew(self, tensors: tuple[Tensor, ...]) -> Callable:
        return self.compile(list(tensors)) if len(self._placed) < _MAX_PLACEMENTS else heard_run(self.log, self.module.forward)

    def _memory_sharing(self, tensors: list[Tensor] | tuple[Tensor, ...]) -> tuple:
        """Return how tensors share memory: for each tensor, the position of the first one with the same storage, and the
        storage offset."""
        first: dict[int, int] = {}
        return tuple([
            (first.setdefault(id(tensor._impl.storage), position), tensor._impl.storage_offset)
            for position, tensor in enumerate((*tensors, *self._attributes.values())) if isinstance(tensor, Tensor)
        ])  # fmt: skip
