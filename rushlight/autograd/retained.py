"""Retained gradients: a tensor that is no leaf keeps its gradient in `.grad`."""

from __future__ import annotations

import weakref

from rushlight.autograd.view_history import refresh_view
from rushlight.core.tensor import Tensor


def retain_gradient(tensor: Tensor) -> None:
    """Keep the gradient of a non-leaf in `.grad`, as it is after the tensor's hooks. Leaves keep theirs anyway."""
    impl = tensor._impl
    if impl.view is not None:
        refresh_view(impl)
    meta = impl.autograd
    if meta is not None and meta.grad_fn is not None:
        meta.retains_grad = True
        # A weak reference, because the tensor owns the node.
        meta.grad_fn.make_hooks().retain[meta.output_nr] = weakref.ref(impl)
