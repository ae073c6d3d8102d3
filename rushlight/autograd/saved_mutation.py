"""In-place writes to saved tensors: copy them before the write."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.autograd.saved_tensors_hooks import saved_tensors_hooks
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode, SuspendModes
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class _Saved:
    """A saved tensor at one version."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class SavedCopies:
    """The copies of one `allow_mutation_on_saved_tensors`: `cloned` holds those that nodes still need."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self.is_open = True

    def pack(self, tensor: Tensor) -> _Saved:
        """Return the handle that a node keeps; the same one for the same elements."""
        impl = tensor._impl
        key = (id(impl.storage), impl.storage_offset, impl.sizes, impl.strides, impl.version.value)
        handle = self.tid_to_weakhandle.get(key)
        if handle is None:
            handle = self.tid_to_weakhandle[key] = _Saved(tensor)
        return handle

    def unpack(self, handle: _Saved) -> Tensor:
        """Return the elements as they were when saved."""
        if not self.is_open:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the "
                                 "graph was originally recorded.")  # fmt: skip
        return handle.tensor

    def before_write(self, tensor: Tensor) -> None:
        """Copy the saved tensors that share a tensor's memory."""
        storage = tensor._impl.storage
        for handle in list(self.tid_to_weakhandle.values()):
            if handle.tensor._impl.storage is storage:
                handle.tensor = self.cloned[handle] = handle.tensor.detach().clone()


class _Watching(DispatchMode):
    def __init__(self, copies: SavedCopies) -> None:
        self.copies = copies

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> Any:
        if op.is_mutable:
            stack = op.normalize(args, kwargs)
            for argument, value in zip(op._schema.arguments, stack, strict=True):
                for each in (value if isinstance(value, list | tuple) else (value,)) if argument.is_write else ():
                    if isinstance(each, Tensor):
                        with SuspendModes():
                            self.copies.before_write(each)
        return op(*args, **kwargs)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedCopies]:
    """Return a context in which tensors that the backward pass needs may be written to in place.

    Their elements are copied before a write, once, and only while something needs them. The backward pass belongs into the
    block, too: AssertionError outside. RuntimeError for a block inside another one.

    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = torch.ones(2, requires_grad=True)
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     _ = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    if any(isinstance(mode, _Watching) for mode in state.modes):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = SavedCopies()
    try:
        with saved_tensors_hooks(copies.pack, copies.unpack), _Watching(copies):
            yield copies
    finally:
        copies.is_open = False
        copies.cloned.clear()
        copies.tid_to_weakhandle.clear()
