"""ReplaceOldOperatorsWithUpgraders: keep the meaning of old archives' code.

Requires: a graph as it was emitted, before names are normalised: `true_divide` was never changed, `div` was. Guarantees: each
operator whose meaning has changed since the archive's version is replaced by one that computes the old meaning:

    div, div_ before 4       ints divide towards zero; otherwise as today
    full before 5            without a dtype the result has floats
    linspace before 8, logspace before 9    without a number of steps there are 100
    gelu before 10           has no `approximate`, which is "none"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.operators.declared import refusal
from rushlight.jit.operators.registry import Operator, operators_named
from rushlight.jit.passes.helpers import constant_before, insert_before
from rushlight.jit.passes.inline import insert_graph
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.schema import parse_schema
from rushlight.jit.types.kinds import FLOAT, OptionalType, TensorType

_LOG = PassLog(__file__)
_DEFAULT_STEPS = 100
_DIVISION_BY_TENSOR = """
graph(%self : Tensor, %other : Tensor):
  %true : bool = prim::Constant[value=1]()
  %mode : str = prim::Constant[value="trunc"]()
  %own : bool = aten::is_floating_point(%self)
  %floats : bool = prim::If(%own)
    block0():
      -> (%true)
    block1():
      %others : bool = aten::is_floating_point(%other)
      -> (%others)
  %result : Tensor = prim::If(%floats)
    block0():
      %quotient : Tensor = aten::{name}(%self, %other)
      -> (%quotient)
    block1():
      %truncated : Tensor = aten::{name}(%self, %other, %mode)
      -> (%truncated)
  return (%result)
"""
_DIVISION_BY_INT = """
graph(%self : Tensor, %other : {kind}):
  %mode : str = prim::Constant[value="trunc"]()
  %floats : bool = aten::is_floating_point(%self)
  %result : Tensor = prim::If(%floats)
    block0():
      %quotient : Tensor = aten::{name}(%self, %other)
      -> (%quotient)
    block1():
      %truncated : Tensor = aten::{name}(%self, %other, %mode)
      -> (%truncated)
  return (%result)
"""


@graph_pass("ReplaceOldOperatorsWithUpgraders", "_jit_pass_replace_old_ops_with_upgraders")
def replace_old_operators(graph: Graph, version: int) -> None:
    """Give the operators of an archive of this version their old meanings."""
    for node in list(graph.all_nodes()):
        found = UPGRADERS.get(node.kind)
        if found is not None and version < found[0] and _LOG.permits("{} is of version {}", node, version):
            found[1](node)


def _upgrade_divide(node: Node) -> None:
    """Upgrade a division of integers, which rounded in old versions. Divisions with a rounding mode, and those of floats, stay.
    """
    if node.input_count != 2 or not isinstance(node.input().type, TensorType) or node.input(1).type == FLOAT:
        return
    name = node.kind.removeprefix("aten::")
    other = node.input(1).type
    body = _parse_upgrader(name, None if isinstance(other, TensorType) else other.ir_text)
    result = insert_graph(node, body, list(node.inputs))[0]
    node.output.replace_all_uses_with(result)
    node.destroy()


@cache
def _parse_upgrader(name: str, kind: str | None) -> Graph:
    text = _DIVISION_BY_TENSOR if kind is None else _DIVISION_BY_INT
    return parse_ir(text.format(name=name, kind=kind))


def _upgrade_full(node: Node) -> None:
    """Make the fill value of an old `full` without dtype a float: today the fill value determines the dtype."""
    if node.input_count < 3 or node.input(2).type.ir_text == "int" or node.input(1).type == FLOAT:
        return
    if not node.input(2).is_none:
        raise RuntimeError(f"{node!r} of an old archive has a dtype that may be None; give it one, and save the model again")
    node.replace_input(1, insert_before(node, "aten::Float", [node.input(1)], FLOAT))


def _upgrade_steps(node: Node) -> None:
    steps = node.input(2)
    if steps.is_none:
        node.replace_input(2, constant_before(node, _DEFAULT_STEPS))
    elif isinstance(steps.type, OptionalType):
        raise RuntimeError(f"{node!r} of an old archive has a number of steps that may be None; give it one, and save again")


def _upgrade_gelu(node: Node) -> None:
    if node.input_count == 1:
        node.add_input(constant_before(node, "none"))


UPGRADERS: dict[str, tuple[int, Callable[[Node], None]]] = {
    "aten::div": (4, _upgrade_divide),
    "aten::div_": (4, _upgrade_divide),
    "aten::full": (5, _upgrade_full),
    "aten::linspace": (8, _upgrade_steps),
    "aten::logspace": (9, _upgrade_steps),
    "aten::gelu": (10, _upgrade_gelu),
}
"""The version since which an operator has its present semantics, and the function that gives older nodes the previous ones."""
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_OLD_SCHEMAS: dict[str, str] = {
    "aten::linspace": f"aten::linspace(Scalar start, Scalar end, int? steps=None, *, {_OPTIONS}) -> Tensor",
    "aten::logspace": f"aten::logspace(Scalar start, Scalar end, int? steps=None, float base=10., *, {_OPTIONS}) -> Tensor",
}
"""Signatures that operators had before the version in `UPGRADERS`."""


def has_old_signature(name: str, version: int) -> bool:
    """Return whether code in an archive of this version may call an operator with an outdated signature."""
    return name in _OLD_SCHEMAS and version < UPGRADERS[name][0]


@cache
def operators_of_before(name: str) -> tuple[Operator, ...]:
    """Return the overloads of an operator, plus one with its old signature, whose nodes `replace_old_operators` replaces."""
    return (*operators_named(name), Operator(parse_schema(_OLD_SCHEMAS[name]), refusal(name)))
