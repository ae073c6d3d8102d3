"""Passes of the profiling executor on graphs in text: profiling nodes, guards, bailouts, and groups behind checks."""

from __future__ import annotations

from textwrap import dedent

import pytest

import rushlight as torch
from rushlight.jit.function import Function
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.bailout_graph import build_bailout_graph
from rushlight.jit.passes.run import run_pass
from rushlight.jit.runtime.executor import run_function
from tests.jit.passes.support import after, canonical, check

ROW = "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"


def test_instrument_graph():
    check(
        "InstrumentGraph",
        """
        graph(%x : Tensor, %n : int):
          %y : Tensor = aten::add(%x, %x, %n)
          %b : bool = aten::gt(%n, %n)
          %z : Tensor = prim::If(%b)
            block0():
              -> (%y)
            block1():
              %w : Tensor = aten::neg(%y)
              -> (%w)
          return (%z)
        """,
        """
        graph(%x : Tensor, %n : int):
          %1 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%x)
          %2 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%x)
          %y : Tensor = aten::add(%1, %2, %n)
          %b : bool = aten::gt(%n, %n)
          %z : Tensor = prim::If(%b)
            block0():
              %3 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%y)
              -> (%3)
            block1():
              %4 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%y)
              %w : Tensor = aten::neg(%4)
              %5 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%w)
              -> (%5)
          %6 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%z)
           = prim::profile()
          return (%6)
        """,
    )


PROFILED = f"""
graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = prim::profile[profiled_type={ROW}, seen_none=0](%x)
  %2 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%y)
  %z : Tensor = aten::mul(%1, %2)
  %3 : Tensor = prim::profile[profiled_type=Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu), seen_none=0](%x)
  %4 : Tensor = prim::profile[profiled_type={ROW}, seen_none=1](%z)
  %w : Tensor = aten::mul(%3, %4)
   = prim::profile()
  return (%w)
"""


def test_specialized_types_are_what_all_readers_saw():
    check(
        "RemoveProfileNodesAndSpecializeTypes",
        PROFILED,
        """
        graph(%x : Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu), %y : Tensor):
          %z : Tensor = aten::mul(%x, %y)
          %w : Tensor = aten::mul(%x, %z)
          return (%w)
        """,
    )


def test_guards_check_what_was_seen_where_it_was_seen():
    check(
        "InsertGuards",
        PROFILED,
        f"""
        graph(%x : Tensor, %y : Tensor):
          %1 : {ROW} = prim::Guard(%x)
          %z : Tensor = aten::mul(%1, %y)
          %3 : Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::Guard(%x)
          %w : Tensor = aten::mul(%3, %z)
          return (%w)
        """,
    )


GUARDED = f"""
graph(%x : Tensor):
  %1 : {ROW} = prim::Guard(%x)
  %2 : {ROW} = prim::Guard(%x)
  %y : Tensor = aten::mul(%1, %2)
  %3 : {ROW} = prim::Guard(%y)
  %4 : Tensor = OPERATOR(%3)
  %5 : {ROW} = prim::Guard(%4)
  return (%5)
"""


def test_guards_that_follow_from_others_go():
    check(
        "EliminateRedundantGuards",
        GUARDED.replace("OPERATOR", "aten::tanh"),
        f"""
        graph(%x : Tensor):
          %1 : {ROW} = prim::Guard(%x)
          %y : {ROW} = aten::mul(%1, %1)
          %4 : {ROW} = aten::tanh(%y)
          return (%4)
        """,
    )


def test_a_guard_that_says_more_than_its_inputs_stays():
    kept = GUARDED.replace("OPERATOR", "aten::nonzero")
    text = str(after("EliminateRedundantGuards", kept))
    assert text.count("prim::Guard") == 2  # of the input, and of what is not known from sizes


def test_guards_stay_where_sizes_change_in_place():
    text = GUARDED.replace("OPERATOR", "aten::t_")
    check("EliminateRedundantGuards", text, text)


LOOP = f"""
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %z : Tensor):
      %a : Tensor = aten::add(%z, %i, %one)
      %g : {ROW} = prim::Guard(%a)
      %b : Tensor = aten::mul(%g, %x)
      -> (%true, %b)
  %c : Tensor = aten::neg(%y)
  return (%c)
"""


def test_bailouts_name_what_the_rest_needs():
    check(
        "InsertBailOuts",
        LOOP,
        f"""
        graph(%x : Tensor, %n : int):
          %t : Function = prim::BailoutTemplate_0()
          %true : bool = prim::Constant[value=1]()
          %one : int = prim::Constant[value=1]()
          %y : Tensor = prim::Loop(%n, %true, %x)
            block0(%i : int, %z : Tensor):
              %a : Tensor = aten::add(%z, %i, %one)
              %g : {ROW} = prim::BailOut[index=0](%t, %a, %x, %i, %n)
              %b : Tensor = aten::mul(%g, %x)
              -> (%true, %b)
          %c : Tensor = aten::neg(%y)
          return (%c)
        with prim::BailoutTemplate_0 = graph(%x : Tensor, %n : int):
          %true : bool = prim::Constant[value=1]()
          %one : int = prim::Constant[value=1]()
          %y : Tensor = prim::Loop(%n, %true, %x)
            block0(%i : int, %z : Tensor):
              %a : Tensor = aten::add(%z, %i, %one)
              %g : Tensor = prim::BailOut[index=0](%a)
              %b : Tensor = aten::mul(%g, %x)
              -> (%true, %b)
          %c : Tensor = aten::neg(%y)
          return (%c)
        """,
    )


def test_the_rest_of_a_loop():
    template = after("InsertBailOuts", LOOP).find_node("prim::BailoutTemplate")["Subgraph"]
    rest = build_bailout_graph(template, 0)
    lint(rest)
    wanted = """
    graph(%a : Tensor, %x : Tensor, %i : int, %n : int):
      %one : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %b : Tensor = aten::mul(%a, %x)
      %done : int = aten::add(%i, %one)
      %left : int = aten::sub(%n, %done)
      %y : Tensor = prim::Loop(%left, %true, %b)
        block0(%j : int, %z : Tensor):
          %k : int = aten::add(%done, %j)
          %e : Tensor = aten::add(%z, %k, %one)
          %f : Tensor = aten::mul(%e, %x)
          -> (%true, %f)
      %c : Tensor = aten::neg(%y)
      return (%c)
    """
    assert canonical(rest) == canonical(parse_ir(dedent(wanted)))
    x = torch.randn(2, 3)
    whole = x
    for number in range(5):
        whole = (whole + number) * x
    begun = ((x + 0) * x + 1) * x + 2
    found = run_function(Function("bailout", rest), [begun, x, 2, 5])
    torch.testing.assert_close(found, -whole)


GROUP = f"""
graph(%x : {ROW}, %s : float):
  %y : {ROW} = prim::TensorExprGroup_0(%x, %s)
  return (%y)
with prim::TensorExprGroup_0 = graph(%a : {ROW}, %b : float):
  %c : {ROW} = aten::mul(%a, %b)
  %d : {ROW} = aten::tanh(%c)
  return (%d)
"""
FALLBACK = """with prim::FallbackGraph_1 = graph(%a : Tensor, %b : float):
  %c : Tensor = aten::mul(%a, %b)
  %d : Tensor = aten::tanh(%c)
  return (%d)
"""


def test_groups_behind_checks_of_their_types():
    check(
        "GuardFusionGroups",
        GROUP,
        f"""
graph(%x : {ROW}, %s : float):
  %t : {ROW}, %ok : bool = prim::TypeCheck[types=[{ROW}]](%x)
  %y : Tensor = prim::If(%ok)
    block0():
      %1 : {ROW} = prim::TensorExprGroup_0(%t, %s)
      -> (%1)
    block1():
      %2 : Tensor = prim::FallbackGraph_1(%x, %s)
      -> (%2)
  return (%y)
with prim::TensorExprGroup_0{GROUP.partition("with prim::TensorExprGroup_0")[2]}{FALLBACK}""",
    )


def test_groups_for_any_sizes():
    open_row = "Float(*, *, requires_grad=0, device=cpu)"
    check(
        "GuardFusionGroups",
        GROUP,
        f"""
graph(%x : {ROW}, %s : float):
  %ok : bool = prim::TensorExprDynamicGuard[types=[{open_row}]](%x)
  %y : Tensor = prim::If(%ok)
    block0():
      %1 : {open_row} = prim::TensorExprGroup_0(%x, %s)
      -> (%1)
    block1():
      %2 : Tensor = prim::FallbackGraph_1(%x, %s)
      -> (%2)
  return (%y)
with prim::TensorExprGroup_0{GROUP.partition("with prim::TensorExprGroup_0")[2].replace(ROW, open_row)}{FALLBACK}""",
        dynamic=True,
    )


@pytest.mark.parametrize("needs", [0, 1])
def test_differentiable_graphs_behind_checks(needs):
    kind = f"Float(2, requires_grad={needs}, device=cpu)"
    body = f"""graph(%a : {kind}):
  %c : {kind} = aten::mul(%a, %a)
  %d : {kind} = aten::tanh(%c)
  return (%d)
"""
    before = f"""
graph(%x : {kind}):
  %y : {kind} = prim::DifferentiableGraph_0(%x)
  return (%y)
with prim::DifferentiableGraph_0 = {body}"""
    inlined = f"""
graph(%a : {kind}):
  %c : {kind} = aten::mul(%a, %a)
  %d : {kind} = aten::tanh(%c)
  return (%d)
"""
    guarded = f"""
graph(%x : {kind}):
  %t : {kind}, %ok : bool = prim::RequiresGradCheck[types=[Tensor(requires_grad=1)]](%x)
  %y : Tensor = prim::If(%ok)
    block0():
      %1 : {kind} = prim::DifferentiableGraph_0(%t)
      -> (%1)
    block1():
      %2 : Tensor = prim::FallbackGraph_1(%x)
      -> (%2)
  return (%y)
with prim::DifferentiableGraph_0 = {body}with prim::FallbackGraph_1 = {body.replace(kind, "Tensor")}"""
    check("GuardDifferentiableGraphs", before, guarded if needs else inlined)


def test_types_that_nothing_checks_are_removed():
    check(
        "RemoveTensorTypeSpecializations",
        f"""
        graph(%x : {ROW}):
          %y : {ROW} = aten::neg(%x)
          %t : {ROW}, %ok : bool = prim::TypeCheck[types=[{ROW}]](%y)
          %z : {ROW} = prim::If(%ok)
            block0():
              %w : {ROW} = aten::neg(%t)
              -> (%w)
            block1():
              -> (%y)
          return (%z)
        """,
        f"""
        graph(%x : Tensor):
          %y : Tensor = aten::neg(%x)
          %t : {ROW}, %ok : bool = prim::TypeCheck[types=[{ROW}]](%y)
          %z : Tensor = prim::If(%ok)
            block0():
              %w : Tensor = aten::neg(%t)
              -> (%w)
            block1():
              -> (%y)
          return (%z)
        """,
    )


def test_only_known_tensors_are_fused_after_profiling():
    known = parse_ir(dedent(f"""
    graph(%x : {ROW}, %y : Tensor):
      %a : {ROW} = aten::mul(%x, %x)
      %b : {ROW} = aten::tanh(%a)
      %c : Tensor = aten::mul(%y, %y)
      %d : Tensor = aten::tanh(%c)
      return (%b, %d)
    """))  # fmt: skip
    (made,) = run_pass("FuseTensorExprs", known, profiled=True)
    assert [value.type.ir_text for value in made.inputs] == [ROW]


@pytest.mark.parametrize("text", ["Tensor(requires_grad=1)", "Tensor(requires_grad=0, device=cpu)", "Tensor", ROW, "FloatTensor"])
def test_types_of_which_little_is_known(text):
    graph = f"graph(%x : {text}):\n  return (%x)\n"
    assert str(parse_ir(graph)) == graph
