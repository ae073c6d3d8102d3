"""Graphs from text: what is printed parses back to the same print; what does not parse says where."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.jit.function import Function
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir

PRINTED = [
    'graph(%x : Tensor):\n  return (%x)\n',
    """graph(%x : Float(2, *, strides=[3, 1], requires_grad=0, device=cpu),
      %y : FloatTensor,
      %z : Dict(str, (int, Tensor?)[]),
      %f : Future[int],
      %n : NamedTuple(a : int, b : float = 0.5)):
  %1 : int = prim::Constant[value=-1]() # model.py:3:4
  %2 : float = prim::Constant[value=1e+30]()
  %3 : bool = prim::Constant[value=1](), scope: __module.a/Linear::b # /a b/model.py:3:4
  %4 : str = prim::Constant[value="a\\"b\\n\\303\\251 # x.py:1:2"]()
  %5 : NoneType = prim::Constant()
  %6 : Device = prim::Constant[value="cpu"]()
  %7 : complex = prim::Constant[value=1.-2.5j]()
  %8 : int[] = prim::Constant[value=[1, 2]]()
  %9 : (int, float) = prim::Constant[value=(1, 2.)]()
  %10 : Dict(str, int) = prim::Constant[value={"a": 1}]()
  %11 : Float(requires_grad=0, device=cpu) = prim::Constant[value={0.5}]()
  %12 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2  3  4 [ CPUFloatType{2,2} ]]()
  %13 : Float(20, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %14 : Function = prim::Constant[name="helper"]()
  %15 : float = prim::Constant[value=-inf]()
  %16 : Tensor?[] = prim::Constant[value=annotate(List[Optional[Tensor]], [])]()
  %17 : Enum<__torch__.Color> = prim::Constant[value=Color.RED]()
  %18 : Tensor = ^python_function[]()(%x)
   = prim::Print(%4)
  return (%1)
""",
    """graph(%self : __torch__.a.Model,
      %q : bool,
      %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor, %b : int = prim::If(%q)
    block0():
      %c : Tensor = prim::GetAttr[name="weight"](%self)
      -> (%c, %n)
    block1():
      %d : Tensor, %e : int = foo::bar[k=[1, 2], w="x", t=Tensor?](%n)
      -> (%d, %e)
  %r : Tensor = prim::Loop(%n, %true, %a)
    block0(%i : int, %s : Tensor):
      %t.1 : Tensor = prim::DifferentiableGraph_0(%s, %i)
      -> (%true, %t.1)
  return (%r)
with prim::DifferentiableGraph_0 = graph(%x : Tensor,
      %i : int):
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
""",
]


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_parses_back(text):
    graph = parse_ir(text)
    lint(graph)
    assert str(graph) == text
    assert str(parse_ir(str(graph.copy()))) == str(graph.copy())


def test_values_are_of_their_types():
    graph = parse_ir(PRINTED[1])
    values = [node["value"] for node in graph.nodes if node.kind == "prim::Constant" and "value" in node.attributes]
    assert values[:5] == [-1, 1e30, True, 'a"b\né # x.py:1:2', torch.device("cpu")]
    assert values[5:9] == [1 - 2.5j, [1, 2], (1, 2.0), {"a": 1}]
    assert torch.equal(values[10], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert values[11].shape == (20,)
    assert isinstance(values[12], Function) and values[12].name == "helper"


def test_new_values_get_numbers_of_their_own():
    graph = parse_ir("graph(%7 : Tensor):\n  %3 : Tensor = aten::relu(%7)\n  return (%3)\n")
    made = graph.insert("aten::neg", [graph.inputs[0]])
    assert made.output.debug_name == "8"


ERRORS = [
    ("graph(%x):\n  %y : Tensor = aten::relu(%z)\n  return (%y)", "no value of this name is made before, found '%z' in line 2"),
    ("graph(%x):\n  %y : Tensor = aten::relu(%x)\n", "expected 'return', found the end"),
    ("graph(%x):\n  %y : Tensor aten::relu(%x)\n  return (%y)", "expected '=', found 'aten::relu' in line 2"),
    ("graph(%x : Nothing):\n  return (%x)", "unknown type 'Nothing'"),
    ("graph(%x):\n  return (%x)\nwith prim::X_0 = graph():\n  return ()", "no node refers to the graph 'prim::X_0'"),
    ("graph(%x):\n  return (%x)\n%y", "expected the end of the graph, found '%y'"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_what_does_not_parse_says_where(text, message):
    with pytest.raises(RuntimeError) as error:
        parse_ir(text)
    assert message in str(error.value)


BROKEN = [
    "graph(%q : bool):\n  %a : int = prim::If(%q)\n    block0():\n      -> ()\n    block1():\n      -> ()\n  return (%a)",
    "graph(%n : int):\n  %a : int = prim::Loop(%n)\n    block0():\n      -> ()\n  return (%a)",
]


@pytest.mark.parametrize("text", BROKEN)
def test_lint_names_the_node_that_is_wrong(text):
    with pytest.raises(RuntimeError, match="prim::"):
        lint(parse_ir(text))


def test_lint_sees_what_is_out_of_step():
    def graph():
        return parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  %z : Tensor = aten::neg(%y)\n  return (%z)\n")

    broken = graph()
    broken.inputs[0].uses.clear()
    with pytest.raises(RuntimeError, match="%x does not know that"):
        lint(broken)
    broken = graph()
    first, second = broken.nodes
    first.outputs[0].offset = 1
    with pytest.raises(RuntimeError, match="thinks another node makes it"):
        lint(broken)
    broken = graph()
    first, second = broken.nodes
    first.move_after(second)
    with pytest.raises(RuntimeError, match="reads %y, which is not made before it"):
        lint(broken)
    broken = graph()
    broken.inputs[0]._name = "y"
    with pytest.raises(RuntimeError, match="two values are called %y"):
        lint(broken)
