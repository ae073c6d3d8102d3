"""SavedTensor: a tensor that a node keeps for the backward pass, with the version it had."""

from __future__ import annotations

from collections.abc import Callable

import rushlight._C as _C
from rushlight.autograd.duals import restore
from rushlight.autograd.node import Edge, Node, set_history
from rushlight.autograd.saved_tensors_hooks import active_hooks
from rushlight.autograd.view_history import gradient_edge, refresh_view
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import like, sees_operators
from rushlight.ops.packet import namespaces

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

_HINT = (
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_HINT_WITH_ANOMALY = (
    "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed "
    "in there or anywhere later. Good luck!"
)


class SavedTensor(_C.SavedTensorBase):
    """A tensor kept for the backward pass; unpacking checks that nobody wrote to it since.

    `output_nr` is given when the tensor is an output of the node that keeps it. To avoid a reference cycle, an alias without
    history is kept then, and unpacking restores the history. Under saved_tensors_hooks, the pack hook's result is kept instead
    of the tensor, along with its gradient `edge`; versions are not checked then.
    """

    __slots__ = ()

    def __init__(self, tensor: Tensor, output_nr: int | None = None):
        impl = tensor._impl
        if impl.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
                "it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        self.version = impl.version.value
        self.output_nr = output_nr
        self.tensor = tensor if output_nr is None else _alias(tensor)
        self.unpack_hook: Callable | None = None
        if state.saved_tensor_hooks:
            hooks = active_hooks()
            if hooks is not None:
                self.register_hooks(*hooks)

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Keep `pack_hook(tensor)` in place of the tensor; RuntimeError when it has hooks already, or is written to."""
        if self.unpack_hook is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set is not supported.")
        given = self.tensor
        self.edge: Edge = gradient_edge(given) if self.output_nr is None else (None, self.output_nr)
        before = state.grad_enabled
        state.grad_enabled = False
        try:
            self.tensor = pack_hook(given.detach())
        finally:
            state.grad_enabled = before
        if given._impl.version.value != self.version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
                "modified by in-place operations as this can lead to unexpected side-effects. Clone the tensor first."
            )
        self.unpack_hook = unpack_hook

    def unpack(self, owner: Node) -> Tensor:
        """Return the tensor; RuntimeError when it was modified in place after it was saved."""
        if self.unpack_hook is not None:
            return self._unpack_by_hook(owner)
        tensor = self.tensor
        if tensor._impl.version.value != self.version:
            raise RuntimeError(self._version_error(owner))
        if self.output_nr is None:
            return tensor
        output = _alias(tensor)
        set_history(output._impl, *_producer(owner, self.output_nr))
        if state.dual_levels:
            restore(output, owner, self.output_nr)
        return output

    def _unpack_by_hook(self, owner: Node) -> Tensor:
        found = self.unpack_hook(self.tensor)
        if not isinstance(found, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}"
            )
        node, index = _producer(owner, self.output_nr) if self.output_nr is not None else self.edge
        if node is None:
            return found
        output = _alias(found)
        set_history(output._impl, node, index)
        return output

    def _version_error(self, owner: Node) -> str:
        impl = self.tensor._impl
        refresh_view(impl)
        meta = impl.autograd
        origin = ""
        if self.output_nr is not None:
            origin = f", which is output {self.output_nr} of {owner.operation()},"
        elif meta is not None and meta.grad_fn is not None:
            origin = f", which is output {meta.output_nr} of {meta.grad_fn.operation()},"
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{impl.dtype.scalar_name}Tensor {list(impl.sizes)}]{origin} is at version {impl.version.value}; expected "
            f"version {self.version} instead. Hint: {_HINT if state.anomaly is None else _HINT_WITH_ANOMALY}"
        )


def _producer(owner: Node, output_nr: int) -> Edge:
    """Return the edge of a node's output. If the output was written to a view, the edge is that of the base's node."""
    written_view = getattr(owner, "written_views", {}).get(output_nr)
    seen = None if written_view is None else written_view()
    return (owner, output_nr) if seen is None else (seen, 0)


def _alias(tensor: Tensor) -> Tensor:
    """Return the same value without history, as a new object. Modes that know tensors by their impl are told of it."""
    if state.modes:
        return namespaces.aten.detach.default(tensor)
    impl = tensor._impl
    if sees_operators(tensor):
        return like(tensor, impl.alias(impl.sizes, impl.strides, impl.storage_offset))
    return wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))


def save(value: object) -> object:
    """Return `value` in the form that a node keeps: tensors, also those in lists, as SavedTensors."""
    if isinstance(value, Tensor):
        return SavedTensor(value)
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [save(item) for item in value]
    return value


def unpack(saved: object, owner: Node) -> object:
    """Return the value that `save` was given."""
    if isinstance(saved, SavedTensor):
        return saved.unpack(owner)
    if isinstance(saved, list):
        return [unpack(item, owner) for item in saved]
    return saved


def keeps_tensors(saved: object) -> bool:
    """Return whether a result of `save` contains tensors."""
    return isinstance(saved, SavedTensor) or (isinstance(saved, list) and any(map(keeps_tensors, saved)))


_C.configure(saved_type=SavedTensor, save=save, save_output=SavedTensor, unpack=unpack, set_history=set_history)
