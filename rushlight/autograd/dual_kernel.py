"""Kernels of forward-mode AD, at the key Dual. The kernels of lower keys compute the primal; a rule computes the tangent at the
innermost level.

Rules cover operators that are linear, elementwise, products, views or writes. Other operators use double backward: their
vector-Jacobian product is linear in the outputs' gradients, and its derivative along the tangents is the tangent of the
outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from rushlight.autograd.backward import grad
from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE
from rushlight.autograd.duals import DUAL, Level, Running, attach, detach_keeping_tangents, is_inexact, replace, tangent_of
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import INPLACE_OF
from rushlight.ops.schema import Argument

aten = namespaces.namespace("aten")

# Operators that are jointly linear in all floating tensors: call them with tangents in place of the inputs.
_LINEAR = frozenset(
    "neg sum.dim_IntList mean.dim cat stack cumsum index_select gather permute expand view clone constant_pad_nd flip roll "
    "_to_copy to.dtype add.Tensor sub.Tensor index.Tensor embedding upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "avg_pool2d avg_pool3d _adaptive_avg_pool2d tril triu diagonal_copy real imag view_as_real view_as_complex _conj conj "
    "_neg_view conj_physical where.self masked_select".split()
)
_WITHOUT_TANGENT = ("detach", "lift_fresh")
_SELECTORS = ("condition", "mask", "index", "indices")  # arguments with these names select elements and have no tangent
# Bilinear operators, with the positions of their two factors.
_PRODUCTS = {
    "mul.Tensor": (0, 1), "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "convolution": (0, 1),
}  # fmt: skip
# Operators that add a product to a summand, with the product's operator.
_SUMS_WITH_PRODUCT = {"addmm": "mm", "baddbmm": "bmm"}
# Elementwise operators: the Jacobian is diagonal, so the gradient formula also computes the tangent.
_ELEMENTWISE = frozenset(
    "exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt reciprocal sigmoid "
    "abs erf erfc erfinv lgamma digamma relu pow.Tensor_Scalar div.Tensor gelu silu".split()
)


def _make_kernel(op: OpOverload, below: int) -> Callable:
    def run(*args: object, **kwargs: object) -> object:
        if not state.dual_levels:  # the level has ended, but restored thread keys may still include DUAL
            return op.resolve(below)(*args, **kwargs)
        level, rest = state.dual_levels[-1], state.dual_levels[:-1]
        call = op.resolve(below | DUAL if rest else below)
        with Running(rest):
            stack = op.normalize(args, kwargs)
            tangents = [_tangents(value, level) for value in stack]
            if not any(map(_has_any, tangents)):
                return _run_without_tangents(op, level, call, args, kwargs)
            if op.writes_self:
                return _write(op, level, call, args, kwargs, stack, tangents)
            return _compute_tangents(op, level, call, args, kwargs, stack, tangents)

    return run


def _tangents(value: object, level: Level) -> object:
    """Return the tangents of an argument's tensors: a tensor, a list, or None."""
    if isinstance(value, Tensor):
        return tangent_of(value, level)
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [_tangents(item, level) for item in value]
    return None


def _has_any(tangent: object) -> bool:
    return any(map(_has_any, tangent)) if isinstance(tangent, list) else tangent is not None


def _run_without_tangents(op: OpOverload, level: Level, call: Callable, args: tuple, kwargs: dict) -> object:
    """Run an operator whose inputs have no tangents."""
    result = call(*args, **kwargs)
    if op.writes_self and isinstance(result, Tensor):
        replace(result, level, None)
    return result


def _compute_tangents(
    op: OpOverload, level: Level, call: Callable, args: tuple, kwargs: dict, stack: list, tangents: list
) -> object:
    if op in NON_DIFFERENTIABLE or op._opname in _WITHOUT_TANGENT:
        return call(*args, **kwargs)
    if op.is_view:
        return _view(op, level, call(*args, **kwargs), stack, tangents)
    rule = _find_rule(op)
    if rule is None:
        result = call(*args, **kwargs)
        if any(is_inexact(output) for output in _as_sequence(result)):
            raise NotImplementedError(
                f"Trying to use forward AD with {op._opname} that does not support it because it has not been implemented yet."
            )
        return result
    result = call(*args, **kwargs)
    found = rule(op, stack, tangents, result)
    for output, tangent in zip(_as_sequence(result), found, strict=False):
        if tangent is not None and is_inexact(output):
            attach(output, level, tangent)
    return result


def _view(op: OpOverload, level: Level, result: object, stack: list, tangents: list) -> object:
    """Return the result and tangent of an operator that may return a view. A view's tangent is part of its base's; a copy has
    its own.
    """
    copies = [output for output in _as_sequence(result) if isinstance(output, Tensor) and output._impl.view is None]
    if copies and not any(output is value for output in copies for value in stack):
        for output, tangent in zip(_as_sequence(result), _linear(op, stack, tangents, result), strict=True):
            attach(output, level, tangent)
    return result


def _as_sequence(result: object) -> Sequence:
    return result if isinstance(result, tuple | list) else (result,)


def _find_rule(op: OpOverload) -> Callable | None:
    name = op.name.removeprefix("aten::")
    if name in _LINEAR:
        return _linear
    if name in _PRODUCTS:
        return _product
    if name in _SUMS_WITH_PRODUCT:
        return _sum_with_product
    if op not in DERIVATIVES:
        return None
    return _elementwise if name in _ELEMENTWISE else _double_backward


# Rules: from an operator, its arguments, their tangents and its result to the tangents of its outputs


def _linear(op: OpOverload, stack: list, tangents: list, result: object) -> list:
    """Return the operator applied to the tangents, with zeros for missing ones."""
    given = [
        value if argument.name in _SELECTORS else 0 if _is_summand(argument, value) else _in_place_of(value, tangent)
        for argument, value, tangent in zip(op._schema.arguments, stack, tangents, strict=True)
    ]
    found = _invoke(op, given)
    outputs = _as_sequence(result)
    return [_cast_like(tangent, output) for tangent, output in zip(_as_sequence(found), outputs, strict=True)]


def _is_summand(argument: Argument, value: object) -> bool:
    """Return whether an argument is a constant added to the result, as a value or a summand. Its tangent is zero."""
    return argument.name == "value" or argument.type.base == "Tensor" and isinstance(value, bool | int | float | complex)


def _in_place_of(value: object, tangent: object) -> object:
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        marks = tangent if isinstance(tangent, list) else [None] * len(value)
        return [_in_place_of(item, mark) for item, mark in zip(value, marks, strict=True)]
    if not isinstance(value, Tensor):
        return value
    return aten.zeros_like.default(value) if tangent is None else tangent


def _cast_like(tangent: Tensor, output: Tensor) -> Tensor:
    return tangent if tangent.dtype is output.dtype else tangent.to(output.dtype)


def _product(op: OpOverload, stack: list, tangents: list, result: Tensor) -> list:
    """Apply the product rule. A bias adds its own tangent."""
    total = None
    for position in _PRODUCTS[op.name.removeprefix("aten::")]:
        if tangents[position] is None:
            continue
        given = list(stack)
        given[position] = tangents[position]
        if op._opname == "convolution":
            given[2] = None
        term = _invoke(op, given)
        total = term if total is None else total + term
    if op._opname == "convolution" and tangents[2] is not None:
        shape = [1, -1] + [1] * (result.dim() - 2)
        bias = tangents[2].view(shape).expand(result.shape)
        total = bias if total is None else total + bias
    return [_cast_like(total, result)]


def _sum_with_product(op: OpOverload, stack: list, tangents: list, result: Tensor) -> list:
    """Compute the tangent of beta * self + alpha * (first @ second)."""
    _, first, second, beta, alpha = stack
    product = getattr(aten, _SUMS_WITH_PRODUCT[op._opname]).default
    terms = [] if tangents[0] is None else [(tangents[0] if beta == 1 else tangents[0] * beta).expand(result.shape)]
    for left, right in ((tangents[1], second), (first, tangents[2])):
        if left is not None and right is not None:
            term = product(left, right)
            terms.append(term if alpha == 1 else term * alpha)
    return [_cast_like(functools.reduce(aten.add.Tensor, terms), result)]


def _elementwise(op: OpOverload, stack: list, tangents: list, result: Tensor) -> list:
    """Evaluate the gradient formulas with tangents in place of gradients, conjugated for complex numbers."""
    if any(value.is_complex() for value in (*_leaf_tensors(stack), result)):
        return _double_backward(op, stack, tangents, result)
    total = None
    named = {argument.name: value for argument, value in zip(op._schema.arguments, stack, strict=True)}
    for formula in DERIVATIVES[op].formulas:
        tangent = tangents[op._schema.positions[formula.inputs[0]]]
        if tangent is None:
            continue
        spread = tangent.to(result.dtype).expand(result.shape)
        term = formula.function(**{name: _parameter_value(name, named, spread, result) for name in formula.names})
        total = term if total is None else total + term
    return [_cast_like(total, result)]


def _parameter_value(name: str, named: dict, spread: Tensor, result: Tensor) -> object:
    """Return the value of a formula's parameter, as if the input had the result's sizes, so that nothing is summed over
    broadcasting.
    """
    if name == "grad":
        return spread
    if name == "result":
        return result
    if name == "needs":
        return (True,) * 2
    plain, _, kind = name.rpartition("_")
    if kind == "sizes" and plain in named:
        return tuple(result.shape)
    if kind == "dtype" and plain in named:
        return result.dtype
    return named[name]


def _double_backward(op: OpOverload, stack: list, tangents: list, result: object) -> list:
    """Differentiate the vector-Jacobian product along the tangents (double backward)."""
    recorded = state.grad_enabled and any(value.requires_grad for value in _leaf_tensors([*stack, *tangents]))
    with enable_grad():
        points: list[Tensor] = []
        starts: list[Tensor] = []
        given = [_as_leaves(value, tangent, points, starts) for value, tangent in zip(stack, tangents, strict=True)]
        outputs = _as_sequence(_invoke(op, given))
        reached = [position for position, output in enumerate(outputs) if isinstance(output, Tensor) and output.requires_grad]
        chosen = [outputs[position] for position in reached]
        vectors = [aten.zeros_like.default(output).detach().requires_grad_() for output in chosen]
        products = grad(chosen, points, vectors, create_graph=True, allow_unused=True) if chosen else ()
        pairs = [
            (product, start) for product, start in zip(products, starts, strict=bool(chosen))
            if product is not None and product.requires_grad
        ]  # fmt: skip
    found: Sequence = (None,) * len(vectors)
    if pairs:
        values, directions = zip(*pairs, strict=True)
        found = grad(values, vectors, directions, retain_graph=recorded, create_graph=recorded, allow_unused=True)
    results: list = [None] * len(outputs)
    for position, tangent, output in zip(reached, found, chosen, strict=True):
        results[position] = aten.zeros_like.default(output).detach() if tangent is None else tangent
    return results


def _leaf_tensors(value: object) -> list[Tensor]:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaf_tensors(item)]
    return [value] if isinstance(value, Tensor) else []


def _as_leaves(value: object, tangent: object, points: list, starts: list) -> object:
    """Replace tensors that have tangents by fresh leaves, and collect them with the tangents."""
    if isinstance(tangent, list):
        return [_as_leaves(item, mark, points, starts) for item, mark in zip(value, tangent, strict=True)]
    if tangent is None:
        return value
    point = aten.clone.default(value) if value.requires_grad else detach_keeping_tangents(value).requires_grad_()
    points.append(point)
    starts.append(tangent)
    return point


def _invoke(op: OpOverload, stack: list) -> object:
    """Call an operator with all arguments in schema order, at the currently active levels."""
    arguments, count = op._schema.arguments, op._schema.positional_count
    names = [argument.name for argument in arguments[count:]]
    return op(*stack[:count], **dict(zip(names, stack[count:], strict=True)))


# In-place writes


def _write(op: OpOverload, level: Level, call: Callable, args: tuple, kwargs: dict, stack: list, tangents: list) -> object:
    """Run an operator that writes to its first argument, and update that argument's tangent."""
    self, rule = stack[0], _WRITES.get(op.name.removeprefix("aten::"))
    functional = INPLACE_OF.get(op)
    if not is_inexact(self):
        return call(*args, **kwargs)
    if rule is not None:
        tangent = rule(stack, tangents)
    elif functional is None or (functional not in DERIVATIVES and functional not in NON_DIFFERENTIABLE):
        raise NotImplementedError(
            f"Trying to use forward AD with {op._opname} that does not support it because it has not been implemented yet."
        )
    elif functional in NON_DIFFERENTIABLE:
        tangent = None
    else:
        result = _invoke(functional, stack)
        tangent = _cast_like(_find_rule(functional)(functional, stack, tangents, result)[0], self)
    result = call(*args, **kwargs)
    replace(self, level, tangent)
    return result


def _copy_tangent(stack: list, tangents: list) -> Tensor | None:
    """Compute the tangent of copy_(self, source)."""
    if tangents[1] is None:
        return None
    return tangents[1].to(stack[0].dtype).expand(stack[0].shape).clone()


def _index_put_tangent(stack: list, tangents: list) -> Tensor:
    """Compute the tangent of index_put_(self, indices, values, accumulate)."""
    self, indices, values, *more = stack
    own = aten.zeros_like.default(self) if tangents[0] is None else tangents[0]
    given = aten.zeros_like.default(values) if tangents[2] is None else tangents[2]
    return aten.index_put.default(own, indices, given, *more[:1])


def _no_tangent(stack: list, tangents: list) -> None:
    return None


_WRITES: dict[str, Callable] = {"copy_": _copy_tangent, "index_put_": _index_put_tangent} | dict.fromkeys(
    "fill_.Scalar zero_ uniform_ normal_ random_ random_.from random_.to bernoulli_.float bernoulli_.Tensor cauchy_ "
    "exponential_ geometric_ log_normal_".split(),
    _no_tangent,
)

register_fallback(DispatchKey.Dual, Kernel(_make_kernel, linked=True))
