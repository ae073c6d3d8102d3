"""The history of views: where a tensor's gradient flows, also after its base was written to in place."""

from __future__ import annotations

from rushlight.autograd.derivatives.views import as_strided_gradient
from rushlight.autograd.node import NO_EDGE, Edge, Node, accumulator_of, geometry_of, info_of, set_history
from rushlight.core.strides import may_overlap
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import AutogradMeta, TensorImpl

# Where a view was made that must not be written to while autograd records (ViewMeta.origin).
NO_GRAD_VIEW = "no_grad"
FUNCTION_VIEW = "function"
INFERENCE_VIEW = "inference"


def gradient_edge(tensor: Tensor) -> Edge:
    """Where the gradient of `tensor` flows: its grad_fn's output, its accumulator if it is a leaf, or nowhere."""
    impl = tensor._impl
    if impl.view is not None:
        refresh_view(impl)
    meta = impl.autograd
    if meta is None and impl.view is None:
        return NO_EDGE
    if meta is not None and meta.grad_fn is not None:
        return (meta.grad_fn, meta.output_nr)
    if not impl.requires_grad:
        return NO_EDGE
    if meta is None:
        meta = impl.autograd = AutogradMeta()
    return (accumulator_of(tensor, meta), 0)


def refresh_view(impl: TensorImpl) -> None:
    """Give a view whose base was written to in place a grad_fn that reads from the base's new history.

    RuntimeError for views that are not to follow their base, such as those made under no_grad.
    """
    view = impl.view
    if view is None or view.version == impl.version.value or not impl.requires_grad:
        return
    if view.origin:
        raise RuntimeError(forbidden_write(impl, "its base or another view of its base has been modified inplace"))
    base = view.base._impl
    if base.autograd is None or base.autograd.grad_fn is None:
        return
    set_history(impl, AsStridedBackward0(view.base, impl), 0)
    view.version = impl.version.value


def forbidden_write(impl: TensorImpl, what: str) -> str:
    """Why a view made by a Function or in a mode without recording cannot have been written to."""
    if impl.view.origin == FUNCTION_VIEW:
        meta = impl.autograd
        name = "a Function" if meta is None or meta.grad_fn is None else meta.grad_fn.operation()
        number = 0 if meta is None else meta.output_nr
        return (
            f"Output {number} of {name} is a view and {what}. This view was created inside a custom "
            "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override "
            "the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is "
            "forbidden. You can fix this by cloning the output of the custom Function."
        )
    mode = "inference mode" if impl.view.origin == INFERENCE_VIEW else "no_grad mode"
    return (
        f"A view was created in {mode} and {what} with grad mode enabled. Given that "
        "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
        "the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if "
        "you want the inplace to be tracked)."
    )


class AsStridedBackward0(Node):
    """The regenerated history of a view: the gradient of the base is zero outside the view."""

    def __init__(self, base: Tensor, view: TensorImpl):
        super().__init__()
        self.base_geometry, self.geometry = geometry_of(base._impl), geometry_of(view)
        self.next_functions = (gradient_edge(base),)
        self.output_info = [info_of(view)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return (None,)
        if may_overlap(*self.geometry[:2]) or may_overlap(*self.base_geometry[:2]):
            return (as_strided_gradient(grad, self.base_geometry, self.geometry),)
        sizes, strides, offset = self.geometry
        whole = grad.new_empty_strided(*self.base_geometry[:2]).zero_()
        whole.as_strided(sizes, strides, offset - self.base_geometry[2]).copy_(grad)
        return (whole,)
