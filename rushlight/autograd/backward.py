"""`backward` and `grad`: check the arguments, then run the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.autograd.batched import gradients_of_rows, gradients_of_values
from rushlight.autograd.engine import run_backward
from rushlight.autograd.graph import GradientEdge
from rushlight.autograd.node import Edge
from rushlight.autograd.retained import retain_gradient
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.following import runs_as_it_is
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import sees_operators
from rushlight.ops.batching.layout import is_batched
from rushlight.ops.registry import aten

_full, _ones_like = aten("full"), aten("ones_like")
_goes_back = runs_as_it_is("it goes through the history of tensors, which they have outside of a graph")
TensorOrTensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def _as_tuple(value) -> tuple:
    return (value,) if isinstance(value, Tensor | GradientEdge) or value is None else tuple(value)


def _edge_of(value: Tensor | GradientEdge) -> Edge:
    return (value.node, value.output_nr) if isinstance(value, GradientEdge) else gradient_edge(value)


def _metadata_of(value: Tensor | GradientEdge) -> tuple:
    """Return sizes, dtype and device that a gradient of this value has."""
    if isinstance(value, Tensor):
        impl = value._impl
        return impl.sizes, impl.dtype, impl.device
    return value.node.output_info[value.output_nr]


def _roots(tensors: tuple[Tensor | GradientEdge, ...]) -> list:
    edges = []
    for index, tensor in enumerate(tensors):
        edge = _edge_of(tensor)
        if edge[0] is None:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        edges.append(edge)
    return edges


def _initial_grads(tensors: tuple[Tensor, ...], grads: tuple) -> list[Tensor]:
    if not grads:
        grads = (None,) * len(tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    made = []
    for tensor, grad in zip(tensors, grads, strict=True):
        sizes, kind, device = _metadata_of(tensor)
        if grad is None:
            if math.prod(sizes) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if not kind.is_floating_point and (isinstance(tensor, GradientEdge) or tensor.requires_grad):
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {kind}")
            whole = isinstance(tensor, Tensor) and sees_operators(tensor)
            grad = _ones_like(tensor.detach()) if whole else _full(sizes, 1, dtype=kind, device=device)
        elif grad.shape != sizes:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{len(made)}] has a shape of {grad.shape} and output[{len(made)}] has a "
                f"shape of {Size(sizes)}."
            )
        elif grad.dtype.is_complex != kind.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                f"grad_output[{len(made)}] has a dtype of {grad.dtype} and output[{len(made)}] has a dtype of {kind}."
            )
        made.append(grad)
    return made


@_goes_back
def backward(
    tensors: TensorOrTensors,
    grad_tensors: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Add the gradients of `tensors` (scalars unless `grad_tensors` are given) to the `.grad` of the leaves.

    With `inputs`, only to those. RuntimeError for tensors without history, wrong shapes, or a graph already freed.
    """
    tensors = _as_tuple(tensors)
    if any(map(is_batched, tensors)):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use torch.func.grad or "
            "torch.func.vjp instead or call backward() outside of functorch transforms."
        )
    grads = _initial_grads(tensors, () if grad_tensors is None else _as_tuple(grad_tensors))
    captures = None
    if inputs is not None:
        wanted = _as_tuple(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        captures = [_edge_of(tensor) for tensor in wanted]
        if any(node is None for node, _ in captures):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        for tensor in wanted:
            if isinstance(tensor, Tensor):
                retain_gradient(tensor)
    keep = create_graph if retain_graph is None else retain_graph
    run_backward(_roots(tensors), grads, keep, create_graph, captures, accumulate_captures=True)


@_goes_back
def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    RuntimeError for an input that the outputs do not depend on, unless `allow_unused` (None) or `materialize_grads` (zeros).
    With `is_grads_batched`, `grad_outputs` have one more dimension in front, and so have the gradients: one per row.
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    if is_grads_batched:
        _check_rows(outputs, _as_tuple(grad_outputs))
        rest = (create_graph, only_inputs, allow_unused, False, materialize_grads)
        return _grad_of_rows(outputs, inputs, _as_tuple(grad_outputs), retain_graph, *rest)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    for tensor in inputs:
        if isinstance(tensor, GradientEdge):
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"grad: inputs must be Tensors or GradientEdges, got {type(tensor).__name__}")
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    starts = _initial_grads(outputs, () if grad_outputs is None else _as_tuple(grad_outputs))
    if any(map(is_batched, (*outputs, *inputs))):
        options = dict(retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused)
        return gradients_of_values(grad, outputs, inputs, tuple(starts), {**options, "materialize_grads": materialize_grads})
    keep = create_graph if retain_graph is None else retain_graph
    captures = [_edge_of(tensor) for tensor in inputs]
    found = run_backward(_roots(outputs), starts, keep, create_graph, captures)
    for index, (tensor, value) in enumerate(zip(inputs, found, strict=True)):
        if value is None and materialize_grads:
            sizes, kind, device = _metadata_of(tensor)
            found[index] = _full(sizes, 0, dtype=kind, device=device).requires_grad_(create_graph)
        elif value is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(found)


def _check_rows(outputs: tuple, grads: tuple) -> None:
    """Raise RuntimeError unless the gradients have one dimension more than the outputs, in front."""
    for index, (output, rows) in enumerate(zip(outputs, grads, strict=False)):
        if isinstance(output, Tensor) and isinstance(rows, Tensor) and rows.shape[1:] != output.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
                "sizes of the remaining dimensions are expected to match the shape of corresponding output, but "
                f"grad_output[{index}] has a shape of {rows.shape} and output[{index}] has a shape of {output.shape}."
            )


def _grad_of_rows(outputs: tuple, inputs: tuple, grads: tuple, retain_graph: bool | None, create_graph: bool,
             *rest: object) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return `grad` for each row of the gradients, stacked."""
    return gradients_of_rows(
        lambda *parts: grad(*parts, retain_graph, create_graph, *rest), outputs, inputs, grads
    )
