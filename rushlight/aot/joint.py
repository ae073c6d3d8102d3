"""The joint graph: a program and its backward, traced together through autograd on fake tensors.

In: a GraphModule of library calls and its inputs: tensors, and ints if these are symbolic. Out: a GraphModule of
aten operators over `primals_1..n` (inputs and parameters) and `tangents_1..k` (gradients of the outputs) that returns the
outputs and the gradients of the primals. Stage: aot, before functionalization and partitioning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rushlight.aot.errors import Untraceable
from rushlight.aot.results import Results, plan_results
from rushlight.autograd.backward import grad
from rushlight.autograd.captured import HasCustomBackward
from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.autograd.node import AccumulateGrad
from rushlight.autograd.node import Node as TapeNode
from rushlight.autograd.profiler import compile_stage
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.pytree import tree_flatten
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.thread_state import state
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import Origin, ProxyMode, origin_of
from rushlight.fx.symbolic_sizes import Geometry
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten


@dataclass
class Joint:
    """A joint graph. Its outputs are `results.computed`, then one gradient for each number in `differentiated`.

    `differentiated` are positions of primals, `tangents` positions of outputs; their placeholders come in that order.
    `is_linear`: tangents of zeros give gradients of zeros; that is not known if the program has a custom backward.
    """

    module: GraphModule
    results: Results
    differentiated: list[int]
    tangents: list[int]
    is_linear: bool

    @property
    def placeholders(self) -> list[Node]:
        """The placeholders: primals, then tangents."""
        return [node for node in self.module.graph.nodes if node.op == "placeholder"]

    @property
    def primals(self) -> list[Node]:
        """The placeholders of the inputs."""
        return self.placeholders[: len(self.placeholders) - len(self.tangents)]


class _WithoutHooks:
    """Context manager that keeps the program's hooks on saved tensors from seeing fake ones."""

    def __enter__(self) -> None:
        self._hooks, state.saved_tensor_hooks = state.saved_tensor_hooks, ()

    def __exit__(self, *error: object) -> None:
        state.saved_tensor_hooks = self._hooks


@compile_stage("create_aot_dispatcher_function")
def trace_joint(
    module: GraphModule | Callable, inputs: Sequence[Tensor | int], attributes: dict[str, Tensor],
    opened: Sequence[Geometry | SymInt | None] | None = None, decompositions: Mapping[OpOverload, Callable] | None = None,
) -> Joint:  # fmt: skip
    """Trace `module` and its backward for `inputs`; `attributes`, by name, are the tensors that it holds, which are primals,
    too.

    `module` may be a Python function, which holds none. `opened` says for each input what to leave symbolic: sizes and strides,
    a SymInt in place of an int, or None. `decompositions` are functions to trace in place of operators. Raises Untraceable,
    with the reason, if a program has no joint graph; errors of the program itself pass through.
    """
    tracer = _JointTracer(module, decompositions or {})
    return tracer.trace(inputs, attributes, opened or [None] * len(inputs))


class _JointTracer:
    def __init__(self, module: GraphModule | Callable, decompositions: Mapping[OpOverload, Callable]):
        self.source = module
        self.graph, self.fakes = Graph(), FakeTensorMode()
        self.mode = ProxyMode(self.graph, self.fakes, {}, decompositions)

    def trace(
        self, inputs: Sequence[Tensor | int], attributes: dict[str, Tensor], opened: Sequence[Geometry | SymInt | None]
    ) -> Joint:
        given = [*zip(inputs, opened, strict=True), *((tensor, None) for tensor in attributes.values())]
        primals = [self._make_primal(*pair, number) for number, pair in enumerate(given, 1)]
        held = dict(zip(attributes, primals[len(inputs) :], strict=True))
        flags = [_requires_grad(fake) for fake in primals]
        with ExitStack() as stack:
            stack.enter_context(set_grad_enabled(state.grad_enabled))  # restores it, since the program may switch it
            stack.enter_context(_WithoutHooks())
            stack.enter_context(self.fakes)
            stack.enter_context(self.mode)
            outputs = self._forward(held, primals[: len(inputs)])
        _check_primals(primals, flags)
        results = plan_results(tree_flatten(outputs)[0], primals)
        forward = [self.mode.argument(value) for value in results.computed]
        tangents = [position for position, value in enumerate(results.computed) if _is_differentiable(value)]
        custom_backwards = _custom_backwards(self.source)
        if len(tangents) > 1 and any(target.is_constant for target in custom_backwards):
            raise Untraceable("a backward gives what it does not calculate from gradients, and several results have gradients")
        gradients = self._backward(results, tangents, primals)
        differentiated = [position for position, value in gradients if value is not None]
        made = [self.mode.argument(value) for _, value in gradients if value is not None]
        self.graph.output((*forward, *made))
        joint = GraphModule(self.mode.constants, self.graph, "joint_helper")
        return Joint(joint, results, differentiated, tangents, not custom_backwards)

    def _forward(self, held: dict[str, Tensor], inputs: list[Tensor]) -> object:
        """Run the program, which records its operators as nodes, and return its outputs."""
        if isinstance(self.source, GraphModule):
            return _ForwardRunner(self.source, self.mode, held).run(*inputs)
        result = self.source(*inputs)
        _mark_history(self.mode)
        return result

    def _make_primal(self, tensor: Tensor | int, opened: Geometry | SymInt | None, number: int) -> Tensor | SymInt | int:
        if not isinstance(tensor, Tensor):
            value = tensor if opened is None else opened
            node = self.graph.placeholder(f"primals_{number}")
            node.meta["val"] = value
            self.mode.symbols.bind(value, node)
            return value
        fake = self.fakes.from_tensor(tensor, opened)
        if fake._impl in self.mode.nodes:
            raise Untraceable("one tensor is passed twice")
        node = self.graph.placeholder(f"primals_{number}")
        self.mode.track(fake, node)
        self.mode.symbols.bind(fake, node)
        if tensor.requires_grad:
            fake.requires_grad_(True)
        return fake

    def _backward(self, results: Results, tangents: list[int], primals: list[Tensor]) -> list[tuple[int, Tensor | None]]:
        """Return the gradient of each primal that requires one; it is None if no output depends on the primal."""
        wanted = [position for position, fake in enumerate(primals) if _requires_grad(fake)]
        outputs = [results.computed[position] for position in tangents]
        given = [self._make_tangent(fake, number) for number, fake in enumerate(outputs, 1)]
        if not wanted or not outputs:
            raise Untraceable("no output depends on what requires grad")
        try:
            with self.fakes, self.mode:
                found = grad(outputs, [primals[position] for position in wanted], given, allow_unused=True)
                found = [_laid_out(value, primals[position]) for value, position in zip(found, wanted, strict=True)]
        except RuntimeError as error:  # eager raises it when the backward is called
            raise Untraceable(f"its backward raises {error}") from error
        return list(zip(wanted, found, strict=True))

    def _make_tangent(self, output: Tensor, number: int) -> Tensor:
        """Make the placeholder of an output's gradient, with the output's strides."""
        with self.fakes, set_grad_enabled(False):
            fake = aten("empty_like")(output)
        last = [node for node in self.graph.nodes if node.op == "placeholder"][-1]
        with self.graph.inserting_after(last):
            self.mode.track(fake, self.graph.placeholder(f"tangents_{number}"))
        return fake


def _custom_backwards(program: GraphModule | Callable) -> list[HasCustomBackward]:
    """Find the program's functions with a custom backward, as far as dynamo captured them."""
    nodes = program.graph.nodes if isinstance(program, GraphModule) else ()
    return [node.target for node in nodes if isinstance(node.target, HasCustomBackward)]


def _mark_history(mode: ProxyMode) -> None:
    """Give operators of the backward the user's source line of the forward operators that they belong to."""
    for impl, node in list(mode.nodes.items()):
        history = wrap(impl).grad_fn
        if history is not None and not isinstance(history, AccumulateGrad):
            origin = origin_of(node)
            history.register_prehook(lambda grads, origin=origin: setattr(mode, "origin", origin))


def _laid_out(gradient: Tensor | None, primal: Tensor) -> Tensor | None:
    """Make the gradient contiguous if the primal has gaps, as torch's layout contract for gradients demands."""
    numbers = (*primal.shape, *primal.stride())
    if gradient is None or not all(type(number) is int for number in numbers):
        return gradient
    return gradient if is_non_overlapping_and_dense(primal.shape, primal.stride()) else gradient.contiguous()


def _requires_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _is_differentiable(value: Tensor | SymInt) -> bool:
    """Return whether a gradient of a value leads anywhere: a view made without recording requires grad, but has no history."""
    if not isinstance(value, Tensor):
        return False
    is_number = value.dtype.is_floating_point or value.dtype.is_complex
    return value.requires_grad and is_number and gradient_edge(value)[0] is not None


def _check_primals(primals: list[Tensor], flags: list[bool]) -> None:
    for number, (fake, flag) in enumerate(zip(primals, flags, strict=True), 1):
        if isinstance(fake, Tensor) and (fake.requires_grad != flag or not fake.is_leaf):
            raise Untraceable(f"primals_{number} is written to with a value that requires grad")


class ProgramRunner(Interpreter):
    """Runs the program's nodes with `attributes`, by name, in place of tensors that the module holds."""

    def __init__(self, module: GraphModule, attributes: dict[str, Tensor]):
        super().__init__(module)
        self.attributes = attributes

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Tensor:
        """Return the substitute of a tensor of the module, or the tensor itself if there is none."""
        return self.attributes[target] if target in self.attributes else super().get_attr(target, args, kwargs)


class _ForwardRunner(ProgramRunner):
    """Runs the program on fakes. Operators of the backward get the user's source line of their forward operators."""

    def __init__(self, module: GraphModule, mode: ProxyMode, attributes: dict[str, Tensor]):
        super().__init__(module, attributes)
        self.mode = mode
        self.nodes = mode.graph.nodes
        self._marked: set[TapeNode] = set()

    def run_node(self, node: Node) -> object:
        """Run a node, and return its result."""
        self.mode.origin = origin = origin_of(node)
        last = next(iter(reversed(self.nodes)), None)
        result = super().run_node(node)
        if node.meta.get("recompute"):
            for made in itertools.takewhile(lambda made: made is not last, reversed(self.nodes)):
                made.meta["recompute"] = True
        for made in self._new_history(result):
            made.register_prehook(lambda grads: self._set_origin(origin))
        return result

    def _set_origin(self, origin: Origin) -> None:
        self.mode.origin = origin

    def _new_history(self, result: object) -> Iterator[TapeNode]:
        stack = [leaf.grad_fn for leaf in tree_flatten(result)[0] if isinstance(leaf, Tensor)]
        while stack:
            made = stack.pop()
            if made is not None and made not in self._marked and not isinstance(made, AccumulateGrad):
                self._marked.add(made)
                stack.extend(following for following, _ in made.next_functions)
                yield made
