"""SubgraphRewriter: patterns in text, replaced where they occur."""

from __future__ import annotations

import pytest

from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.run import run_pass
from rushlight.jit.passes.subgraph_rewrite import SubgraphRewriter
from tests.jit.passes.support import canonical

MUL_ADD = """
graph(%a, %b, %c):
  %one : int = prim::Constant[value=1]()
  %m = aten::mul(%a, %b)
  %s = aten::add(%m, %c, %one)
  return (%s)
"""
FUSED = """
graph(%a, %b, %c):
  %s : Tensor = my::muladd(%a, %b, %c)
  return (%s)
"""


def rewritten(text: str, pattern: str = MUL_ADD, replacement: str = FUSED) -> str:
    graph = parse_ir(text)
    rewriter = SubgraphRewriter()
    rewriter.RegisterRewritePattern(pattern, replacement)
    rewriter.runOnGraph(graph)
    run_pass("EliminateDeadCode", graph)
    return canonical(graph)


GRAPH = """
graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add(%a, %x, %1)
  %c : Tensor = aten::mul(%b, %b)
  %d : Tensor = aten::add(%c, %b, %{alpha})
  return ({results})
"""


def test_every_occurrence_is_replaced_and_reads_what_replaced_others():
    wanted = """
    graph(%x : Tensor, %y : Tensor):
      %b : Tensor = my::muladd(%x, %y, %x)
      %d : Tensor = my::muladd(%b, %b, %b)
      return (%d)
    """
    assert rewritten(GRAPH.format(alpha=1, results="%d")) == canonical(parse_ir(wanted))


def test_attributes_must_be_equal():
    assert rewritten(GRAPH.format(alpha=2, results="%d")).count("my::muladd") == 1


def test_what_others_read_stays():
    assert rewritten(GRAPH.format(alpha=1, results="%d, %a")).count("my::muladd") == 1


def test_a_write_in_between_prevents_it():
    text = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %w : Tensor = aten::add_(%x, %y, %1)
      %b : Tensor = aten::add(%a, %y, %1)
      return (%b)
    """
    assert "my::muladd" not in rewritten(text)


def test_types_that_a_pattern_spells_out_must_fit():
    pattern = "graph(%a, %n : int):\n  %r = aten::add(%a, %n, %n)\n  return (%r)\n"
    replacement = "graph(%a, %n : int):\n  %r : Tensor = my::plus(%a, %n)\n  return (%r)\n"
    text = """
    graph(%x : Tensor, %n : int, %f : float):
      %a : Tensor = aten::add(%x, %n, %n)
      %b : Tensor = aten::add(%a, %f, %f)
      return (%b)
    """
    assert rewritten(text, pattern, replacement).count("my::plus") == 1


def test_filters_choose():
    graph = parse_ir(GRAPH.format(alpha=1, results="%d"))
    rewriter = SubgraphRewriter()
    rewriter.register_rewrite_pattern(MUL_ADD, FUSED)
    assert rewriter.run_on_graph(graph, lambda match: match.value("a") is graph.inputs[0]) == 1


def test_pairs_must_fit():
    with pytest.raises(RuntimeError, match="as many inputs and outputs"):
        SubgraphRewriter().register_rewrite_pattern(MUL_ADD, "graph(%a):\n  return (%a)\n")


@pytest.mark.oracle
@pytest.mark.parametrize("results", ["%d", "%d, %a"])
def test_torch_rewrites_the_same(results):
    torch = pytest.importorskip("torch")
    pattern = MUL_ADD.replace("%c):\n  %one : int = prim::Constant[value=1]()", "%c, %one):")  # torch's constants match once
    fused = "graph(%a, %b, %c, %one):\n  %s : Tensor = aten::addcmul(%c, %a, %b, %one)\n  return (%s)\n"
    theirs = torch._C.parse_ir(GRAPH.format(alpha=1, results=results))
    torch._C._jit_pass_custom_pattern_based_rewrite_graph(pattern, fused, theirs)
    torch._C._jit_pass_dce(theirs)
    assert rewritten(GRAPH.format(alpha=1, results=results), pattern, fused) == canonical(parse_ir(str(theirs)))
