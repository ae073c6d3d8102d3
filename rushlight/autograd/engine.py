"""The backward engine: runs nodes in reverse order of their making, once all gradients that reach them have arrived.

No recursion, so graphs may be of any depth. Gradients are summed in a buffer per node; `inputs` selects what to capture.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from rushlight.autograd.node import AccumulateGrad, Edge, Node
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces


class _Task:
    """One call of backward: what is still awaited, the gradients gathered so far, and the captured results."""

    def __init__(self, roots: Sequence[Edge], captures: Sequence[Edge] | None):
        self.dependencies: dict[Node, int] = {}
        self.parents: dict[Node, list[Node]] = {}
        self.buffers: dict[Node, list[Tensor | None]] = {}
        self.ready: list[tuple] = []
        self.wanted: dict[tuple[Node, int], Tensor | None] | None = None
        self._count(roots)
        self.needed: set[Node] | None = None
        if captures is not None:
            self.wanted = dict.fromkeys(captures)
            self.needed = self._ancestors({node for node, _ in captures})
            self.targets = {node for node, _ in captures}

    def _count(self, roots: Sequence[Edge]) -> None:
        stack = [node for node, _ in roots]
        seen = set(stack)
        for node in seen:
            self.dependencies.setdefault(node, 0)
        while stack:
            node = stack.pop()
            for following, _ in node.next_functions:
                if following is None:
                    continue
                self.dependencies[following] = self.dependencies.get(following, 0) + 1
                self.parents.setdefault(following, []).append(node)
                if following not in seen:
                    seen.add(following)
                    stack.append(following)

    def _ancestors(self, targets: set[Node]) -> set[Node]:
        """Nodes that must run so that gradients reach the targets (the targets themselves excluded unless on the way)."""
        found: set[Node] = set()
        stack = [parent for target in targets for parent in self.parents.get(target, ())]
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.parents.get(node, ()))
        return found

    def push(self, node: Node) -> None:
        order = -1 if isinstance(node, AccumulateGrad) else -node.sequence_nr
        heapq.heappush(self.ready, (order if order != -1 else float("-inf"), id(node), node))

    def deliver(self, node: Node, index: int, grad: Tensor | None) -> None:
        """Add a gradient to a node's buffer."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.output_info)
        if grad is not None:
            present = buffer[index]
            buffer[index] = grad if present is None else present + grad

    def arrived(self, node: Node) -> None:
        """Count one edge into `node` as done; it becomes ready when that was the last."""
        self.dependencies[node] -= 1
        if self.dependencies[node] == 0:
            self.push(node)


def run_backward(
    roots: Sequence[Edge],
    grads: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    captures: Sequence[Edge] | None = None,
    accumulate_captures: bool = False,
) -> list[Tensor | None] | None:
    """Run the tape from `roots` with gradients `grads`.

    Leaves accumulate into `.grad`, unless `captures` names edges: then only the nodes on the way to them run, and the
    gradients there are returned (and accumulated at leaves too if `accumulate_captures`).
    """
    task = _Task(roots, captures)
    for (node, index), grad in zip(roots, grads, strict=True):
        task.deliver(node, index, grad)
    for node in {node for node, _ in roots}:
        if task.dependencies[node] == 0:
            task.push(node)
    previous = state.grad_enabled
    state.grad_enabled = create_graph
    try:
        while task.ready:
            _, _, node = heapq.heappop(task.ready)
            _step(task, node, retain_graph, accumulate_captures)
    finally:
        state.grad_enabled = previous
    return None if captures is None else [task.wanted[edge] for edge in captures]


def _step(task: _Task, node: Node, retain_graph: bool, accumulate_captures: bool) -> None:
    grads = task.buffers.pop(node, None) or [None] * len(node.output_info)
    grads = _run_pre_hooks(node, grads)
    if task.wanted is not None and node in task.targets:
        for target, index in task.wanted:
            if target is node:
                task.wanted[target, index] = grads[index]
    skip = task.needed is not None and node not in task.needed
    if skip and accumulate_captures and isinstance(node, AccumulateGrad) and node in task.targets:
        skip = False
    results: tuple[Tensor | None, ...] = (None,) * len(node.next_functions)
    if not skip and any(grad is not None for grad in grads):
        results = _call(node, tuple(grads), retain_graph)
    for (following, index), result in zip(node.next_functions, results, strict=True):
        if following is None:
            continue
        if result is not None:
            task.deliver(following, index, _validate(result, following.output_info[index], node))
        task.arrived(following)


def _run_pre_hooks(node: Node, grads: list) -> list:
    for index, hooks in node.pre_hooks.items():
        for hook in list(hooks.values()):
            if grads[index] is None:
                continue
            changed = hook(grads[index])
            if changed is not None:
                grads[index] = changed
    for hook in list(node.node_pre_hooks.values()):
        changed = hook(tuple(grads))
        if changed is not None:
            grads = list(changed) if isinstance(changed, tuple | list) else [changed]
    return grads


def _call(node: Node, grads: tuple, retain_graph: bool) -> tuple:
    results = tuple(node.apply(grads))
    if not retain_graph:
        node.release()
    for hook in list(node.post_hooks.values()):
        changed = hook(results, grads)
        if changed is not None:
            results = tuple(changed) if isinstance(changed, tuple | list) else (changed,)
    return results


def _validate(grad: Tensor, info: tuple, node: Node) -> Tensor:
    """`grad` summed to the shape and cast to the dtype of the value it belongs to."""
    sizes, kind, _ = info
    if grad._impl.sizes != sizes:
        grad = sum_to(grad, sizes, node)
    if grad._impl.dtype is not kind:
        if grad._impl.dtype.is_complex and not kind.is_complex:
            grad = grad.real
        grad = grad.to(kind)
    return grad


def sum_to(grad: Tensor, sizes: tuple[int, ...], node: Node | None = None) -> Tensor:
    """Sum `grad` over the dimensions that broadcasting `sizes` added or stretched; RuntimeError when it cannot be."""
    have = grad._impl.sizes
    extra = len(have) - len(sizes)
    fits = extra >= 0 and all(want in (1, got) for want, got in zip(sizes, have[extra:], strict=True))
    if not fits:
        where = f"Function {node.name()} " if node is not None else ""
        raise RuntimeError(
            f"{where}returned an invalid gradient - got {list(have)} but expected shape compatible with {list(sizes)}"
        )
    dims = [*range(extra), *(extra + d for d, size in enumerate(sizes) if size == 1 and have[extra + d] != 1)]
    if dims:
        grad = namespaces.aten.sum.dim_IntList(grad, dims, True)
    return grad.view(sizes) if extra else grad
