"""Nodes of the tape: a node turns gradients of its outputs into gradients of its inputs.

`next_functions[i]` is the edge (node, output number) to which the gradient of input i flows, or (None, 0).
"""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections.abc import Callable

import rushlight._C as _C
from rushlight._C import NodeBase
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import AutogradMeta, TensorImpl
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

Edge = tuple["Node | None", int]
NO_EDGE: Edge = (None, 0)
# The properties that the engine checks a gradient against: sizes, dtype and device of the forward value (dtype None for no
# tensor).
OutputInfo = tuple[tuple[int, ...], dtype | None, device | None]


class NodeHooks:
    """The hooks of a node, each kind by id in the order of registration.

    `tensor` holds, per output number, hooks on that output's gradient; `retain`, per output number, the tensor's impl (weakly)
    whose `.grad` keeps the gradient after those hooks; `before` and `after` run before and after the node.
    """

    __slots__ = ("tensor", "retain", "before", "after")

    def __init__(self):
        self.tensor: dict[int, dict[int, Callable]] = {}
        self.retain: dict[int, weakref.ref[TensorImpl]] = {}
        self.before: dict[int, Callable] = {}
        self.after: dict[int, Callable] = {}


class Node(NodeBase):
    """Base of the tape's nodes. `output_info[k]` describes forward output k; `sequence_nr` counts nodes as they are made.

    These, `next_functions` and `hooks` (NodeHooks or None) are fields of a C struct (`csrc/node.h`).
    """

    next_functions: tuple[Edge, ...]
    sequence_nr: float
    output_info: list[OutputInfo]
    hooks: NodeHooks | None

    def name(self) -> str:
        """Return the node's name, such as "MulBackward0"."""
        return type(self).__name__

    def operation(self) -> str:
        """Return the operation's name in error messages: "Mul"."""
        return re.sub(r"Backward\d*$", "", self.name())

    def apply(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Return gradients of the inputs, one per edge."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop saved tensors when the graph is freed."""

    def make_hooks(self) -> NodeHooks:
        """Return the node's hooks, created if it had none."""
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def register_hook(self, hook: Callable) -> HookHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; it may return new grad_inputs."""
        return HookHandle(self.make_hooks().after, hook)

    def register_prehook(self, hook: Callable) -> HookHandle:
        """Call `hook(grad_outputs)` before the node runs; it may return new grad_outputs."""
        return HookHandle(self.make_hooks().before, hook)

    @property
    def metadata(self) -> dict:
        """A dict for users' notes on this node."""
        return self.__dict__.setdefault("_metadata", {})

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class HookHandle:
    """Removes a hook; `remove()` may be called twice."""

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Callable], hook: Callable):
        self.id = next(self._ids)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


_accumulation = threading.RLock()


class AccumulateGrad(_C.AccumulateNode, Node):
    """The leaf of the tape: adds the arriving gradient to `variable.grad`. The engine runs it before all other ready nodes.

    The engine itself steals a gradient that nobody else holds (`csrc/accumulate.c`).
    """

    variable: Tensor

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return ()
        meta = self.variable._impl.autograd
        with _accumulation:
            if meta.grad is None:
                # Copy it: other leaves may have received the same gradient tensor, and users write to `.grad` in place.
                meta.grad = _copy_like(grad, self.variable._impl)
            elif state.grad_enabled or grad.requires_grad or meta.grad.requires_grad or meta.grad.layout is not grad.layout:
                # Out of place, because the old gradient may be part of the graph being created.
                meta.grad = meta.grad + grad
            else:
                meta.grad.add_(grad)
        for hook in list((meta.post_accumulate_hooks or {}).values()):
            if hook(self.variable) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        return ()


_C.configure(accumulate_type=AccumulateGrad)


def _copy_like(grad: Tensor, variable: TensorImpl) -> Tensor:
    """Return a copy of `grad` with the variable's strides, so that optimizers read both in memory order."""
    if grad._impl.strides == variable.strides:
        return grad.clone()
    if not is_non_overlapping_and_dense(variable.sizes, variable.strides):
        return namespaces.aten.clone.default(grad).contiguous()
    made = grad.new_empty_strided(variable.sizes, variable.strides)
    return made.copy_(grad)


def info_of(impl: TensorImpl) -> OutputInfo:
    """Return the facts that the engine checks this value's gradient against."""
    return (impl.sizes, impl.dtype, impl.device)


def geometry_of(impl: TensorImpl) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes, strides and storage offset."""
    return (impl.sizes, impl.strides, impl.storage_offset)


def accumulator_of(tensor: Tensor, meta: AutogradMeta) -> AccumulateGrad:
    """Return the AccumulateGrad node of a leaf: one at a time per leaf, alive as long as a graph holds it."""
    accumulator = _C.accumulator_of(tensor)
    if meta.hooks and not (accumulator.hooks is not None and accumulator.hooks.tensor):
        accumulator.make_hooks().tensor[0] = meta.hooks
    return accumulator


def set_history(impl: TensorImpl, node: Node, output_nr: int) -> None:
    """Make a tensor output `output_nr` of `node`; if it retains its gradient, it now retains that of the new value."""
    meta = impl.autograd
    if meta is None:
        meta = impl.autograd = AutogradMeta()
    if meta.retains_grad:
        meta.grad_fn.hooks.retain.pop(meta.output_nr, None)
        node.make_hooks().retain[output_nr] = weakref.ref(impl)
    meta.grad_fn, meta.output_nr, meta.requires_grad = node, output_nr, False
