"""The autograd methods of Tensor: backward, hooks, retain_grad, grad_fn, detach_."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.backward import backward as run
from rushlight.autograd.node import HookHandle, Node
from rushlight.autograd.retained import retain_gradient
from rushlight.autograd.view_history import gradient_edge, refresh_view
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import is_batched


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: list[Tensor] | None = None,
) -> None:
    """Add the gradients of this tensor to the `.grad` of the leaves it was made from."""
    run(self, gradient, retain_graph, create_graph, inputs)


def grad_fn(self: Tensor) -> Node | None:
    """Return the node that made this tensor, or None for a leaf."""
    impl = self._impl
    if impl.view is not None:
        refresh_view(impl)
    return None if impl.autograd is None else impl.autograd.grad_fn


def is_leaf(self: Tensor) -> bool:
    """Return whether no recorded operation made this tensor."""
    return self.grad_fn is None


def register_hook(self: Tensor, hook: Callable) -> HookHandle:
    """Call `hook(grad)` when this tensor's gradient is computed. If it returns a tensor, that replaces the gradient."""
    _check_not_batched(self, "register_hook")
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node, index = gradient_edge(self)
    meta = self._impl.autograd
    if meta.grad_fn is not None:
        return HookHandle(node.make_hooks().tensor.setdefault(index, {}), hook)
    if meta.hooks is None:
        meta.hooks = node.make_hooks().tensor[0] = {}
    return HookHandle(meta.hooks, hook)


def _check_not_batched(tensor: Tensor, name: str) -> None:
    if is_batched(tensor):
        raise RuntimeError(f"{name}() inside a vmap: the gradient of one example is not to be seen; call it outside")


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> HookHandle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    meta = self._autograd_meta()
    if meta.post_accumulate_hooks is None:
        meta.post_accumulate_hooks = {}
    return HookHandle(meta.post_accumulate_hooks, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`, as it is after this tensor's hooks."""
    _check_not_batched(self, "retain_grad")
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    retain_gradient(self)


def detach_(self: Tensor) -> Tensor:
    """Forget this tensor's history, in place; RuntimeError for views."""
    if self._impl.view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    meta = self._impl.autograd
    if meta is not None:
        meta.grad_fn, meta.output_nr, meta.requires_grad, meta.retains_grad = None, 0, False, False
    for level in state.dual_levels:
        level.tangents.pop(self._impl, None)
    return self


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (backward, register_hook, register_post_accumulate_grad_hook, retain_grad, detach_):
        setattr(Tensor, method.__name__, method)
    Tensor.grad_fn = property(grad_fn)
    Tensor.is_leaf = property(is_leaf)


install()
