"""aot_function and its relatives: which graphs the compilers are given, and that results and gradients are eager's."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)
from rushlight._functorch.partitioners import default_partition, min_cut_rematerialization_partition


class Recorder:
    """A compiler that keeps graphs, and runs them boxed or plain."""

    def __init__(self, boxed=True):
        self.graphs, self.inputs, self.boxed = [], [], boxed

    def __call__(self, module, example_inputs):
        self.graphs.append(module)
        self.inputs.append(example_inputs)
        return make_boxed_func(module.forward) if self.boxed else module.forward


def activation(x, w, *, scale):
    return {"out": torch.tanh(x @ w) * scale, "twice": x * 2}


def tensors(requires_grad=True):
    torch.manual_seed(0)
    return [torch.randn(3, 4, requires_grad=requires_grad), torch.randn(4, 2, requires_grad=requires_grad)]


@pytest.mark.parametrize("boxed", [True, False])
@pytest.mark.parametrize("divide", [default_partition, min_cut_rematerialization_partition])
def test_results_and_gradients_are_eagers(boxed, divide):
    forward, backward = Recorder(boxed), Recorder(boxed)
    compiled = aot_function(activation, forward, backward, partition_fn=divide)
    given, others = tensors(), tensors()
    found, expected = compiled(*given, scale=3), activation(*others, scale=3)
    assert torch.equal(found["out"], expected["out"]) and torch.equal(found["twice"], expected["twice"])
    for result in (found, expected):
        (result["out"].sum() + result["twice"].square().sum()).backward()
    assert all(torch.allclose(a.grad, b.grad) for a, b in zip(given, others, strict=True))
    assert len(forward.graphs) == len(backward.graphs) == 1
    names = [node.name for node in forward.graphs[0].graph.nodes if node.op == "placeholder"]
    assert names == ["primals_1", "primals_2"]  # in the order of the arguments
    assert [tuple(value.shape) for value in forward.inputs[0]] == [(3, 4), (4, 2)]


def test_a_kind_of_inputs_is_traced_once():
    forward = Recorder()
    compiled = aot_function(activation, forward)
    x, w = tensors(requires_grad=False)
    for scale in (2, 2, 3):
        compiled(x, w, scale=scale)
    compiled(x[:2], w, scale=3)
    assert len(forward.graphs) == 3 and forward.graphs[0].print_readable(False).startswith("class <lambda>(torch.nn.Module):")
    assert "arg0_1" in forward.graphs[0].code


def test_the_joint_graph_is_what_the_partition_function_gets():
    seen = []

    def divide(joint, inputs, *, num_fwd_outputs):
        seen.append((joint.print_readable(False), [len(part) for part in inputs], num_fwd_outputs))
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

    m1, m2 = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    aot_function(lambda m1, m2: torch.mm(m1, m2), Recorder(), partition_fn=divide)(m1, m2).sum().backward()
    text, counts, outputs = seen[0]
    assert text.startswith("class joint_helper(torch.nn.Module):") and counts == [2, 1] and outputs == 1
    assert "tangents_1" in text and "test_aot_function.py" in text and "No stacktrace" not in text
    with pytest.raises(ValueError, match="only a joint graph that aot_function made"):
        default_partition(torch.fx.symbolic_trace(lambda x: x), (), num_fwd_outputs=1)
    with pytest.raises(ValueError, match="partition_fn must return"):
        aot_function(torch.mm, Recorder(), partition_fn=lambda joint, *_, **__: (joint, joint))(m1, m2)


def test_double_backward_runs_the_function_again():
    x = torch.randn(3, requires_grad=True)
    (first,) = torch.autograd.grad(aot_function(lambda x: x.sin().sum(), Recorder())(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, -x.sin())


def test_one_result_alone_is_differentiated():
    x = torch.randn(3, requires_grad=True)
    a, _ = aot_function(lambda x: (x.sin(), x.exp()), Recorder())(x)
    a.sum().backward()
    assert torch.allclose(x.grad, x.cos())


def test_decompositions():
    forward = Recorder()
    table = {torch.ops.aten.silu.default: lambda x: x * torch.sigmoid(x)}
    x = torch.randn(4)
    assert torch.allclose(aot_function(torch.nn.functional.silu, forward, decompositions=table)(x), torch.nn.functional.silu(x))
    assert "silu" not in forward.graphs[0].code and "sigmoid" in forward.graphs[0].code


def test_modules():
    linear, forward = torch.nn.Linear(2, 3), Recorder()
    module = aot_module(linear, forward)
    x = torch.randn(5, 2)
    module(x).sum().backward()
    assert torch.allclose(linear.weight.grad, x.sum(0).expand(3, 2), atol=1e-6) and len(forward.inputs[0]) == 3
    assert dict(module.named_parameters()).keys() == {"orig_module.weight", "orig_module.bias"}


def test_in_a_backend():
    forward = Recorder()
    linear = torch.nn.Linear(2, 3)
    compiled = torch.compile(linear, backend=lambda module, inputs: aot_module_simplified(module, inputs, forward))
    x = torch.randn(5, 2)
    assert torch.allclose(compiled(x), linear(x)) and "aten.addmm" in forward.graphs[0].code


def test_boxed_compilers_and_what_is_no_callable():
    compiler = make_boxed_compiler(lambda module, inputs: module.forward)
    assert aot_function(lambda x: x + 1, compiler)(torch.zeros(2)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="a compiler returns a callable, got NoneType"):
        aot_function(lambda x: x + 1, lambda module, inputs: None)(torch.zeros(2))
