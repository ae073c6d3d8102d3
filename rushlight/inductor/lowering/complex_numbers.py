"""Lowering of complex operators: a separate table, `COMPLEX`, of rules over boxes that may be complex.

Operators that move, add or negate elements apply the real rule to both parts. Products, quotients and functions are composed of
real ones (Abramowitz and Stegun, 4.3; Smith, Algorithm 116, for quotients).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.core.dtype import bool_, dtype, of_number
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node
from rushlight.inductor.ir import Constant
from rushlight.inductor.lowering import pointwise, products
from rushlight.inductor.lowering.builder import GraphBuilder
from rushlight.inductor.lowering.complex_box import ComplexBox, as_complex, each_part, of_pairs, pairs_of
from rushlight.inductor.lowering.registry import LOWERINGS
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

COMPLEX: dict[OpOverload, Callable] = {}
Rule = Callable[..., object]

# Operators that apply the real rule to both parts of their complex arguments.
OF_PARTS = (
    "alias", "detach", "lift_fresh", "contiguous", "clone", "view", "permute", "expand", "select.int", "slice.Tensor",
    "unsqueeze", "squeeze.dims", "as_strided", "index_select", "gather", "index.Tensor", "embedding", "neg", "cumsum",
    "sum.dim_IntList", "select_scatter", "slice_scatter",
)  # fmt: skip


def takes_complex_numbers(node: Node) -> bool:
    """Return whether an operator has complex operands or results, so that its rule is in `COMPLEX`."""
    return any(tensor.dtype.is_complex for tensor in tensors_of(node))


def tensors_of(node: Node) -> list[Tensor]:
    """Return the fake tensors among a node's arguments and results."""
    values = [argument.meta.get("val") for argument in node.all_input_nodes] + [node.meta.get("val")]
    items = (item for value in values for item in (value if isinstance(value, tuple | list) else (value,)))
    return [item for item in items if isinstance(item, Tensor)]


def complex_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of operators on complex tensors."""

    def register(function: Rule) -> Rule:
        for name in names:
            COMPLEX[aten(name)] = function
        return function

    return register


def _map(value: object, change: Callable[[ComplexBox], TensorBox]) -> object:
    if isinstance(value, ComplexBox):
        return change(value)
    return type(value)(_map(item, change) for item in value) if isinstance(value, list | tuple) else value


def _apply_to_parts(op: OpOverload, graph: GraphBuilder, *args: object, dtype: object = None, **kwargs: object) -> ComplexBox:
    rule = LOWERINGS[op]
    parts = ([_map(value, lambda box, name=name: getattr(box, name)) for value in args] for name in ("real", "imag"))
    return ComplexBox(*(rule(graph, *given, **kwargs) for given in parts))


for _name in OF_PARTS:
    COMPLEX[aten(_name)] = functools.partial(_apply_to_parts, aten(_name))


def result_type(graph: GraphBuilder, *operands: object) -> dtype:
    """Return the real dtype of the parts of an operator's result."""
    stand_ins = []
    for operand in operands:
        if isinstance(operand, ComplexBox):
            stand_ins.append(operand.real)
        elif isinstance(operand, TensorBox) and not operand.dtype.is_floating_point:
            continue
        elif isinstance(operand, TensorBox):
            stand_ins.append(operand)
    return graph.promote(*stand_ins)


def _as_complex_operands(graph: GraphBuilder, *operands: object) -> list[ComplexBox]:
    kind = result_type(graph, *operands).to_complex()
    return [as_complex(graph, operand, kind) for operand in operands]


# Memory


@complex_rule("view_as_real")
def view_as_real(graph, self):
    return pairs_of(graph, self)


@complex_rule("view_as_complex")
def view_as_complex(graph, self):
    return of_pairs(self)


@complex_rule("_conj", "conj_physical")
def conj(graph, self):
    return ComplexBox(self.real, pointwise_of(graph, "neg", self.imag))


@complex_rule("cat")
def cat(graph, tensors, dim=0):
    boxes = _as_complex_operands(graph, *tensors)
    sized = [_expand_imaginary(graph, box) for box in boxes]
    rule = LOWERINGS[aten("cat")]
    return ComplexBox(rule(graph, [box.real for box in sized], dim), rule(graph, [box.imag for box in sized], dim))


def _expand_imaginary(graph: GraphBuilder, box: ComplexBox) -> ComplexBox:
    """Expand the imaginary part to the box's sizes. A converted real tensor has a single number there."""
    imag = LOWERINGS[aten("expand")](graph, box.imag, box.real.size)
    return ComplexBox(box.real, imag, box.pairs)


@complex_rule("full")
def full(graph, size, fill_value, *, dtype=None, **options):
    number = complex(fill_value)
    kind = (dtype or of_number(fill_value)).to_real()
    return ComplexBox(*(
        graph.pointwise(tuple(size), kind, lambda index, part=part: Constant(kind, part)) for part in (number.real, number.imag)
    ))  # fmt: skip


@complex_rule("constant_pad_nd")
def constant_pad_nd(graph, self, pad, value=0):
    rule, number = LOWERINGS[aten("constant_pad_nd")], complex(value)
    return ComplexBox(rule(graph, self.real, pad, number.real), rule(graph, self.imag, pad, number.imag))


@complex_rule("_to_copy")
def to_copy(graph, self, *, dtype=None, **options):
    if dtype is None or dtype.is_complex:
        return _expand_imaginary(graph, as_complex(graph, self, dtype or self.dtype))
    return pointwise.to_copy(graph, self.real, dtype=dtype)


@complex_rule("where.self")
def where(graph, condition, self, other):
    one, second = _as_complex_operands(graph, self, other)
    rule = LOWERINGS[aten("where.self")]
    return ComplexBox(rule(graph, condition, one.real, second.real), rule(graph, condition, one.imag, second.imag))


# Arithmetic


def pointwise_of(graph: GraphBuilder, name: str, *operands: TensorBox | float) -> TensorBox:
    """Return a function of `rl::` on real boxes of one dtype."""
    kind = next(operand.dtype for operand in operands if isinstance(operand, TensorBox))
    return graph.elementwise(name, kind, kind, *operands)


@complex_rule("add.Tensor")
def add(graph, self, other, *, alpha=1):
    one, second = _as_complex_operands(graph, self, other)
    second = second if alpha == 1 else mul(graph, second, alpha)
    return ComplexBox(pointwise.add(graph, one.real, second.real), pointwise.add(graph, one.imag, second.imag))


@complex_rule("sub.Tensor")
def sub(graph, self, other, *, alpha=1):
    one, second = _as_complex_operands(graph, self, other)
    second = second if alpha == 1 else mul(graph, second, alpha)
    return ComplexBox(pointwise.sub(graph, one.real, second.real), pointwise.sub(graph, one.imag, second.imag))


@complex_rule("mul.Tensor")
def mul(graph, self, other):
    a, b = _as_complex_operands(graph, self, other)
    product = functools.partial(pointwise.mul_boxes, graph)
    real = pointwise.sub(graph, product(a.real, b.real), product(a.imag, b.imag))
    return ComplexBox(real, pointwise.add(graph, product(a.real, b.imag), product(a.imag, b.real)))


@complex_rule("div.Tensor")
def div(graph, self, other):
    a, b = _as_complex_operands(graph, self, other)
    of = functools.partial(pointwise_of, graph)
    real, imag = of("abs", b.real), of("abs", b.imag)
    wide = graph.elementwise("ge", real.dtype, bool_, real, imag)
    rule = functools.partial(LOWERINGS[aten("where.self")], graph, wide)
    larger, smaller = rule(b.real, b.imag), rule(b.imag, b.real)
    ratio = of("div", smaller, larger)
    whole = of("add", larger, of("mul", smaller, ratio))
    first, second = rule(a.real, a.imag), rule(a.imag, a.real)
    top = of("add", first, of("mul", second, ratio))
    low = of("sub", second, of("mul", first, ratio))
    signed = rule(low, of("neg", low))
    return ComplexBox(of("div", top, whole), of("div", signed, whole))


@complex_rule("reciprocal")
def reciprocal(graph, self):
    return div(graph, 1.0, self)


@complex_rule("abs")
def absolute(graph, self):
    return pointwise_of(graph, "hypot", self.real, self.imag)


@complex_rule("angle")
def angle(graph, self):
    return pointwise_of(graph, "atan2", self.imag, self.real)


@complex_rule("sgn")
def sgn(graph, self):
    length = absolute(graph, self)
    is_zero = graph.elementwise("eq", length.dtype, bool_, length, 0.0)
    rule = functools.partial(LOWERINGS[aten("where.self")], graph, is_zero, 0.0)
    return each_part(self, lambda part: rule(pointwise_of(graph, "div", part, length)))


def _register_comparison(name: str, join: str) -> None:
    @complex_rule(f"{name}.Tensor")
    def rule(graph, self, other):
        a, b = _as_complex_operands(graph, self, other)
        parts = [graph.elementwise(name, a.real.dtype, bool_, *each) for each in ((a.real, b.real), (a.imag, b.imag))]
        return graph.elementwise(join, bool_, bool_, *parts)


_register_comparison("eq", "logical_and")
_register_comparison("ne", "logical_or")


def _register_test_of_parts(name: str) -> None:
    @complex_rule(name)
    def rule(graph, self):
        parts = [LOWERINGS[aten(name)](graph, part) for part in (self.real, self.imag)]
        return graph.elementwise("logical_or", bool_, bool_, *parts)


_register_test_of_parts("isnan")
_register_test_of_parts("isinf")


# Functions


@complex_rule("exp")
def exp(graph, self):
    of = functools.partial(pointwise_of, graph)
    size = of("exp", self.real)
    return ComplexBox(of("mul", size, of("cos", self.imag)), of("mul", size, of("sin", self.imag)))


@complex_rule("log")
def log(graph, self):
    return ComplexBox(pointwise_of(graph, "log", absolute(graph, self)), angle(graph, self))


@complex_rule("sqrt")
def sqrt(graph, self):
    """Return the root with a nonnegative real part: sqrt((|z| + |re|) / 2) is the larger component, |im| / (2 root) the other
    one."""
    of = functools.partial(pointwise_of, graph)
    root = of("sqrt", of("mul", of("add", absolute(graph, self), of("abs", self.real)), 0.5))
    is_zero = graph.elementwise("eq", root.dtype, bool_, root, 0.0)
    where_ = functools.partial(LOWERINGS[aten("where.self")], graph)
    other = where_(is_zero, 0.0, of("div", of("abs", self.imag), of("mul", root, 2.0)))
    is_right = graph.elementwise("ge", root.dtype, bool_, self.real, 0.0)
    return ComplexBox(where_(is_right, root, other), of("copysign", where_(is_right, other, root), self.imag))


def _register_function_of_angles(name: str, real: tuple[str, str], imag: tuple[str, str], negative: bool) -> None:
    """Register a function of x + iy of the form f(x) g(y) + i h(x) k(y)."""

    @complex_rule(name)
    def rule(graph, self):
        of = functools.partial(pointwise_of, graph)
        made = [of("mul", of(first, self.real), of(second, self.imag)) for first, second in (real, imag)]
        return ComplexBox(made[0], of("neg", made[1]) if negative else made[1])


_register_function_of_angles("sin", ("sin", "cosh"), ("cos", "sinh"), False)
_register_function_of_angles("cos", ("cos", "cosh"), ("sin", "sinh"), True)
_register_function_of_angles("sinh", ("sinh", "cos"), ("cosh", "sin"), False)
_register_function_of_angles("cosh", ("cosh", "cos"), ("sinh", "sin"), False)


@complex_rule("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(graph, self, exponent):
    """Compute repeated products for the exponents 1 to 4, else exp(exponent * log(base)), and 0 for base 0."""
    if type(exponent) in (int, float) and exponent in (1, 2, 3, 4):
        made = self
        for _ in range(int(exponent) - 1):
            made = mul(graph, made, self)
        return made
    base, exponents = _as_complex_operands(graph, self, exponent)
    made = exp(graph, mul(graph, exponents, log(graph, base)))
    is_zero = graph.elementwise("eq", base.real.dtype, bool_, absolute(graph, base), 0.0)
    rule = functools.partial(LOWERINGS[aten("where.self")], graph, is_zero, 0.0)
    return each_part(made, rule)


# Products of matrices


def _complex_product(rule: Callable, graph: GraphBuilder, self: ComplexBox, other: ComplexBox) -> ComplexBox:
    multiply = functools.partial(rule, graph)
    real = pointwise.sub(graph, multiply(self.real, other.real), multiply(self.imag, other.imag))
    return ComplexBox(real, pointwise.add(graph, multiply(self.real, other.imag), multiply(self.imag, other.real)))


COMPLEX[aten("mm")] = functools.partial(_complex_product, products.matrix_product)
COMPLEX[aten("bmm")] = functools.partial(_complex_product, products.bmm)


@complex_rule("addmm")
def addmm(graph, self, mat1, mat2, *, beta=1, alpha=1):
    product = _complex_product(products.matrix_product, graph, mat1, mat2)
    product = product if alpha == 1 else mul(graph, product, alpha)
    return product if beta == 0 else add(graph, product, self if beta == 1 else mul(graph, self, beta))
