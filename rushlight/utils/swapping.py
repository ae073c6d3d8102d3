"""`torch.utils.swap_tensors`: exchange two tensors."""

from __future__ import annotations

import weakref

from rushlight.core.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the contents of two tensors: memory, gradients, classes and attributes. Each reference then sees the other's
    content.

    RuntimeError if one of them has weak references, which would also see the other's content.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1._impl, t2._impl = t2._impl, t1._impl
    own, theirs = dict(getattr(t1, "__dict__", {})), dict(getattr(t2, "__dict__", {}))
    for tensor, attributes in ((t1, theirs), (t2, own)):
        if hasattr(tensor, "__dict__"):
            tensor.__dict__.clear()
            tensor.__dict__.update(attributes)
