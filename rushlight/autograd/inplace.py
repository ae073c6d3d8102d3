"""In-place writes on the tape: where they are forbidden, and the history of a base that was written through a view."""

from __future__ import annotations

import weakref

from rushlight.autograd.node import Node, info_of, set_history
from rushlight.autograd.view_history import Window, forbidden_write, gradient_edge, refresh_view
from rushlight.core.tensor import Tensor


def check_inplace(tensor: Tensor) -> None:
    """Raise RuntimeError if autograd forbids a recorded write: to a leaf that requires grad, a view of one, or some views."""
    impl = tensor._impl
    if impl.view is not None:
        if impl.view.origin:
            raise RuntimeError(forbidden_write(impl, "is being"))
        if impl.requires_grad and impl.view.base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        refresh_view(impl)
    if impl.requires_grad and impl.autograd.grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def rebase_history(tensor: Tensor, node: Node, output_nr: int = 0) -> None:
    """Record that `node` produced the current value of `tensor`, and so a part of its base if it is a view."""
    impl = tensor._impl
    if impl.view is None:
        set_history(impl, node, output_nr)
        return
    base = impl.view.base
    set_history(base._impl, CopySlices(base, tensor, node, output_nr), 0)
    impl.view.version = -1
    refresh_view(impl)
    node.written_views = {**getattr(node, "written_views", {}), output_nr: weakref.ref(impl.autograd.grad_fn)}


class CopySlices(Node):
    """The node of an in-place write to a view, as seen from the base: the written part's gradient goes through the operator's
    node."""

    def __init__(self, base: Tensor, view: Tensor, node: Node, output_nr: int):
        super().__init__()
        self.node = node
        self.output_nr = output_nr
        self.window = Window(base._impl, view._impl)
        # The operator node's first edge leads to the view before the write; the base's edge replaces it.
        self.next_functions = (gradient_edge(base), *node.next_functions[1:])
        self.output_info = [info_of(base._impl)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return (None,) * len(self.next_functions)
        outputs = [None] * len(self.node.output_info)
        outputs[self.output_nr] = self.window.part(self.window.copy(grad)).clone()
        inner = self.node.apply(tuple(outputs))
        kept = self.window.copy(grad)
        written = self.window.part(kept)
        if inner[0] is None:
            written.zero_()
        else:
            written.copy_(inner[0])
        return (kept, *inner[1:])

    def release(self) -> None:
        self.node.release()
