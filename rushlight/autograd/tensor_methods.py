"""The autograd methods of Tensor: backward, hooks, retain_grad, grad_fn, detach_."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.backward import backward as run
from rushlight.autograd.node import Node, _Handle, gradient_edge, refresh_view
from rushlight.core.tensor import Tensor


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
    """The node that made this tensor, or None for a leaf."""
    impl = self._impl
    refresh_view(impl)
    return None if impl.autograd is None else impl.autograd.grad_fn


def register_hook(self: Tensor, hook: Callable) -> _Handle:
    """Call `hook(grad)` when this tensor's gradient is computed; what it returns, if anything, replaces the gradient."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    meta = self._impl.autograd
    if self.grad_fn is not None:
        return _Handle(meta.grad_fn.pre_hooks.setdefault(meta.output_nr, {}), hook)
    if meta.hooks is None:
        meta.hooks = {}
    gradient_edge(self)[0].pre_hooks[0] = meta.hooks
    return _Handle(meta.hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> _Handle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    if self.grad_fn is not None or not self.requires_grad:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    meta = self._impl.autograd
    if meta.post_accumulate_hooks is None:
        meta.post_accumulate_hooks = {}
    return _Handle(meta.post_accumulate_hooks, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    meta = self._impl.autograd
    if self.grad_fn is None or meta.retains_grad:
        return
    meta.retains_grad = True

    def keep(grad: Tensor) -> None:
        meta.grad = grad.clone() if meta.grad is None else meta.grad + grad

    register_hook(self, keep)


def detach_(self: Tensor) -> Tensor:
    """Forget this tensor's history, in place; RuntimeError for views."""
    if self._impl.view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    meta = self._impl.autograd
    if meta is not None:
        meta.grad_fn, meta.output_nr, meta.requires_grad = None, 0, False
    return self


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (backward, register_hook, register_post_accumulate_grad_hook, retain_grad, detach_):
        setattr(Tensor, method.__name__, method)
    Tensor.grad_fn = property(grad_fn)


install()
