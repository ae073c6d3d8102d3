"""Run nodes that hold a graph: differentiable graphs and fusion groups.

In: a node with the attribute `Subgraph`. Out: a function of its inputs. A fusion group runs its graph. A differentiable graph
runs its forward graph without recording it, saves the reverse graph's inputs, and is one node for the autograd engine. Stage:
jit, runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rushlight.autograd.backward import grad as grad_of
from rushlight.autograd.function import Function as AutogradFunction
from rushlight.autograd.grad_mode import is_grad_enabled
from rushlight.core.dtype import bool_
from rushlight.core.tensor import Tensor
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.passes.common_subexpression_elimination import eliminate_common_subexpression
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.differentiate import Gradient, differentiate
from rushlight.jit.passes.lower_grad_of import lower_grad_of
from rushlight.jit.passes.specialize_autogradzero import specialize_autogradzero
from rushlight.jit.runtime.objects import run_with_executor


class CompiledGradient:
    """The two graphs of a gradient as functions."""

    def __init__(self, gradient: Gradient, plain: Function):
        lower_grad_of(gradient.df)
        self.gradient = gradient
        self.plain = plain
        self.forward = _plain_function("forward", gradient.f)
        self._backward: dict[tuple[bool, ...], Function] = {}

    def run(self, inputs: Sequence[object]) -> tuple[tuple, list]:
        """Return the results, and the values that the reverse graph needs besides gradients."""
        results = _result_tuple(run_with_executor(self.forward, list(inputs)), len(self.gradient.f.outputs))
        captured = [inputs[index] for index in self.gradient.df_input_captured_inputs]
        captured += [results[index] for index in self.gradient.df_input_captured_outputs]
        return results[: self.gradient.f_real_outputs], captured

    def gradients(self, grads: Sequence[Tensor | None], captured: Sequence[object], inputs: int) -> list[Tensor | None]:
        """Return the gradients of all inputs; None for those without one."""
        found: list[Tensor | None] = [None] * inputs
        arguments = [grads[index] for index in self.gradient.df_input_vjps]
        backward = self._backward_without(tuple(each is None for each in arguments))
        results = _result_tuple(run_with_executor(backward, [*arguments, *captured]), len(self.gradient.df_output_vjps))
        for index, grad in zip(self.gradient.df_output_vjps, results, strict=True):
            found[index] = grad
        return found


    def _backward_without(self, absent: tuple[bool, ...]) -> Function:
        """Return the reverse graph if these gradients are absent: their tests are resolved, so that it can be compiled."""
        found = self._backward.get(absent)
        if found is None:
            graph = self.gradient.df.copy()
            for value, is_absent in zip(graph.inputs, absent, strict=False):
                value.type = replace(value.type, undefined=is_absent)
            specialize_autogradzero(graph)
            eliminate_common_subexpression(graph)
            eliminate_dead_code(graph)
            found = self._backward.setdefault(absent, _plain_function("backward", graph))
        return found

    def recorded_gradients(self, grads: Sequence[Tensor | None], inputs: Sequence[tuple]) -> list[Tensor | None]:
        """Return the gradients, computed so that they can be differentiated again. RuntimeError if an input was changed
        since.
        """
        if any(isinstance(value, Tensor) and value._version != version for value, version in inputs):
            raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation")
        # Run on views of the inputs. If one input was computed from another, a gradient then stops at the view.
        values = [value.view_as(value) if isinstance(value, Tensor) else value for value, _ in inputs]
        results = _result_tuple(run_with_executor(self.plain, values), self.gradient.f_real_outputs)
        given = [(result, grad) for result, grad in zip(results, grads, strict=False) if grad is not None]
        wanted = [index for index, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
        found = grad_of(
            [result for result, _ in given], [values[index] for index in wanted], [each for _, each in given],
            create_graph=True, allow_unused=True,
        )  # fmt: skip
        by_index = dict(zip(wanted, found, strict=True))
        return [by_index.get(index) for index in range(len(values))]


def _plain_function(name: str, graph: Graph) -> Function:
    """Return a function that is not profiled."""
    function = Function(name, graph)
    function.depth = 0
    return function


def _result_tuple(value: object, count: int) -> tuple:
    return (value,) if count == 1 else value if isinstance(value, tuple) else ()


class DifferentiableGraph(AutogradFunction):
    """A differentiable graph as one step of autograd."""

    @staticmethod
    def forward(ctx, compiled: CompiledGradient, *inputs):
        """Run the forward graph."""
        results, captured = compiled.run(inputs)
        tensors = [value if isinstance(value, Tensor) else None for value in captured]
        ctx.save_for_backward(*tensors)
        ctx.others = [None if isinstance(value, Tensor) else value for value in captured]
        ctx.compiled, ctx.inputs = compiled, [(each, each._version if isinstance(each, Tensor) else 0) for each in inputs]
        ctx.set_materialize_grads(False)
        with_gradient = compiled.gradient.df_input_vjps
        ctx.mark_non_differentiable(*[each for index, each in enumerate(results) if index not in with_gradient])
        return results

    @staticmethod
    def backward(ctx, *grads):
        """Run the reverse graph; for double backward, run operator by operator."""
        if is_grad_enabled():
            return None, *ctx.compiled.recorded_gradients(grads, ctx.inputs)
        saved = ctx.saved_tensors
        captured = [other if tensor is None else tensor for tensor, other in zip(saved, ctx.others, strict=True)]
        return None, *ctx.compiled.gradients(grads, captured, len(ctx.inputs))


def _needs_gradients(inputs: Sequence[object]) -> bool:
    """Return whether to use the formulas: gradients are needed, and all tensors (except conditions) are real floating point of
    one dtype. Otherwise autograd records operator by operator."""
    if not is_grad_enabled():
        return False
    tensors = [each for each in inputs if isinstance(each, Tensor)]
    dtypes = {each.dtype for each in tensors if each.dtype is not bool_}
    return any(each.requires_grad for each in tensors) and len(dtypes) == 1 and dtypes.pop().is_floating_point


def differentiable(node: Node) -> Callable:
    """Return the function of a differentiable graph: one autograd step where gradients are needed."""
    body: Graph = node["Subgraph"]
    plain = _plain_function("differentiable", body)
    compiled: list[CompiledGradient] = []

    def run(*inputs: object) -> object:
        if not _needs_gradients(inputs):
            return run_with_executor(plain, list(inputs))
        if not compiled:
            compiled.append(CompiledGradient(differentiate(body), plain))
        results = DifferentiableGraph.apply(compiled[0], *inputs)
        return results[0] if isinstance(results, tuple) and len(results) == 1 else results

    return run


def group(node: Node) -> Callable:
    """Return the function of a group, with a plan of its own and native code once that pays; its inputs have been checked."""
    function = _plain_function("group", node["Subgraph"])
    return lambda *inputs: run_with_executor(function, list(inputs))
