"""`torch.utils.swap_tensors`: exchange two tensors."""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.core.tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the contents of two tensors: memory, gradients, classes and attributes. Each reference then sees the other's
    content.

    RuntimeError if one of them has weak references, which would also see the other's content.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = _slots(t1), _slots(t2)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1._impl, t2._impl = t2._impl, t1._impl
    own, theirs = dict(getattr(t1, "__dict__", {})), dict(getattr(t2, "__dict__", {}))
    for tensor, attributes in ((t1, theirs), (t2, own)):
        if hasattr(tensor, "__dict__"):
            tensor.__dict__.clear()
            tensor.__dict__.update(attributes)
    for tensor, values in zip((t2, t1), slots, strict=True):
        for name, value in values.items():
            setattr(tensor, name, value)


def _slots(tensor: Tensor) -> dict[str, Any]:
    """Return what a tensor's class keeps in slots of its own, such as the parts of a wrapper."""
    names = (name for kind in type(tensor).__mro__ if kind is not Tensor for name in kind.__dict__.get("__slots__", ()))
    return {name: getattr(tensor, name) for name in names if name != "_impl" and hasattr(tensor, name)}
