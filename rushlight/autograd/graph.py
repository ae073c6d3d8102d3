"""`autograd.graph`: the tape's nodes, edges into it, and hooks on what it saves and on several gradients at once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from rushlight.autograd.node import HookHandle, Node
from rushlight.autograd.saved_mutation import allow_mutation_on_saved_tensors
from rushlight.autograd.saved_tensors_hooks import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import count_write
from rushlight.core.thread_state import state

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class GradientEdge(NamedTuple):
    """The edge along which a tensor's gradient flows: output `output_nr` of `node`. `grad` and `backward` accept it instead of
    the tensor."""

    node: Node
    output_nr: int
    ownership_token: object = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of a tensor; RuntimeError when it requires no gradient. The edge does not keep the tensor alive."""
    node, output_nr = gradient_edge(tensor)
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node, output_nr)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Bump the version for a write that autograd did not see."""
    for written in (tensor,) if isinstance(tensor, Tensor) else tensor:
        count_write(written._impl)


class _MultiHandle:
    """Removes hooks from several tensors."""

    def __init__(self, handles: list[HookHandle]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove all of them."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> _MultiHandle:
    """Call `fn` once in each backward pass that computes gradients of `tensors`.

    In mode "all" it gets the list of gradients once the last one is computed, with None for those that are not; in mode "any"
    it gets the first one computed. ValueError for other modes, RuntimeError for tensors that require no gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [get_gradient_edge(tensor) for tensor in tensors]
    made = _AllGradientsHook(edges, fn) if mode == "all" else _AnyGradientHook(fn)
    return _MultiHandle([tensor.register_hook(functools.partial(made, n)) for n, tensor in enumerate(tensors)])


class _AllGradientsHook:
    """Collects the gradients of one backward call, identified by its number, until all have arrived."""

    def __init__(self, edges: list[GradientEdge], fn: Callable):
        self.edges = edges
        self.fn = fn
        self.gathered: dict[int, list[Tensor | None]] = {}
        self.awaited: dict[int, int] = {}
        self.lock = threading.Lock()

    def __call__(self, index: int, grad: Tensor) -> None:
        task = state.backward_task
        with self.lock:
            if task.number not in self.gathered:
                self.gathered[task.number] = [None] * len(self.edges)
                self.awaited[task.number] = sum(task.will_run(edge.node) for edge in self.edges)
            grads = self.gathered[task.number]
            grads[index] = grad
            self.awaited[task.number] -= 1
            if self.awaited[task.number]:
                return
            del self.gathered[task.number], self.awaited[task.number]
        self.fn(grads)


class _AnyGradientHook:
    """Remembers the number of the last backward call in which it ran."""

    def __init__(self, fn: Callable):
        self.fn = fn
        self.last = -1
        self.lock = threading.Lock()

    def __call__(self, index: int, grad: Tensor) -> None:
        number = state.backward_task.number
        with self.lock:
            if number == self.last:
                return
            self.last = number
        self.fn(grad)
