"""The history of views: the edge of a tensor's gradient, also after its base was written to in place."""

from __future__ import annotations

from rushlight.autograd.derivatives.views import as_strided_gradient
from rushlight.autograd.node import NO_EDGE, Edge, Node, accumulator_of, geometry_of, info_of, set_history
from rushlight.core.dispatch_key import LAZY_BITS
from rushlight.core.strides import may_overlap
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.view_origin import FUNCTION_VIEW, INFERENCE_VIEW, MULTIPLE_VIEWS, NO_GRAD_VIEW
from rushlight.ops.lazy_views import materialize_bits, toggle_lazy_bits
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")



def gradient_edge(tensor: Tensor) -> Edge:
    """Return the edge of `tensor`: its grad_fn's output, its accumulator if it is a leaf, or none."""
    impl = tensor._impl
    if impl.view is not None:
        refresh_view(impl)
    meta = impl.autograd
    if meta is None and impl.view is None:
        return NO_EDGE
    if meta is not None and meta.grad_fn is not None:
        return (meta.grad_fn, meta.output_nr)
    if meta is None or not meta.requires_grad:
        # A view that was made without recording requires grad because its base does, but no gradient reaches it.
        return NO_EDGE
    return (accumulator_of(tensor, meta), 0)


def refresh_view(impl: TensorImpl) -> None:
    """Give a view whose base was written to in place a grad_fn that reads from the base's current value.

    RuntimeError for views that must not follow their base, such as those made under no_grad.
    """
    view, meta = impl.view, impl.autograd
    if view is None or view.version == impl.version.value:
        return
    if (meta is None or meta.grad_fn is None) and not view.base._impl.requires_grad:
        return
    if view.origin:
        raise RuntimeError(forbidden_write(impl, "its base or another view of its base has been"))
    set_history(impl, AsStridedBackward0(view.base, impl), 0)
    view.version = impl.version.value


def forbidden_write(impl: TensorImpl, what: str) -> str:
    """Return the reason why writing to a view is forbidden: an operator returned it with others, or a Function or a mode
    without recording made it."""
    origin, meta = impl.view.origin, impl.autograd
    node = None if meta is None else meta.grad_fn
    mode = "inference" if origin == INFERENCE_VIEW else "no_grad"
    if node is None:
        head = f"A view was created in {mode} mode and {what} modified inplace with grad mode enabled."
    elif origin in (INFERENCE_VIEW, NO_GRAD_VIEW):
        head = (
            f"Output {meta.output_nr} of {node.operation()} is a view of a view which was created in {mode} mode and {what} "
            "modified inplace with grad mode enabled."
        )
    else:
        head = f"Output {meta.output_nr} of {node.operation()} is a view and {what} modified inplace."
    return f"{head} {_REASONS[origin]}"


_TWO_WAYS = (
    "You can clarify your code by moving both the view and the inplace either both inside the no_grad block (if you don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_REASONS = {
    NO_GRAD_VIEW: f"Given that this use case is ambiguous and error-prone, it is forbidden. {_TWO_WAYS}",
    INFERENCE_VIEW: f"Given that this use case is ambiguous and error-prone, it is forbidden. {_TWO_WAYS}",
    MULTIPLE_VIEWS: (
        "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
    FUNCTION_VIEW: (
        "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
        "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
    ),
}


class AsStridedBackward0(Node):
    """The regenerated history of a view: the gradient of the base is zero outside the view."""

    def __init__(self, base: Tensor, view: TensorImpl):
        super().__init__()
        self.window = Window(base._impl, view)
        self.next_functions = (gradient_edge(base),)
        self.output_info = [info_of(view)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return (None,)
        return (self.window.spread(grad),)


class Window:
    """The place of a view in its base, as a map between gradients of the base's layout and gradients of the view.

    For a real view of a complex base (or the reverse), positions count real numbers, two for each complex one. `turned` holds
    the lazy bits (conjugation, negation) in which the view differs from the base.
    """

    def __init__(self, base: TensorImpl, view: TensorImpl):
        self.turned = (base.key_set ^ view.key_set) & LAZY_BITS
        self.base, self.view = geometry_of(base), geometry_of(view)
        self.base_is_complex = base.dtype.is_complex and not view.dtype.is_complex
        self.view_is_complex = view.dtype.is_complex and not base.dtype.is_complex

    def part(self, whole: Tensor) -> Tensor:
        """Return the view's part of `whole`, a gradient with the base's layout that starts at the storage's start."""
        own = _in_real_numbers(self.base) if self.base_is_complex else self.base
        sizes, strides, offset = _in_real_numbers(self.view) if self.view_is_complex else self.view
        source = aten.view_as_real(whole) if self.base_is_complex else whole
        found = source.as_strided(sizes, strides, offset - own[2])
        return toggle_lazy_bits(aten.view_as_complex(found) if self.view_is_complex else found, self.turned)

    def copy(self, grad: Tensor) -> Tensor:
        """Return a copy of the base's gradient with the base's layout."""
        return grad.new_empty_strided(*self.base[:2]).copy_(grad)

    def spread(self, grad: Tensor) -> Tensor:
        """Return the base's gradient from the gradient of the view alone."""
        if may_overlap(*self.view[:2]) or may_overlap(*self.base[:2]):
            own = _in_real_numbers(self.base) if self.base_is_complex else self.base
            view = _in_real_numbers(self.view) if self.view_is_complex else self.view
            grad = materialize_bits(grad, self.turned)
            found = as_strided_gradient(aten.view_as_real(grad) if self.view_is_complex else grad, own, view)
            return aten.view_as_complex(found) if self.base_is_complex else found
        kind = grad.dtype.to_complex() if self.base_is_complex else grad.dtype.to_real() if self.view_is_complex else grad.dtype
        whole = aten.new_empty_strided(grad, *self.base[:2], dtype=kind).zero_()
        self.part(whole).copy_(grad)
        return whole


def _in_real_numbers(geometry: tuple) -> tuple:
    sizes, strides, offset = geometry
    return (*sizes, 2), (*(2 * stride for stride in strides), 1), 2 * offset
