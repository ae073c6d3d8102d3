"""The gradients of operators as graphs, from which `differentiate` builds its result.

Each formula is a graph in text. It takes the gradient of the operator's result, the operator's inputs by the names of its
schema, and `%result`; it returns a gradient for each name after `->`. `size(x)` stands for a sum over the dimensions that
broadcasting added to x. The formulas are those of calculus; for the conventions (the subgradient of relu at 0 is 0) see
autograd's table, with which the tests compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.ir.parser import parse_ir_with_values

_HEADER = {"1": "int = prim::Constant[value=1]()", "true": "bool = prim::Constant[value=1]()",
           "0": "int = prim::Constant[value=0]()", "none": "NoneType = prim::Constant()",
           "false": "bool = prim::Constant[value=0]()", "minus_1": "int = prim::Constant[value=-1]()",
           "2": "int = prim::Constant[value=2]()", "half": "float = prim::Constant[value=0.5]()"}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    """A formula's graph, its values by name, and the inputs whose gradients are its outputs, in order."""

    graph: Graph
    names: dict[str, Value]
    targets: tuple[str, ...]


FORMULAS: dict[str, tuple[str, str]] = {
    "aten::add.Tensor": ("self other", """
      %a = aten::mul(%grad, %alpha)
      %self_grad = SUM(%grad, %self)
      %other_grad = SUM(%a, %other)"""),
    "aten::add.Scalar": ("self", "%self_grad = aten::mul(%grad, %1)"),
    "aten::sub.Tensor": ("self other", """
      %a = aten::neg(%grad)
      %b = aten::mul(%a, %alpha)
      %self_grad = SUM(%grad, %self)
      %other_grad = SUM(%b, %other)"""),
    "aten::sub.Scalar": ("self", "%self_grad = aten::mul(%grad, %1)"),
    "aten::mul.Tensor": ("self other", """
      %a = aten::mul(%grad, %other)
      %b = aten::mul(%grad, %self)
      %self_grad = SUM(%a, %self)
      %other_grad = SUM(%b, %other)"""),
    "aten::mul.Scalar": ("self", "%self_grad = aten::mul(%grad, %other)"),
    "aten::div.Tensor": ("self other", """
      %a = aten::div(%grad, %other)
      %b = aten::mul(%a, %result)
      %c = aten::neg(%b)
      %self_grad = SUM(%a, %self)
      %other_grad = SUM(%c, %other)"""),
    "aten::div.Scalar": ("self", "%self_grad = aten::div(%grad, %other)"),
    "aten::neg": ("self", "%self_grad = aten::neg(%grad)"),
    "aten::exp": ("self", "%self_grad = aten::mul(%grad, %result)"),
    "aten::log": ("self", "%self_grad = aten::div(%grad, %self)"),
    "aten::sin": ("self", "%a = aten::cos(%self)\n%self_grad = aten::mul(%grad, %a)"),
    "aten::cos": ("self", "%a = aten::sin(%self)\n%b = aten::neg(%a)\n%self_grad = aten::mul(%grad, %b)"),
    "aten::sqrt": ("self", "%a = aten::mul(%result, %2)\n%self_grad = aten::div(%grad, %a)"),
    "aten::abs": ("self", "%a = aten::sign(%self)\n%self_grad = aten::mul(%grad, %a)"),
    "aten::reciprocal": ("self", """
      %a = aten::mul(%result, %result)
      %b = aten::neg(%a)
      %self_grad = aten::mul(%grad, %b)"""),
    "aten::rsqrt": ("self", """
      %a = aten::mul(%result, %result)
      %b = aten::mul(%a, %result)
      %c = aten::mul(%b, %half)
      %d = aten::neg(%c)
      %self_grad = aten::mul(%grad, %d)"""),
    "aten::sigmoid": ("self", """
      %a = aten::rsub(%result, %1, %1)
      %b = aten::mul(%result, %a)
      %self_grad = aten::mul(%grad, %b)"""),
    "aten::tanh": ("self", """
      %a = aten::mul(%result, %result)
      %b = aten::rsub(%a, %1, %1)
      %self_grad = aten::mul(%grad, %b)"""),
    "aten::relu": ("self", """
      %a = aten::gt(%result, %0)
      %b = aten::type_as(%a, %result)
      %self_grad = aten::mul(%grad, %b)"""),
    "aten::silu": ("self", """
      %a = aten::sigmoid(%self)
      %b = aten::rsub(%a, %1, %1)
      %c = aten::mul(%self, %b)
      %d = aten::add(%c, %1, %1)
      %e = aten::mul(%a, %d)
      %self_grad = aten::mul(%grad, %e)"""),
    "aten::t": ("self", "%self_grad = aten::t(%grad)"),
    "aten::transpose.int": ("self", "%self_grad = aten::transpose(%grad, %dim0, %dim1)"),
    "aten::unsqueeze": ("self", "%self_grad = aten::squeeze(%grad, %dim)"),
    "aten::view": ("self", "%a : int[] = aten::size(%self)\n%self_grad = aten::reshape(%grad, %a)"),
    "aten::reshape": ("self", "%a : int[] = aten::size(%self)\n%self_grad = aten::reshape(%grad, %a)"),
    "aten::expand": ("self", "%self_grad = SUM(%grad, %self)"),
    "aten::type_as": ("self", "%self_grad = aten::type_as(%grad, %self)"),
    "aten::sum": ("self", "%a : int[] = aten::size(%self)\n%self_grad = aten::expand(%grad, %a, %false)"),
    "aten::mean": ("self", """
      %a : int[] = aten::size(%self)
      %n : int = aten::numel(%self)
      %b = aten::expand(%grad, %a, %false)
      %self_grad = aten::div(%b, %n)"""),
    "aten::mm": ("self mat2", """
      %a = aten::t(%mat2)
      %b = aten::t(%self)
      %self_grad = aten::mm(%grad, %a)
      %mat2_grad = aten::mm(%b, %grad)"""),
    "aten::addmm": ("self mat1 mat2", """
      %a = aten::t(%mat2)
      %b = aten::mm(%grad, %a)
      %c = aten::t(%mat1)
      %d = aten::mm(%c, %grad)
      %e = aten::mul(%grad, %beta)
      %self_grad = SUM(%e, %self)
      %mat1_grad = aten::mul(%b, %alpha)
      %mat2_grad = aten::mul(%d, %alpha)"""),
    "aten::linear": ("input weight bias", """
      %input_grad = aten::matmul(%grad, %weight)
      %g = aten::reshape(%grad, %flat_out)
      %i = aten::reshape(%input, %flat_in)
      %a = aten::t(%g)
      %weight_grad = aten::mm(%a, %i)
      %bias_grad = SUM(%grad, %bias)"""),
    "aten::where.self": ("self other", """
      %a = aten::zeros_like(%grad, %none, %none, %none, %none, %none)
      %b = aten::where(%condition, %grad, %a)
      %c = aten::where(%condition, %a, %grad)
      %self_grad = SUM(%b, %self)
      %other_grad = SUM(%c, %other)"""),
    "aten::softmax.int": ("self", """
      %a = aten::mul(%grad, %result)
      %l : int[] = prim::ListConstruct(%dim)
      %b = aten::sum(%a, %l, %true, %none)
      %c = aten::mul(%b, %result)
      %self_grad = aten::sub(%a, %c, %1)"""),
    "aten::log_softmax.int": ("self", """
      %l : int[] = prim::ListConstruct(%dim)
      %a = aten::sum(%grad, %l, %true, %none)
      %b = aten::exp(%result)
      %c = aten::mul(%a, %b)
      %self_grad = aten::sub(%grad, %c, %1)"""),
}  # fmt: skip
"""The gradient formula of each differentiable operator, by name and overload."""

_EXTRA = {
    "aten::linear": """
      %last : int = aten::size(%weight, %1)
      %out : int = aten::size(%weight, %0)
      %flat_in : int[] = prim::ListConstruct(%minus_1, %last)
      %flat_out : int[] = prim::ListConstruct(%minus_1, %out)"""
}


@cache
def formula_of(name: str, parameters: tuple[str, ...]) -> Formula:
    """Return the formula of an operator whose schema has these parameters."""
    targets, text = FORMULAS[name]
    lines = [line.strip() for line in (_EXTRA.get(name, "") + "\n" + text).splitlines() if line.strip()]
    body = "\n".join(_expand_sums(lines))
    constants = "\n".join(f"  %{key} : {value}" for key, value in _HEADER.items() if f"%{key}" in body or key in ("1", "0"))
    outputs = ", ".join(f"%{target}_grad" for target in targets.split())
    inputs = ", ".join(f"%{each}" for each in ("grad", *parameters, "result"))
    graph, names = parse_ir_with_values(f"graph({inputs}):\n{constants}\n{body}\n  return ({outputs})\n")
    return Formula(graph, names, tuple(targets.split()))


def _expand_sums(lines: list[str]) -> list[str]:
    """Expand the macro `SUM(%a, %x)`: a sum to the size of x, if the result's size differs."""
    found = []
    for index, line in enumerate(lines):
        made, _, call = line.partition(" = ")
        made = made if ":" in made else f"{made} : Tensor"
        if call.startswith("SUM("):
            value, target = call[4:-1].split(", ")
            found += [f"  %s{index} : int[] = aten::size({target})", f"  %r{index} : int[] = aten::size({value})",
                      f"  %d{index} : int[]? = aten::_size_if_not_equal(%s{index}, %r{index})"]  # fmt: skip
            call = f"aten::_grad_sum_to_size({value}, %d{index})"
        found.append(f"  {made} = {call}")
    return found
