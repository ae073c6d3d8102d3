"""Frozen modules: constants for attributes, layers folded together, the same results."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.jit.freezing import freeze, optimize_for_inference
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.run import run_pass


class Convolved(nn.Module):
    """A convolution with a norm, a constant number and a list."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(6, 5)
        self.dropout = nn.Dropout()
        self.scales = [1, 2]

    def forward(self, x):
        if self.training:
            x = x * 2
        x = torch.relu(self.norm(self.convolution(x)))
        return self.dropout(self.linear(x)) * self.scales[1]

    @torch.jit.export
    def other(self, x):
        return self.linear(x)


class Counting(nn.Module):
    """A module that changes what it holds."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.factor = 3
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        self.calls += 1
        self.total.add_(x)
        return x * self.factor + self.shift + self.total


def convolved():
    module = Convolved()
    with torch.no_grad():
        for tensor in (*module.norm.parameters(), module.norm.running_mean, module.norm.running_var):
            tensor.uniform_(0.5, 2)
    return torch.jit.script(module.eval())


def test_frozen_modules_give_the_same():
    module, x = convolved(), torch.randn(2, 3, 8, 8)
    frozen = freeze(module)
    torch.testing.assert_close(frozen(x), module(x))
    kinds = {node.kind() for node in frozen.graph.nodes()}
    assert not kinds & {"prim::GetAttr", "aten::batch_norm", "aten::dropout", "prim::SetAttr"}
    assert not list(frozen.parameters())


def test_numerics_are_kept_where_they_are_asked_for():
    frozen = freeze(convolved(), optimize_numerics=False)
    assert frozen.graph.findNode("aten::batch_norm") is not None


def test_what_is_written_to_stays_an_attribute():
    module, x = torch.jit.script(Counting().eval()), torch.ones(2)
    frozen = freeze(module)
    assert [node.s("name") for node in frozen.graph.findAllNodes("prim::GetAttr")].count("total") >= 1
    assert frozen.graph.findNode("prim::SetAttr").s("name") == "calls"
    assert frozen(x).tolist() == [5.0, 5.0]
    assert frozen(x).tolist() == [6.0, 6.0]
    assert frozen.calls == 2


class Forking(nn.Module):
    """A module that runs its methods beside one another; one of them writes to what another part reads."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = 2
        self.register_buffer("count", torch.zeros(1))

    def work(self, x, k: int):
        self.count.add_(1)
        inner = torch.jit.fork(self.linear, x)
        return torch.jit.wait(inner) * (self.scale + k)

    def forward(self, x):
        first = torch.jit.fork(self.work, x, 1)
        return torch.jit.wait(first) + self.linear(x), self.count


def test_forks_are_frozen_with_what_they_run_beside():
    module = torch.jit.script(Forking().eval())
    frozen = freeze(module)
    x = torch.rand(2, 3)
    before = module.count.clone()
    with torch.no_grad():
        for found, expected in zip(frozen(x), module(x), strict=True):
            assert torch.allclose(found, expected)
    assert list(frozen.state_dict()) == ["count"]
    assert module.count.item() == before.item() + 2  # both have the buffer
    fork = next(node for node in frozen.graph.nodes() if node.kind() == "prim::fork")
    text = str(fork.g("Subgraph"))
    assert 'GetAttr[name="count"]' in text and 'GetAttr[name="linear"]' not in text and 'GetAttr[name="scale"]' not in text
    module(x)  # its own code is as it was


def test_preserved_attributes_and_methods_are_there():
    module, x = convolved(), torch.randn(3, 6)
    frozen = freeze(module, ["other", "scales"])
    assert frozen.scales == [1, 2]
    torch.testing.assert_close(frozen.other(x), module.other(x))


def test_a_module_that_trains_is_refused():
    with pytest.raises(RuntimeError, match="eval mode"):
        freeze(torch.jit.script(Counting()))
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        freeze(Counting())
    with pytest.raises(AttributeError, match="preserved attribute or method 'nothing' doesn't exist"):
        freeze(torch.jit.script(Counting().eval()), ["nothing"])


def test_inference_works_in_place():
    module, x = convolved(), torch.randn(2, 3, 8, 8)
    made = optimize_for_inference(module)
    assert made.graph.findNode("aten::relu_") is not None
    torch.testing.assert_close(made(x), module(x))


LAYERS = """
graph(%x : Tensor):
  %w : Float(2, 1, 1, 1) = prim::Constant[value= 1  2 [ CPUFloatType{{2,1,1,1}} ]]()
  %b : Float(2) = prim::Constant[value= 3  4 [ CPUFloatType{{2}} ]]()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %l : int[] = prim::Constant[value=[1, 1]]()
  %p : int[] = prim::Constant[value=[0, 0]]()
  %k : {kind} = prim::Constant[value={value}]()
  %a : Tensor = aten::conv2d(%x, %w, %b, %l, %p, %l, %one)
  %c : Tensor = aten::{op}(%a, %k{alpha})
  return (%c)
"""
FOLDS = [
    ("add", "int", "2", [1.0, 2.0], [5.0, 6.0]),
    ("sub", "Float(2, 1, 1)", " 1  2 [ CPUFloatType{2,1,1} ]", [1.0, 2.0], [2.0, 2.0]),
    ("mul", "float", "2.", [2.0, 4.0], [6.0, 8.0]),
    ("div", "Float(1, 2, 1, 1)", " 1  2 [ CPUFloatType{1,2,1,1} ]", [1.0, 1.0], [3.0, 2.0]),
]


@pytest.mark.parametrize(("op", "kind", "value", "weight", "bias"), FOLDS)
def test_arithmetic_goes_into_weights(op, kind, value, weight, bias):
    is_sum = op in ("add", "sub")
    graph = parse_ir(LAYERS.format(op=op, kind=kind, value=value, alpha=", %one" if is_sum else ""))
    run_pass(f"_jit_pass_fold_frozen_conv_{'add_or_sub' if is_sum else 'mul_or_div'}", graph)
    layer = graph.find_node("aten::conv2d")
    assert graph.find_node(f"aten::{op}") is None
    assert layer.input(1).constant().reshape(-1).tolist() == weight
    assert layer.input(2).constant().tolist() == bias


def test_a_constant_along_the_width_is_not_folded():
    graph = parse_ir(LAYERS.format(op="mul", kind="Float(2)", value=" 1  2 [ CPUFloatType{2} ]", alpha=""))
    run_pass("_jit_pass_fold_frozen_conv_mul_or_div", graph)
    assert graph.find_node("aten::mul") is not None
