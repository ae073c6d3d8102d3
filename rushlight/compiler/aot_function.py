"""`aot_function`: compiles a function's forward and backward graphs of aten operators, each with a compiler of the user's.

In: a function of tensors, and compilers `(GraphModule, example_inputs) -> callable`. Out: a function that traces its first call
for each kind of inputs, compiles the graphs, and runs them. Only the inputs are guarded: Python branches are fixed by the
traced call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rushlight.aot import partition
from rushlight.aot.errors import Untraceable
from rushlight.aot.joint import trace_joint
from rushlight.aot.partition import Partition
from rushlight.aot.tangents import backward_of
from rushlight.aot.training import CompiledTraining, RunnablePart, plan_run
from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler.passes import PIPELINE, check
from rushlight.core.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.regions import disable
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.stateless import functional_call
from rushlight.ops.dispatcher import OpOverload

GraphCompiler = Callable[[GraphModule, list[Any]], Callable]


class Compilers(NamedTuple):
    """The compilers and the partition function for one program."""

    forward: GraphCompiler
    backward: GraphCompiler
    inference: GraphCompiler
    partition: Callable[..., tuple[GraphModule, GraphModule]]
    decompositions: Mapping[OpOverload, Callable]


# Partition functions


def default_partition(joint_module: GraphModule, _joint_inputs: object, *, num_fwd_outputs: int, **_: Any) -> tuple:
    """Partition a joint graph; everything that the backward reads is saved."""
    return _as_pair(joint_module, partition.default_partition)


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs: object, compiler: str = "inductor", *, num_fwd_outputs: int, **_: Any
) -> tuple:
    """Partition a joint graph so that the fewest bytes are saved; the backward recomputes the rest."""
    return _as_pair(joint_module, partition.min_cut_partition)


def _as_pair(joint_module: GraphModule, divide: Callable) -> tuple[GraphModule, GraphModule]:
    """Partition a joint graph with `divide`, and return its forward and backward modules. ValueError for other graphs."""
    joint = joint_module.meta.get("joint")
    if joint is None:
        raise ValueError("only a joint graph that aot_function made can be partitioned")
    made: Partition = divide(joint)
    made.forward.meta["partition"] = made
    return made.forward, made.backward


# Boxed functions


def make_boxed_func(f: Callable) -> Callable[[list], Any]:
    """Convert `f` to take its arguments as one list, which it may empty to free tensors early."""

    def boxed(args: list) -> Any:
        return f(*args)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler: GraphCompiler) -> GraphCompiler:
    """Convert a compiler to return boxed functions."""
    return lambda module, example_inputs: make_boxed_func(compiler(module, example_inputs))


def _unbox_inputs(compiled: Callable) -> Callable:
    return (lambda *values: compiled(list(values))) if getattr(compiled, "_boxed_call", False) else compiled


def _compile_module(compiler: GraphCompiler, module: GraphModule) -> Callable:
    """Call the user's compiler on a graph with fake inputs, and return the callable that it made."""
    inputs = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    made = compiler(module, inputs)
    if not callable(made):
        raise TypeError(f"a compiler returns a callable, got {type(made).__name__}")
    return _unbox_inputs(made)


# Compile functions


class _Program(NamedTuple):
    """A traced program: the function of flat tensors, and the structure of its results."""

    run: Callable[..., Sequence]
    spec: TreeSpec


def aot_function(
    fn: Callable, fw_compiler: GraphCompiler, bw_compiler: GraphCompiler | None = None,
    partition_fn: Callable = default_partition, decompositions: Mapping[OpOverload, Callable] | None = None,
    num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
    inference_compiler: GraphCompiler | None = None, *, dynamic: bool = False, enable_log: bool = True,
) -> Callable:  # fmt: skip
    """Compile `fn`, tracing its first call: through autograd into one joint graph if gradients are needed, which `partition_fn`
    splits for `fw_compiler` and `bw_compiler` (by default the same).

    Without gradients there is one graph, for `inference_compiler` (by default `fw_compiler`). A call with inputs of other sizes
    or kinds is traced again. A compiler gets fake inputs and a GraphModule of aten operators that mutates nothing but inputs.
    The callable it returns is called with tensors, or with a list of them if it has `_boxed_call`. `decompositions` maps
    operators to functions that are traced instead. The other arguments have no effect. RuntimeError if `fn` has no joint graph.
    """
    compilers = Compilers(
        fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler, partition_fn, decompositions or {}
    )
    programs: dict[tuple, _Program] = {}
    lock = threading.Lock()

    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        key = (spec, state.grad_enabled, *map(_kind_of, leaves))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        with lock:
            program = programs.get(key)
            if program is None:
                program = programs[key] = _Tracer(fn, leaves, spec, compilers).program(tensors)
        return tree_unflatten(list(program.run(*tensors)), program.spec)

    return compiled


def _kind_of(leaf: object) -> object:
    """Return the properties of an argument that a compiled program depends on."""
    if isinstance(leaf, Tensor):
        return tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad
    return type(leaf), leaf


class _Tracer:
    """Traces a function for one kind of inputs."""

    def __init__(self, function: Callable, leaves: list, spec: TreeSpec, compilers: Compilers) -> None:
        self.function = function
        self.leaves = leaves
        self.spec = spec
        self.compilers = compilers
        self.result_spec: TreeSpec | None = None

    def flat(self, *tensors: Tensor) -> tuple:
        """Return the function of its tensors alone; returns its results as a flat tuple."""
        remaining = iter(tensors)
        leaves = [next(remaining) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.spec)
        results, self.result_spec = tree_flatten(self.function(*args, **kwargs))
        return tuple(results)

    def program(self, tensors: list[Tensor]) -> _Program:
        """Trace and compile the function for tensors like these."""
        if state.grad_enabled and any(tensor.requires_grad for tensor in tensors):
            try:
                return _Program(self._compile_training(tensors), self.result_spec)
            except Untraceable as reason:
                if "no output depends" not in str(reason):
                    raise RuntimeError(f"aot_function: there is no joint graph, because {reason}") from reason
        return _Program(self._compile_inference(tensors), self.result_spec)

    def _compile_inference(self, tensors: list[Tensor]) -> Callable:
        """Trace the function without gradients, and compile its graph."""
        with set_grad_enabled(state.grad_enabled):
            captured = capture(
                self.flat, tuple(tensors), class_name="<lambda>", decompositions=self.compilers.decompositions
            )
        for graph_pass in PIPELINE:
            graph_pass(captured.module)
        return _compile_module(self.compilers.inference, captured.module)

    def _compile_training(self, tensors: list[Tensor]) -> Callable:
        """Trace the joint graph of the function, partition it, and compile forward and backward."""
        joint = trace_joint(self.flat, tensors, {}, None, self.compilers.decompositions)
        for graph_pass in PIPELINE:
            graph_pass(joint.module)
        if joint.module.meta.get("keep_eager"):
            raise Untraceable(joint.module.meta["keep_eager"])
        parts = self._partition(joint)
        forward = _compile_module(self.compilers.forward, parts.forward)
        backward = _compile_module(self.compilers.backward, parts.backward)
        return CompiledTraining(
            plan_run(joint, parts), forward, backward, disable(lambda arrived: self._compile_subset(parts, arrived)),
            disable(self.flat),
            lambda reason: None,
        )  # fmt: skip

    def _partition(self, joint: Any) -> Partition:
        joint.module.meta["joint"] = joint
        given = [node.meta["val"] for node in joint.placeholders]
        count = len(joint.primals)
        forward, _ = self.compilers.partition(
            joint.module, (given[:count], given[count:]), num_fwd_outputs=len(joint.results.computed)
        )
        parts = forward.meta.get("partition")
        if parts is None:
            raise ValueError("partition_fn must return what default_partition or min_cut_rematerialization_partition returned")
        for module in (parts.forward, parts.backward):
            check(module)
        return parts

    def _compile_subset(self, parts: Partition, arrived: frozenset[int]) -> RunnablePart:
        """Compile a backward for only some results."""
        part = backward_of(parts, arrived)
        check(part.module)
        return RunnablePart(_compile_module(self.compilers.backward, part.module), part.saved, part.gradients)


# Compile modules


class AOTModule(Module):
    """A module that runs what `aot_function` compiled; its parameters are the original's."""

    def __init__(self, module: Module, compiled: Callable) -> None:
        super().__init__()
        self.orig_module = module
        object.__setattr__(self, "_compiled", compiled)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the original module's result."""
        return self._compiled(_tensors_of(self.orig_module), *args, **kwargs)


def _tensors_of(module: Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """Return a module like `mod`, compiled by `aot_function` with these arguments. Parameters and buffers are the first inputs
    of its graphs."""
    return AOTModule(mod, aot_function(lambda tensors, *given, **named: functional_call(mod, tensors, given, named),
                                       *args, **kwargs))  # fmt: skip


def aot_module_simplified(mod: Module, args: Sequence, fw_compiler: GraphCompiler, *others: Any, **options: Any) -> Callable:
    """Compile a captured graph's module for inputs like `args`, as `aot_function` does, for backends of `torch.compile`."""
    compiled = aot_module(mod, fw_compiler, *others, **options)
    return lambda *inputs: compiled(*inputs)
