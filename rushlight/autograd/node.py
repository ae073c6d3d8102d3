"""Nodes of the tape: a node turns gradients of its outputs into gradients of its inputs.

`next_functions[i]` is the edge (node, output number) to which the gradient of input i flows, or (None, 0).
"""

from __future__ import annotations

import itertools
import weakref

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import AutogradMeta, TensorImpl

_sequence = itertools.count()
Edge = tuple["Node | None", int]
NO_EDGE: Edge = (None, 0)


class Node:
    """Base of the tape's nodes.

    `output_info[k]` is (sizes, dtype, device) of forward output k; `pre_hooks` maps an output number to hooks on its gradient.
    """

    def __init__(self):
        self.next_functions: tuple[Edge, ...] = ()
        self.sequence_nr = next(_sequence)
        self.output_info: list[tuple[tuple[int, ...], dtype]] = []
        self.pre_hooks: dict[int, dict] = {}
        self.node_pre_hooks: dict[int, object] = {}
        self.post_hooks: dict[int, object] = {}
        self.metadata: dict = {}

    def name(self) -> str:
        """The node's printed name, as "MulBackward0"."""
        return type(self).__name__

    def apply(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs, one per edge."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop saved tensors once the graph is not needed again."""

    def register_hook(self, hook):
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; it may return new grad_inputs."""
        return _Handle(self.post_hooks, hook)

    def register_prehook(self, hook):
        """Call `hook(grad_outputs)` before the node runs; it may return new grad_outputs."""
        return _Handle(self.node_pre_hooks, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class _Handle:
    """Removes a hook; `remove()` may be called twice."""

    _ids = itertools.count()

    def __init__(self, hooks: dict, hook: object):
        self.id = next(self._ids)
        self.hooks = weakref.ref(hooks) if not isinstance(hooks, dict) else (lambda: hooks)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away."""
        self.hooks().pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


class AccumulateGrad(Node):
    """The leaf of the tape: adds the arriving gradient to `variable.grad`."""

    def __init__(self, variable: Tensor):
        super().__init__()
        self.sequence_nr = float("inf")
        self.impl = variable._impl
        self.variable = variable
        self.output_info = [info_of(variable._impl)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return ()
        meta = self.impl.autograd
        if meta.grad is None:
            # Other leaves may have received the very same gradient, and users write to `.grad` in place.
            meta.grad = grad.clone()
        elif grad.requires_grad or meta.grad.requires_grad:
            meta.grad = meta.grad + grad
        else:
            meta.grad.add_(grad)
        for hook in list((meta.post_accumulate_hooks or {}).values()):
            hook(self.variable)
        return ()


def info_of(impl: TensorImpl) -> tuple:
    """What the engine checks a gradient against: sizes, dtype and device of the forward value."""
    return (impl.sizes, impl.dtype, impl.device)


def refresh_view(impl: TensorImpl) -> None:
    """Give a view whose base was written to in place a grad_fn that reads from the base's new history."""
    view = impl.view
    if view is None or view.version == impl.version.value:
        return
    base = view.base._impl
    if base.autograd is None or base.autograd.grad_fn is None:
        return
    node = AsStridedBackward0(base, impl)
    node.next_functions = (gradient_edge(view.base),)
    if impl.autograd is None:
        impl.autograd = AutogradMeta()
    impl.autograd.grad_fn, impl.autograd.output_nr = node, 0
    view.version = impl.version.value


class AsStridedBackward0(Node):
    """The regenerated history of a view: the gradient of the base is zero outside the view."""

    def __init__(self, base: TensorImpl, view: TensorImpl):
        super().__init__()
        self.base_info = info_of(base)
        self.base_strides = base.strides
        self.geometry = (view.sizes, view.strides, view.storage_offset - base.storage_offset)
        self.output_info = [info_of(view)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return (None,)
        return (scatter_view(grad, self.base_info, self.base_strides, self.geometry),)


def scatter_view(grad: Tensor, base_info: tuple, base_strides: tuple, geometry: tuple) -> Tensor:
    """The gradient of a base whose only use is the view `geometry`: `grad` there, zero elsewhere."""
    sizes, kind, _ = base_info
    whole = grad.new_empty_strided(sizes, base_strides, dtype=kind)
    whole.zero_()
    whole.as_strided(*geometry).copy_(grad)
    return whole


def gradient_edge(tensor: Tensor) -> Edge:
    """Where the gradient of `tensor` flows: its grad_fn's output, its accumulator if it is a leaf, or nowhere."""
    impl = tensor._impl
    refresh_view(impl)
    meta = impl.autograd
    if meta is None:
        return NO_EDGE
    if meta.grad_fn is not None:
        return (meta.grad_fn, meta.output_nr)
    if not meta.requires_grad:
        return NO_EDGE
    accumulator = meta.accumulator() if meta.accumulator is not None else None
    if accumulator is None:
        accumulator = AccumulateGrad(tensor)
        meta.accumulator = weakref.ref(accumulator)
        if meta.hooks:
            accumulator.pre_hooks[0] = meta.hooks
    return (accumulator, 0)


def set_history(tensor: Tensor, node: Node, output_nr: int) -> None:
    """Make `tensor` output `output_nr` of `node`."""
    impl = tensor._impl
    meta = impl.autograd
    if meta is None:
        meta = impl.autograd = AutogradMeta()
    meta.grad_fn, meta.output_nr, meta.requires_grad = node, output_nr, False


class SavedTensor:
    """A tensor kept for the backward pass, with the version it had: unpacking checks that nobody wrote to it since."""

    __slots__ = ("tensor", "version", "output_nr", "node")

    def __init__(self, tensor: Tensor, node: Node | None = None, output_nr: int = 0):
        impl = tensor._impl
        if impl.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor."
            )
        self.version = impl.version.value
        self.output_nr = output_nr
        # An output saved by its own node would form a cycle: keep an alias, and the node weakly.
        self.node = None if node is None else weakref.ref(node)
        self.tensor = tensor if node is None else wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))

    def unpack(self, owner: Node) -> Tensor:
        """The tensor; RuntimeError when it was modified in place after it was saved."""
        tensor = self.tensor
        current = tensor._impl.version.value
        if current != self.version:
            raise RuntimeError(self._complaint(current))
        if self.node is not None:
            impl = tensor._impl
            tensor = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))
            set_history(tensor, owner, self.output_nr)
        return tensor

    def _complaint(self, current: int) -> str:
        tensor = self.tensor
        kind = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16"}
        label = kind.get(tensor.dtype.name, tensor.dtype.name.capitalize())
        meta = tensor._impl.autograd
        origin = ""
        if meta is not None and meta.grad_fn is not None:
            origin = f", which is output {meta.output_nr} of {meta.grad_fn.name()},"
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{label}Tensor {list(tensor.shape)}]{origin} is at version {current}; expected version {self.version} "
            "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True)."
        )
