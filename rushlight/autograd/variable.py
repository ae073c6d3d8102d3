"""The autograd kernels: they run an operator below autograd and record a node when an input requires grad."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE, Derivative, Formula
from rushlight.autograd.node import (
    NO_EDGE,
    Node,
    SavedTensor,
    gradient_edge,
    info_of,
    refresh_view,
    set_history,
)
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl, ViewMeta
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.registry import INPLACE_OF


def requires_grad(impl: TensorImpl) -> bool:
    """Whether a tensor takes part in recording; a view whose base was modified takes over the base's history first."""
    if impl.view is not None:
        refresh_view(impl)
    meta = impl.autograd
    return meta is not None and (meta.requires_grad or meta.grad_fn is not None)


def _any_requires_grad(values) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            impl = value._impl
            if (impl.autograd is not None or impl.view is not None) and requires_grad(impl):
                return True
        elif isinstance(value, list | tuple) and value and _any_requires_grad(value):
            return True
    return False


class OperatorBackward(Node):
    """The node of an operator with formulas in the derivative table."""

    def __init__(self, op: OpOverload, derivative: Derivative, stack: list):
        super().__init__()
        self.op = op
        self.derivative = derivative
        positions = op._schema.positions
        edges, self.spans = [], []
        for name in derivative.inputs:
            value = stack[positions[name]]
            group = list(value) if isinstance(value, list | tuple) else [value]
            self.spans.append(len(group) if isinstance(value, list | tuple) else None)
            edges += [gradient_edge(item) if isinstance(item, Tensor) else NO_EDGE for item in group]
        self.next_functions = tuple(edges)
        self.saved: dict | None = {}

    def name(self) -> str:
        """"AddBackward0": the operator's name in camel case."""
        words = self.op._schema.name.strip("_").split("_")
        return "".join(word[:1].upper() + word[1:] for word in words) + "Backward0"

    def save_inputs(self, stack: list, clone_self: bool = False) -> None:
        """Keep what the formulas name among the inputs."""
        positions = self.op._schema.positions
        for formula in self.derivative.formulas:
            for name in formula.names:
                if name in self.saved or name in ("grad", "grads", "needs"):
                    continue
                if name in positions:
                    value = stack[positions[name]]
                    written = clone_self and positions[name] == 0
                    self.saved[name] = _save(value.detach().clone() if written else value)
                elif name.endswith("_sizes") and name[:-6] in positions:
                    self.saved[name] = _sizes(stack[positions[name[:-6]]])
                elif name.endswith("_dtype") and name[:-6] in positions:
                    self.saved[name] = getattr(stack[positions[name[:-6]]], "dtype", None)

    def save_outputs(self, outputs: tuple) -> None:
        """Keep what the formulas name among the outputs."""
        for formula in self.derivative.formulas:
            for name in formula.names:
                if name.startswith("result") and name not in self.saved:
                    index = int(name[6:] or 0)
                    self.saved[name] = SavedTensor(outputs[index], self, index)

    def apply(self, grads):
        if self.saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
                "you need to access saved tensors after calling backward."
            )
        results: list[Tensor | None] = []
        for formula, needs in zip(self.derivative.formulas, self._needs(), strict=True):
            results += self._evaluate(formula, grads, needs)
        return tuple(results)

    def _needs(self) -> list[list]:
        # Per formula and input: whether its gradient goes anywhere (a list of answers where the input is a list).
        answers, position, spans = [], 0, iter(self.spans)
        for formula in self.derivative.formulas:
            row = []
            for _ in formula.inputs:
                span = next(spans)
                edges = self.next_functions[position : position + (1 if span is None else span)]
                flags = [edge[0] is not None for edge in edges]
                row.append(flags[0] if span is None else flags)
                position += len(edges)
            answers.append(row)
        return answers

    def _evaluate(self, formula: Formula, grads: tuple, needs: list) -> list:
        wanted = [any(flag) if isinstance(flag, list) else flag for flag in needs]
        results = None
        if any(wanted):
            values = [self._value(name, grads, tuple(wanted)) for name in formula.names]
            results = formula.function(*values)
            results = (results,) if len(formula.inputs) == 1 else results
        flat: list[Tensor | None] = []
        for index, flag in enumerate(needs):
            value = None if results is None else results[index]
            if isinstance(flag, list):
                flat += [None] * len(flag) if value is None else list(value)
            else:
                flat.append(value if flag else None)
        return flat

    def _value(self, name: str, grads: tuple, needs: tuple):
        if name == "grad":
            return grads[0]
        if name == "grads":
            return grads
        if name == "needs":
            return needs
        saved = self.saved[name]
        return _unpack(saved, self)

    def __getattr__(self, name: str):
        if name.startswith("_saved_"):
            return _unpack(self.saved[name[7:]], self)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def release(self) -> None:
        self.saved = None if any(self._keeps_tensors()) else self.saved

    def _keeps_tensors(self):
        for value in (self.saved or {}).values():
            yield isinstance(value, SavedTensor) or (isinstance(value, list) and any(map(_is_saved, value)))


def _is_saved(value: object) -> bool:
    return isinstance(value, SavedTensor)


def _save(value):
    if isinstance(value, Tensor):
        return SavedTensor(value)
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [_save(item) for item in value]
    return value


def _unpack(saved, owner: Node):
    if isinstance(saved, SavedTensor):
        return saved.unpack(owner)
    if isinstance(saved, list):
        return [_unpack(item, owner) for item in saved]
    return saved


def _sizes(value):
    if isinstance(value, Tensor):
        return value._impl.sizes
    return [item._impl.sizes for item in value] if isinstance(value, list | tuple) else ()


class _BelowAutograd:
    """Hides autograd from the calls that a kernel makes."""

    __slots__ = ("previous",)

    def __enter__(self):
        self.previous = state.exclude
        state.exclude = self.previous | AUTOGRAD_BITS

    def __exit__(self, *error):
        state.exclude = self.previous


def _link_autograd(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    functional = INPLACE_OF.get(op, op)
    derivative = DERIVATIVES.get(functional)
    if op.is_mutable and op._schema.returns and op._schema.returns[0].is_write:
        return _inplace_kernel(op, derivative, lower)
    if op in NON_DIFFERENTIABLE:
        return lower
    record = _record if derivative is not None else _record_unknown

    def run(*args, **kwargs):
        if not state.grad_enabled or not (_any_requires_grad(args) or (kwargs and _any_requires_grad(kwargs.values()))):
            return lower(*args, **kwargs)
        return record(op, derivative, lower, args, kwargs)

    return run


def _record(op: OpOverload, derivative: Derivative, lower: Callable, args: tuple, kwargs: dict):
    stack = op.normalize(args, kwargs)
    node = OperatorBackward(op, derivative, stack)
    if all(node_edge[0] is None for node_edge in node.next_functions):
        with _BelowAutograd():
            return lower(*args, **kwargs)
    node.save_inputs(stack)
    with _BelowAutograd():
        result = lower(*args, **kwargs)
    _attach(node, result, derivative.non_differentiable_outputs)
    node.save_outputs(result if isinstance(result, tuple) else (result,))
    return result


def _attach(node: Node, result, skipped: tuple[int, ...] = ()) -> None:
    outputs = result if isinstance(result, tuple) else (result,)
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            node.output_info.append(((), None, None))
            continue
        node.output_info.append(info_of(output._impl))
        kind = output._impl.dtype
        if index not in skipped and (kind.is_floating_point or kind.is_complex):
            set_history(output, node, index)


class NotImplementedBackward(Node):
    """The node of an operator that nobody gave a derivative: it raises when a gradient reaches it."""

    def __init__(self, op: OpOverload, inputs: list):
        super().__init__()
        self.op = op
        self.next_functions = tuple(gradient_edge(value) for value in inputs)

    def apply(self, grads):
        raise RuntimeError(f"derivative for {self.op.name} is not implemented")


def _record_unknown(op: OpOverload, derivative: None, lower: Callable, args: tuple, kwargs: dict):
    inputs = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    node = NotImplementedBackward(op, inputs)
    with _BelowAutograd():
        result = lower(*args, **kwargs)
    _attach(node, result)
    return result


def _inplace_kernel(op: OpOverload, derivative: Derivative | None, lower: Callable) -> Callable:
    def run(self, *args, **kwargs):
        record = state.grad_enabled and (
            _any_requires_grad((self,)) or _any_requires_grad(args) or (kwargs and _any_requires_grad(kwargs.values()))
        )
        if not record:
            return lower(self, *args, **kwargs)
        check_inplace(self)
        if derivative is None and op not in NON_DIFFERENTIABLE:
            raise RuntimeError(f"derivative for {op.name} is not implemented")
        node = None if derivative is None else _inplace_node(op, derivative, (self, *args), kwargs)
        with _BelowAutograd():
            lower(self, *args, **kwargs)
        if node is not None:
            node.output_info = [info_of(self._impl)]
            rebase_history(self, node)
            node.save_outputs((self,))
        return self

    return run


def _inplace_node(op: OpOverload, derivative: Derivative, args: tuple, kwargs: dict) -> OperatorBackward:
    stack = op.normalize(args, kwargs)
    node = OperatorBackward(op, derivative, stack)
    node.save_inputs(stack, clone_self=True)
    return node


def check_inplace(tensor: Tensor) -> None:
    """RuntimeError where autograd forbids writing in place: to a leaf that requires grad, or to a view of one."""
    impl = tensor._impl
    if not requires_grad(impl):
        base = None if impl.view is None else impl.view.base
        if base is None or not (base.is_leaf and base.requires_grad):
            return
    if impl.view is not None and impl.view.base.is_leaf and impl.view.base.requires_grad:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if impl.autograd is not None and impl.autograd.grad_fn is None and impl.autograd.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Record that `node` produced the present value of `tensor`, and so of part of its base if it is a view."""
    impl = tensor._impl
    if impl.view is None:
        set_history(tensor, node, 0)
        return
    base = impl.view.base
    copy = CopySlices(base, tensor, node)
    set_history(base, copy, 0)
    impl.view.version = -1
    refresh_view(impl)


class CopySlices(Node):
    """An in-place write to a view, seen from the base: the written part's gradient goes through the operator's node."""

    def __init__(self, base: Tensor, view: Tensor, node: Node):
        super().__init__()
        impl, part = base._impl, view._impl
        self.node = node
        self.base_strides = impl.strides
        self.geometry = (part.sizes, part.strides, part.storage_offset - impl.storage_offset)
        self.next_functions = (gradient_edge(base), *node.next_functions[1:])
        self.output_info = [info_of(impl)]

    def apply(self, grads):
        (grad,) = grads
        if grad is None:
            return (None,) * len(self.next_functions)
        whole = grad.new_empty_strided(grad.shape, self.base_strides)
        whole.copy_(grad)
        inner = self.node.apply((whole.as_strided(*self.geometry).clone(),))
        kept = scatter_complement(whole, self.geometry, inner[0])
        return (kept, *inner[1:])

    def release(self) -> None:
        self.node.release()


def scatter_complement(whole: Tensor, geometry: tuple, part: Tensor | None) -> Tensor:
    """`whole` with the elements of the view `geometry` replaced by `part` (zero when None)."""
    result = whole.clone()
    written = result.as_strided(*geometry)
    if part is None:
        written.zero_()
    else:
        written.copy_(part)
    return result


def _link_inplace_or_view(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    if op._schema.name in ("detach", "lift_fresh"):
        return lower
    if op.is_view:
        return _view_kernel(lower)
    if not op.is_mutable or not op._schema.returns[0].is_write:
        return lower

    def bump(self, *args, **kwargs):
        result = lower(self, *args, **kwargs)
        self._impl.version.value += 1
        return result

    return bump


def _view_kernel(lower: Callable) -> Callable:
    def run(self, *args, **kwargs):
        result = lower(self, *args, **kwargs)
        impl, made = self._impl, result._impl
        if made is not impl and not impl.inference:
            base = self if impl.view is None else impl.view.base
            made.view = ViewMeta(base, made.version.value)
        return result

    return run


register_fallback(DispatchKey.Autograd, Kernel(_link_autograd, linked=True))
register_fallback(DispatchKey.ADInplaceOrView, Kernel(_link_inplace_or_view, linked=True))
