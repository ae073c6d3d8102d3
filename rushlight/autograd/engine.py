"""The backward engine: runs nodes in reverse order of creation, once all their gradients have arrived.

Without captures, anomaly mode and a profiler, the loop runs in C (`csrc/engine.c`), with the semantics and order of `_step`. It
does not recurse, so graphs may be arbitrarily deep. Gradients are summed in a buffer per node; `captures` selects the
gradients to return. `state.backward_task` identifies the running call for hooks and checkpoints; in anomaly mode nodes run
through `checked_apply`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

from rushlight._C import count_edges, run_tape, take_gradient
from rushlight.autograd.anomaly import checked_apply
from rushlight.autograd.node import AccumulateGrad, Edge, Node, OutputInfo
from rushlight.core import function_modes
from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

_COPIES = ("ToCopyBackward0", "CopyBackwards")  # nodes of operators whose input and output may be on different devices
# Ids of backward calls.
_numbers = itertools.count()


class _Task:
    """The state of one backward call: pending edges per node, summed gradients, captured results.

    With captures, `needed` holds the nodes to run: those from which a captured edge can be reached, and with `accumulate` the
    captured nodes themselves. `number` identifies the call; `running` is the current node, in anomaly mode. `callbacks` run at
    the end; a call inside another one's node shares those of the outermost.
    """

    def __init__(self, roots: Sequence[Edge], captures: Sequence[Edge] | None, accumulate: bool):
        self.awaited: dict[Node, int] = {}
        self.parents: dict[Node, list[Node]] = {}
        self.buffers: dict[Node, list[Tensor | None]] = {}
        self.ready: list[tuple] = []
        self._pushed = itertools.count()  # breaks ties in insertion order, as in C
        self.number = next(_numbers)
        self.running: Node | None = None
        outer = state.backward_task
        self.callbacks: list[Callable[[], None]] = [] if outer is None else outer.callbacks
        if captures is None:
            self.awaited = count_edges(dict.fromkeys(node for node, _ in roots))
        else:
            self._count_edges(roots)
        self.captured: dict[Edge, Tensor | None] = dict.fromkeys(captures or ())
        self.capturing: dict[Node, list[int]] = {}
        for node, index in self.captured:
            self.capturing.setdefault(node, []).append(index)
        self.needed: set[Node] | None = None
        if captures is not None:
            self.needed = self._ancestors(self.capturing)
            if accumulate:
                self.needed.update(self.capturing)

    def _count_edges(self, roots: Sequence[Edge]) -> None:
        stack = list(dict.fromkeys(node for node, _ in roots))
        self.awaited = dict.fromkeys(stack, 0)
        while stack:
            node = stack.pop()
            for following, _ in node.next_functions:
                if following is not None:
                    if following not in self.awaited:
                        self.awaited[following] = 0
                        stack.append(following)
                    self.awaited[following] += 1
                    self.parents.setdefault(following, []).append(node)

    def _ancestors(self, targets: dict[Node, list[int]]) -> set[Node]:
        found: set[Node] = set()
        stack = [parent for target in targets for parent in self.parents.get(target, ())]
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.parents.get(node, ()))
        return found

    def will_run(self, node: Node) -> bool:
        """Return whether this node runs or its gradients are captured, so that hooks on them are called."""
        if node not in self.awaited:
            return False
        return self.needed is None or node in self.needed or node in self.capturing

    def start(self, roots: Sequence[Edge], grads: Sequence[Tensor | None]) -> None:
        """Deliver the first gradients."""
        for (node, index), grad in zip(roots, grads, strict=True):
            self.deliver(node, index, grad)

    def make_ready(self, roots: Sequence[Edge]) -> None:
        """Mark the roots without incoming edges as ready to run."""
        for node in dict.fromkeys(node for node, _ in roots):
            if not self.awaited[node]:
                self._push(node)

    def _push(self, node: Node) -> None:
        heapq.heappush(self.ready, (-node.sequence_nr, next(self._pushed), node))

    def deliver(self, node: Node, index: int, grad: Tensor | None) -> None:
        """Add a gradient to a node's buffer."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.output_info)
        if grad is not None:
            present = buffer[index]
            buffer[index] = grad if present is None else present + grad

    def count_arrival(self, node: Node) -> None:
        """Count one edge into `node` as done; it becomes ready when that was the last."""
        self.awaited[node] -= 1
        if not self.awaited[node]:
            self._push(node)


def run_backward(
    roots: Sequence[Edge],
    grads: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    captures: Sequence[Edge] | None = None,
    accumulate_captures: bool = False,
) -> list[Tensor | None]:
    """Run the tape from `roots` with gradients `grads`.

    Leaves accumulate into `.grad`, unless `captures` names edges: then only the nodes on the way to them run, and the
    gradients there are returned (if `accumulate_captures`, leaves among them accumulate too, and their other nodes run).
    """
    if function_modes.entered and function_modes.are_active():
        with function_modes.Suspended():  # modes must not see the calls that derivative formulas make
            return run_backward(roots, grads, retain_graph, create_graph, captures, accumulate_captures)
    task = _Task(roots, captures, accumulate_captures)
    task.start(roots, grads)
    if state.recording is not None:
        state.recording.backward(roots)
    before = state.grad_enabled, state.backward_task, state.saved_tensor_hooks
    state.grad_enabled, state.backward_task = create_graph, task
    try:
        if captures is None and state.anomaly is None and state.recording is None:
            starts = tuple(dict.fromkeys(node for node, _ in roots))
            run_tape(starts, task.awaited, task.buffers, retain_graph, _run_hooked, _validate)
        else:
            task.make_ready(roots)
        while task.ready:
            _, _, node = heapq.heappop(task.ready)
            _step(task, node, retain_graph)
        if task.callbacks and before[1] is None:
            _run_callbacks(task.callbacks)
    finally:
        state.grad_enabled, state.backward_task, state.saved_tensor_hooks = before
    return [task.captured[edge] for edge in captures or ()]


def _run_callbacks(callbacks: list[Callable[[], None]]) -> None:
    while callbacks:  # a callback may add others
        callbacks.pop(0)()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the outermost backward call that runs in this thread. RuntimeError outside of backward.

    It is not called when that backward raises.
    """
    if state.backward_task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    state.backward_task.callbacks.append(callback)


def _step(task: _Task, node: Node, retain_graph: bool) -> None:
    grads = task.buffers.pop(node, None) or [None] * len(node.output_info)
    if node.hooks is not None and task.will_run(node):
        _run_tensor_hooks(node, grads)
    for index in task.capturing.get(node, ()):
        task.captured[node, index] = grads[index]
    results: Sequence[Tensor | None] = (None,) * len(node.next_functions)
    has_gradient = any(grad is not None for grad in grads)
    if (task.needed is None or node in task.needed) and (has_gradient or node.hooks is not None):
        results = _run(node, grads, retain_graph)
    for (following, index), result in zip(node.next_functions, results, strict=True):
        if following is not None:
            if result is not None:
                task.deliver(following, index, _validate(result, following.output_info[index], node))
            task.count_arrival(following)


def _run_hooked(node: Node, grads: list[Tensor | None], retain_graph: bool) -> Sequence[Tensor | None]:
    _run_tensor_hooks(node, grads)
    return _run(node, grads, retain_graph)


def _run_tensor_hooks(node: Node, grads: list[Tensor | None]) -> None:
    """Pass each gradient through its tensor's hooks, in place in `grads`, and store the retained ones.

    Hooks of an output that got no gradient are called with None.
    """
    for index, hooks in node.hooks.tensor.items():
        for hook in list(hooks.values()):
            changed = hook(grads[index])
            if changed is not None:
                grads[index] = _check_hook_result(hook, changed, grads[index])
    for index, reference in node.hooks.retain.items():
        impl, grad = reference(), grads[index]
        if impl is not None and grad is not None:
            meta = impl.autograd
            meta.grad = grad.clone() if meta.grad is None else meta.grad + grad


def _check_hook_result(hook: Callable, changed: object, grad: Tensor | None) -> Tensor:
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(changed, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}' (hook '{name}')")
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if changed._impl.sizes != grad._impl.sizes:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value: from {list(grad.shape)} to {list(changed.shape)}"
        )
    return changed


def _run(node: Node, grads: list[Tensor | None], retain_graph: bool) -> Sequence[Tensor | None]:
    hooks = node.hooks
    for hook in list(hooks.before.values()) if hooks is not None else ():
        changed = hook(tuple(grads))
        if changed is not None:
            grads = list(_as_tuple(changed))
    has_gradient = any(grad is not None for grad in grads)
    results = _apply(node, grads) if has_gradient else (None,) * len(node.next_functions)
    if not retain_graph:
        node.release()
    for hook in list(hooks.after.values()) if hooks is not None else ():
        changed = hook(results, tuple(grads))
        if changed is not None:
            results = _as_tuple(changed)
    return results


def _apply(node: Node, grads: list[Tensor | None]) -> Sequence[Tensor | None]:
    def run() -> Sequence[Tensor | None]:
        # No variable may hold the gradient here: a leaf takes it over only from the list.
        if type(node) is AccumulateGrad and take_gradient(node, grads):
            return ()
        return node.apply(tuple(grads))

    if state.anomaly is not None:
        return checked_apply(node, run)
    return run() if state.recording is None else state.recording.apply(node, run)


def _as_tuple(changed: object) -> tuple:
    return tuple(changed) if isinstance(changed, tuple | list) else (changed,)


def _validate(grad: Tensor, info: OutputInfo, node: Node) -> Tensor:
    """Return `grad` summed to the shape, cast to the dtype, and moved to the device of the value it belongs to."""
    sizes, kind, place = info
    have = grad._impl.sizes
    if len(have) != len(sizes) or have != sizes:  # compare lengths first, because comparing symbolic sizes may add a guard
        grad = sum_to(grad, sizes, node)
    if grad._impl.dtype is not kind:
        if grad._impl.dtype.is_complex and not kind.is_complex:
            grad = grad.real
        grad = grad.to(kind)
    return grad if grad._impl.device == place else _moved(grad, place, node)


def _moved(grad: Tensor, place: device, node: Node) -> Tensor:
    """Return `grad` on a device; RuntimeError unless the node copied a value between devices, or the value is a number, which
    operators read from any device."""
    if grad._impl.sizes and node.name() not in _COPIES:
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient - expected device {place} but got {grad._impl.device}"
        )
    return grad.to(place)


def sum_to(grad: Tensor, sizes: tuple[int, ...], node: Node | None = None) -> Tensor:
    """Sum `grad` over the dimensions that were broadcast from `sizes`; RuntimeError when it cannot be."""
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
