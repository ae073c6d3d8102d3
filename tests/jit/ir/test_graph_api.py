"""Graphs through methods of torch's names: the same questions give the same answers as torch's."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.jit.graph_api import Graph, parse_ir

TEXT = """graph(%x : Tensor, %n : int):
  %1 : int = prim::Constant[value=1]()
  %q : bool = aten::gt(%n, %1)
  %a : Tensor = prim::If(%q)
    block0():
      %c : Tensor = aten::add(%x, %x, %1)
      -> (%c)
    block1():
      %d : Tensor = foo::bar[s="a", f=1.5, i=2](%x)
      -> (%d)
  return (%a)
"""
ADD = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


def answers(parse) -> list:
    """What a graph says to all questions; it is changed on the way."""
    graph = parse(TEXT)
    add, bar, branch = (graph.findNode(kind) for kind in ("aten::add", "foo::bar", "prim::If"))
    constant = graph.findNode("prim::Constant")
    found = [
        [node.kind() for node in graph.nodes()],
        [value.debugName() for value in graph.inputs()],
        (add.inputsSize(), add.outputsSize(), add.hasUses(), add.hasMultipleOutputs(), add.isNondeterministic()),
        (bar.attributeNames(), [bar.kindOf(name) for name in "sfi"], bar.s("s"), bar.f("f"), bar.i("i"), bar.hasAttribute("z")),
        (constant.i("value"), constant.kindOf("value"), constant.output().toIValue(), len(constant.output().uses())),
        (constant.mustBeNone(), add.namedInput("alpha").toIValue(), add.matches(ADD), add.schema()),
        [[node.kind() for node in block.nodes()] for block in branch.blocks()],
        (str(branch.output().type()), next(branch.blocks()).owningNode() == branch, add.output().node() == add),
        (next(graph.inputs()).isCompleteTensor(), next(graph.inputs()).offset(), add.output().uses()[0].offset),
    ]
    relu = graph.create("aten::relu", [branch.output()], 1)
    graph.appendNode(relu)
    graph.registerOutput(relu.output())
    found.append((relu.isAfter(branch), relu.isBefore(branch), [value.node().kind() for value in graph.outputs()]))
    made, negated = graph.insertConstant(3.5), graph.insert("aten::neg", [next(graph.inputs())])
    found.append((made.node().kindOf("value"), str(made.type()), negated.node().kind(), str(negated.type())))
    relu.i_("k", 3).s_("z", "t").removeAttribute("z")
    found.append((relu.i("k"), relu.attributeNames(), relu.hasAttributes()))
    graph.setInsertPoint(relu)
    graph.insertNode(graph.create("aten::cos", [next(graph.inputs())]))
    found.append([node.kind() for node in graph.copy().nodes()])
    relu.replaceInput(0, next(graph.inputs()))
    graph.eraseOutput(0)
    found.append([[value.debugName() for value in node.inputs()] for node in graph.findAllNodes("aten::relu")])
    relu.output().setDebugName("named")
    graph.makeMultiOutputIntoTuple()
    graph.lint()
    found.append([value.debugName() for value in graph.outputs()])
    relu.moveBefore(branch)
    found.append([node.kind() for node in graph.nodes()])
    graph.addInput("added")
    found.append(len(list(graph.inputs())))
    graph.eraseInput(2)
    found.append(len(list(graph.inputs())))
    return found


@pytest.mark.oracle
def test_answers_are_torchs():
    torch = pytest.importorskip("torch")
    assert answers(parse_ir) == answers(torch._C.parse_ir)


def test_scripted_functions_have_such_graphs():
    graph = rushlight.jit.script(scripted).graph
    assert [node.kind() for node in graph.nodes()][-1] == "aten::mul"
    with graph.insert_point_guard(graph.findNode("aten::mul")):
        graph.insert("aten::relu", [next(graph.inputs())])
    assert [node.kind() for node in graph.nodes()][-2:] == ["aten::relu", "aten::mul"]


def scripted(x):
    return x * 2


def test_attributes_that_are_missing_are_named():
    node = parse_ir(TEXT).findNode("foo::bar")
    with pytest.raises(IndexError, match="foo::bar has no attribute 'z'; it has s, f, i"):
        node.i("z")


def test_a_graph_can_be_made_from_nothing():
    graph = Graph()
    value = graph.addInput("x")
    graph.registerOutput(graph.insert("aten::relu", [value]))
    graph.insertGraph(parse_ir(TEXT), [value, graph.insertConstant(2)])
    graph.lint()
    assert [node.kind() for node in graph.nodes()] == ["aten::relu", "prim::Constant", "prim::Constant", "aten::gt", "prim::If"]
