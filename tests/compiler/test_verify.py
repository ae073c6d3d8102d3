"""`compile(..., verify=True)`: right code passes, and of wrong code the first node that differs is named."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.compiler import CompiledResultDiffers
from rushlight.compiler.differences import compare
from rushlight.inductor.codegen.cpp import expressions
from rushlight.inductor.lowering import LOWERINGS
from rushlight.ops.registry import aten
from rushlight.utils.native import cache

F = torch.nn.functional


@pytest.fixture(autouse=True)
def lowered_here(monkeypatch, request):
    """No plan that was kept by other code than the test's."""
    monkeypatch.setattr(cache, "version_of", lambda library, folders: request.node.nodeid)


def wrong(monkeypatch, name: str, function: str) -> None:
    """Have the native code of an aten operator calculate another function."""

    def rule(graph, self):
        return graph.elementwise(function, self.dtype, self.dtype, self)

    monkeypatch.setitem(LOWERINGS, aten(name), rule)


def program(x, w):
    hidden = torch.sin(x @ w)
    bent = torch.tanh(hidden) * 2
    return bent.softmax(-1), bent.sum(0).exp()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, 20).view(4, 5), torch.linspace(1, -1, 30).view(5, 6)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_right_code_passes(gradients, dynamic):
    with torch.set_grad_enabled(gradients):
        x, w = inputs()
        results = torch.compile(program, verify=True, dynamic=dynamic, fullgraph=True)(x.requires_grad_(gradients), w)
        if gradients:
            sum(result.sum() for result in results).backward()
    torch.testing.assert_close(results, program(x, w))


@pytest.mark.parametrize("name, function, line", [
    ("tanh", "sin", "bent = torch.tanh(hidden) * 2"), ("sin", "cos", "hidden = torch.sin(x @ w)"),
    ("exp", "exp2", "return bent.softmax(-1), bent.sum(0).exp()"),
])  # fmt: skip
def test_a_wrong_kernel_is_named_with_its_line(monkeypatch, name, function, line):
    wrong(monkeypatch, name, function)
    with pytest.raises(CompiledResultDiffers) as caught, torch.no_grad():
        torch.compile(program, verify=True)(*inputs())
    assert caught.value.node == name
    message = str(caught.value)
    assert f"verify: native code for program differs from the interpreter from node {name} on" in message
    assert "test_verify.py:" in message and line in message
    assert "elements are wrong" in message


def test_an_error_of_code_generation_is_found_by_its_first_node(monkeypatch):
    monkeypatch.setitem(expressions.INFIX, "mul", "+")
    with pytest.raises(CompiledResultDiffers) as caught, torch.no_grad():
        torch.compile(lambda x: ((x + 3) * 2 - 1).exp(), verify=True)(torch.ones(5))
    assert caught.value.node == "mul"


def test_a_wrong_backward_is_named(monkeypatch):
    wrong(monkeypatch, "cos", "sin")
    compiled = torch.compile(lambda x: torch.sin(x) * 3, verify=True)
    result = compiled(torch.ones(4, requires_grad=True))
    with pytest.raises(CompiledResultDiffers) as caught:
        result.sum().backward()
    assert caught.value.node == "cos"


def test_gradients_that_cancel_are_right():
    """A layer's gradients behind a layer norm whose results are only summed are zero, but for what rounding leaves."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128))
    compiled, x = torch.compile(layers, verify=True), torch.randn(32, 64)
    for _ in range(3):
        compiled(x).sum().backward()


def test_a_wrong_value_among_those_that_cancel(monkeypatch):
    wrong(monkeypatch, "sin", "cos")
    x = torch.linspace(-1, 1, 64)
    with pytest.raises(CompiledResultDiffers) as caught, torch.no_grad():
        torch.compile(lambda x: ((x.sin() - x.sin().mean()).sum(), x.sin()), verify=True)(x)
    assert caught.value.node


def test_writes_and_draws_happen_once():
    def write(x, buffer):
        buffer.add_(x)
        return buffer * F.dropout(x, 0.5), torch.randperm(9)

    torch.manual_seed(4)
    plain, buffer = torch.ones(50), torch.zeros(50)
    expected = torch.compile(write)(plain, buffer)
    torch.manual_seed(4)
    ours = torch.zeros(50)
    got = torch.compile(write, verify=True)(plain, ours)
    assert bool((got[0] == expected[0]).all()) and bool((got[1] == expected[1]).all())
    assert bool((ours == 1).all()) and ours._version == buffer._version


def test_a_wrong_value_that_is_only_written_to_an_input(monkeypatch):
    wrong(monkeypatch, "atan", "sin")

    def write(x):
        x.copy_(torch.atan(x))

    x = torch.ones(3)
    with pytest.raises(CompiledResultDiffers, match="native code for .*write"):
        torch.compile(write, verify=True)(x)


def test_environment_and_options(monkeypatch):
    wrong(monkeypatch, "tan", "sin")
    with pytest.raises(CompiledResultDiffers, match="node tan"):
        torch.compile(torch.tan, options={"verify": True})(torch.ones(3))
    monkeypatch.setenv("RUSHLIGHT_VERIFY", "1")
    with pytest.raises(CompiledResultDiffers, match="node tan"):
        torch.compile(lambda x: torch.tan(x))(torch.ones(3))


def test_differences():
    one = torch.ones(2, 3)
    assert compare(one, one * (1 + 1e-5)) is None
    assert compare(torch.tensor([float("nan"), float("inf"), 1.0]), torch.tensor([float("nan"), float("inf"), 1.0])) is None
    other = one.clone()
    other[1, 2] = float("nan")
    assert str(compare(other, one)) == "1 of 6 elements are wrong, most of all [1, 2], which is nan instead of 1.0"
    assert "torch.float64" in str(compare(one.double(), one))
    assert "size [3, 2]" in str(compare(one.t(), one))
    assert compare(torch.tensor([1, 2]), torch.tensor([1, 3])) is not None
    assert compare(one > 0, one > 0) is None
    assert compare(3, 4) is not None
