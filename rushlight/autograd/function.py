"""Function: operations with a user-defined derivative."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable

from rushlight.autograd.anomaly import note_origin
from rushlight.autograd.batched_function import apply_batched
from rushlight.autograd.duals import Level, Running, is_inexact, replace, tangent_of
from rushlight.autograd.function_tangents import check_tangent
from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.inplace import check_inplace, rebase_history
from rushlight.autograd.node import NO_EDGE, Node, OutputInfo, info_of, set_history
from rushlight.autograd.saved_tensor import FREED, SavedTensor
from rushlight.autograd.view_history import FUNCTION_VIEW, gradient_edge
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import ViewMeta
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import is_batched
from rushlight.ops.packet import namespaces


class FunctionCtx:
    """The context object that `forward` hands to `backward`: saved tensors, marks, and any attribute set on it."""

    def __init__(self):
        self._to_save: tuple = ()
        self._saved: list[SavedTensor | None] | None = []
        self._for_forward: tuple = ()
        self._pushes = False
        self._dirty: tuple = ()
        self._non_differentiable: tuple = ()
        # Positions of the outputs that are dirty inputs or have no gradient.
        self._dirty_outputs: set[int] = set()
        self._constant_outputs: set[int] = set()
        self._node: Callable[[], Node | None] = lambda: None
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, where `ctx.saved_tensors` returns them after a version check."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `jvp`, where `ctx.saved_tensors` returns them."""
        self._for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that `forward` wrote to these inputs in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`; RuntimeError after the graph was freed, or when one was modified.

        In `jvp`, those of `save_for_forward`.
        """
        if self._pushes:
            return self._for_forward
        if self._saved is None:
            raise RuntimeError(FREED)
        node = self._node()
        return tuple(None if item is None else item.unpack(node) for item in self._saved)

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """Deprecated name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _note_outputs(self, outputs: tuple) -> None:
        """Remember the positions of marked outputs."""
        self._dirty_outputs = _positions(self._dirty, outputs)
        self._constant_outputs = _positions(self._non_differentiable, outputs)
        self._constant_outputs |= {index for index, value in enumerate(outputs) if not is_inexact(value)}


def _positions(marked: tuple, outputs: tuple) -> set[int]:
    return {index for index, output in enumerate(outputs) if any(output is tensor for tensor in marked)}


def _refuse_two_backwards(ctx: object, *grads: object) -> None:
    raise RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
    )


class FunctionBackward(Node):
    """The node of a Function call; printed under the Function's own name. Attributes of its ctx are attributes of it."""

    def __init__(self, function: type, ctx: FunctionCtx, inputs: tuple):
        super().__init__()
        self.function = function
        self.ctx = ctx
        self.next_functions = tuple(gradient_edge(v) if isinstance(v, Tensor) else NO_EDGE for v in inputs)

    def name(self) -> str:
        """Return the Function's name with "Backward"."""
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str):
        if name.startswith("_") or name == "ctx":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        try:
            return getattr(self.ctx, name)
        except AttributeError:
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'") from None

    def apply(self, grads):
        if self.ctx.materialize_grads:
            pairs = zip(grads, self.output_info, strict=True)
            grads = tuple(_zeros(info) if grad is None else grad for grad, info in pairs)
        results = self.function.backward(self.ctx, *grads)
        results = results if isinstance(results, tuple | list) else (results,)
        expected = len(self.next_functions)
        if len(results) > expected and all(value is None for value in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
            )
        for index, value in enumerate(results):
            if value is not None and not isinstance(value, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(value).__name__}) as gradient {index} of function {self.name()}"
                )
        return tuple(results)

    def release(self) -> None:
        """Drop the saved tensors."""
        self.ctx._saved = None if self.ctx._saved else self.ctx._saved


def _zero_tangent(value: object) -> Tensor | None:
    return namespaces.aten.zeros_like.default(value) if is_inexact(value) else None


def _zeros(info: OutputInfo) -> Tensor | None:
    sizes, kind, device = info
    return None if kind is None else namespaces.aten.full.default(sizes, 0, dtype=kind, device=device)


class Function:
    """Base of user-defined operations: static methods `forward(ctx, *args)` and `backward(ctx, *grads)`; call `apply`.

    `forward` may instead leave out `ctx`, with `setup_context(ctx, inputs, output)` defined beside it. Then `vmap` can map it,
    by its `vmap(info, in_dims, *args)`, which returns (output, out_dims), or, with `generate_vmap_rule`, example by example.
    """

    def __init__(self, *args: object, **kwargs: object):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning, stacklevel=2,
        )  # fmt: skip

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Raise RuntimeError: call `apply` of the class."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; autograd does not record inside."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs):
        """Return one gradient (or None) per argument of `forward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: FunctionCtx, *grad_inputs):
        """Return one tangent (or None) per output of `forward`, from those of its arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: object, in_dims: tuple, *args):
        """The rule for `torch.vmap`: returns (output, out_dims) for arguments mapped over their dimensions `in_dims`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True."
        )

    setup_context: Callable | None = None
    generate_vmap_rule = False
    _node_type: type = FunctionBackward

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._node_type = type(f"{cls.__name__}Backward", (FunctionBackward,), {"__module__": cls.__module__})
        if "vjp" in cls.__dict__:
            cls.backward = staticmethod(_refuse_two_backwards) if "backward" in cls.__dict__ else cls.__dict__["vjp"]

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run `forward`, and record a node when an input requires grad."""
        if kwargs or len(args) < cls._parameters():
            args = cls._positional_args(args, kwargs)
        if state.batch_levels and any(map(is_batched, tree_flatten(args)[0])):
            return apply_batched(cls, args)
        return cls._run(args)[0]

    @classmethod
    def _run(cls, args: tuple) -> tuple:
        """Return the result of `apply`, and the ctx. At active forward-mode levels, `jvp` computes the tangents."""
        if state.dual_levels:
            level, rest = state.dual_levels[-1], state.dual_levels[:-1]
            with Running(rest):
                output, ctx = cls._run(args)
                tangents = [tangent_of(value, level) if isinstance(value, Tensor) else None for value in args]
                if any(tangent is not None for tangent in tangents):
                    cls._push_tangents(ctx, args, tangents, output, level)
            return output, ctx
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(value, Tensor) and value.requires_grad for value in args)
        node = cls._node_type(cls, ctx, args) if state.grad_enabled and any(ctx.needs_input_grad) else None
        if node is not None and state.anomaly is not None:
            note_origin(node)
        with no_grad():
            output = cls._forward(ctx, args)
        outputs = output if isinstance(output, tuple) else (output,)
        ctx._note_outputs(outputs)
        if node is not None:
            ctx._node = weakref.ref(node)
            outputs = record(ctx, node, args, outputs)
        else:
            outputs = tuple(_as_output(ctx, output, args) for output in outputs)
        return (outputs if isinstance(output, tuple) else outputs[0]), ctx

    @classmethod
    def _push_tangents(cls, ctx: FunctionCtx, args: tuple, tangents: list, output: object, level: Level) -> None:
        """Set the outputs' tangents, which `jvp` computes from the inputs' tangents."""
        if ctx.materialize_grads:
            pairs = zip(args, tangents, strict=True)
            tangents = [_zero_tangent(value) if tangent is None else tangent for value, tangent in pairs]
        versions = [None if tangent is None else tangent._version for tangent in tangents]
        ctx._pushes = True
        try:
            found = cls.jvp(ctx, *tangents)
        finally:
            ctx._pushes = False
        outputs = output if isinstance(output, tuple) else (output,)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(outputs):
            raise RuntimeError(
                f"Expected `{cls.__name__}.jvp` to return as many values as forward did, {len(outputs)}, but got {len(found)}"
            )
        for index, (value, tangent) in enumerate(zip(outputs, found, strict=True)):
            if isinstance(value, Tensor) and tangent is not None:
                if tangent.shape != value.shape:
                    raise RuntimeError(
                        f"Expected the tangents of `{cls.__name__}.jvp` to have the shapes of the outputs, but got "
                        f"{list(tangent.shape)} for an output of shape {list(value.shape)}"
                    )
                check_tangent(ctx, index, value, tangent, args, tangents, versions)
                if value._impl.view is None or tangent_of(value, level) is None:  # views share their base's tangent
                    replace(value, level, tangent)

    @classmethod
    def _positional_args(cls, args: tuple, kwargs: dict) -> tuple:
        """Return all arguments by position, the order in which `backward` returns gradients."""
        signature = inspect.signature(cls.forward)
        if cls.setup_context is None:
            return signature.bind(None, *args, **kwargs).args[1:]
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()  # `setup_context` sees the defaults, too
        return bound.args

    @classmethod
    def _parameters(cls) -> int:
        """Return the number of positional arguments of a `forward` with a separate `setup_context`; 0 for any other."""
        code = getattr(cls.forward, "__code__", None)
        return 0 if cls.setup_context is None or code is None else code.co_argcount

    @classmethod
    def _forward(cls, ctx: FunctionCtx, args: tuple):
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output


class InplaceFunction(Function):
    """Deprecated base of Functions that write to an input; `mark_dirty` in any Function does the same.

    `inplace` is stored on instances, for programs that read it.
    """

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


def _as_output(ctx: FunctionCtx, output: object, args: tuple) -> object:
    """Return an output that is not recorded: a view where it is an input that `forward` did not write to."""
    if not isinstance(output, Tensor) or any(output is tensor for tensor in ctx._dirty):
        return output
    made = output.view_as(output) if any(output is value for value in args) else output
    view = made._impl.view
    if view is not None:
        view.origin, view.version = FUNCTION_VIEW, made._impl.version.value
    return made


def record(ctx: FunctionCtx, node: FunctionBackward, args: tuple, outputs: tuple) -> tuple:
    """Attach history to the outputs of `forward(*args)`, and save the ctx's tensors on `node`."""
    inputs = {id(value) for value in args if isinstance(value, Tensor)}
    _check_dirty(ctx, outputs)
    made = tuple(_attach(ctx, node, index, output, inputs) for index, output in enumerate(outputs))
    positions = {id(output): index for index, output in enumerate(outputs) if isinstance(output, Tensor)}
    ctx._saved = [_save(index, tensor, positions) for index, tensor in enumerate(ctx._to_save)]
    ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
    return made


def _check_dirty(ctx: FunctionCtx, outputs: tuple) -> None:
    returned = {id(output) for output in outputs}
    if not all(id(tensor) in returned for tensor in ctx._dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
            "inplace must all be outputs of the Function."
        )


def _attach(ctx: FunctionCtx, node: FunctionBackward, index: int, output: object, inputs: set[int]) -> object:
    """Make `output` output number `index` of the node, if it is a tensor that can have a gradient."""
    if not isinstance(output, Tensor):
        node.output_info.append(((), None, None))
        return output
    impl = output._impl
    node.output_info.append(info_of(impl))
    if any(output is tensor for tensor in ctx._dirty):
        check_inplace(output)
        rebase_history(output, node, index)
        return output
    returned_input = id(output) in inputs
    if returned_input:
        base = output if impl.view is None else impl.view.base
        output = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))
        output._impl.view = ViewMeta(base, impl.version.value, FUNCTION_VIEW)
    elif impl.view is not None:
        impl.view.origin, impl.view.version = FUNCTION_VIEW, impl.version.value
    skipped = any(value is output for value in ctx._non_differentiable)
    if not skipped and (impl.dtype.is_floating_point or impl.dtype.is_complex):
        set_history(output._impl, node, index)
    return output


def _save(index: int, tensor: Tensor | None, outputs: dict[int, int]) -> SavedTensor | None:
    if tensor is None:
        return None
    if not isinstance(tensor, Tensor):
        raise TypeError(f"save_for_backward can only save variables, but argument {index} is of type {type(tensor).__name__}")
    return SavedTensor(tensor, outputs.get(id(tensor)))


def once_differentiable(function: Callable) -> Callable:
    """Decorate a `backward` that is not itself differentiable: differentiating its results raises RuntimeError."""

    @functools.wraps(function)
    def once(ctx, *grads):
        with no_grad():
            results = function(ctx, *grads)
        if not state.grad_enabled or not any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads):
            return results
        if isinstance(results, tuple):
            return tuple([refuse_second_derivative(result, ONCE) for result in results])
        return refuse_second_derivative(results, ONCE)

    return once


ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def refuse_second_derivative(result: object, error: str) -> object:
    """Return a gradient whose differentiation raises RuntimeError with this text. Values that are no tensors stay as they
    are."""
    if not isinstance(result, Tensor):
        return result
    detached = result.detach()
    node = _NotDifferentiable(error)
    node.output_info = [info_of(detached._impl)]
    set_history(detached._impl, node, 0)
    return detached


class _NotDifferentiable(Node):
    def __init__(self, error: str):
        super().__init__()
        self.error = error

    def name(self) -> str:
        return "Error"

    def apply(self, grads):
        raise RuntimeError(self.error)
