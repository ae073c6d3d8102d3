"""Captured graphs that run by a kept plan: they are not traced again, give what eager gives, and are told apart."""

from __future__ import annotations

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.compiler.kept_plans import KeptPlans
from rushlight.fx import proxy_tensor
from rushlight.inductor.options import Options
from rushlight.ops import library

OPTIONS = Options(2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def traced(monkeypatch) -> list:
    """The graphs that are traced to aten operators from here on."""
    seen, capture = [], proxy_tensor.capture

    def noted(function, *rest, **named):
        seen.append(function)
        return capture(function, *rest, **named)

    monkeypatch.setattr(proxy_tensor, "capture", noted)
    return seen


def run_twice(make, *inputs, **options):
    """The results of two functions that `make` makes, one compiled after the other as by two processes."""
    results = []
    for _ in range(2):
        with torch.no_grad():
            results.append(torch.compile(make(), fullgraph=True, **options)(*inputs))
    return results


def key(function, *inputs, options=OPTIONS):
    """The key of the function's captured graph."""
    found = []

    def backend(module, example_inputs):
        found.append(KeptPlans(options).key_of(module))
        return module.forward

    torch.compile(function, backend=backend, fullgraph=True)(*inputs)
    return found[0]


def network():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)).eval()


def test_a_second_capture_is_not_traced(traced):
    model, x = network(), torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        wanted = model(x)
    for result in run_twice(lambda: lambda x: model(x), x):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
    assert len(traced) == 1


def test_other_weights_of_the_same_kind_serve_as_well(traced):
    x = torch.randn(2, 3, 6, 6)
    for _ in range(2):
        model = network()
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(model)(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(traced) == 1


def test_results_of_all_kinds(traced):
    weight = torch.randn(4, 4)

    def make():
        def function(x):
            return x.t(), weight, 3, None, (x @ weight)[1:, ::2], x, x.detach(), {"mean": x.mean(-1, keepdim=True).T}

        return function

    x = torch.randn(4, 4)
    for transposed, constant, three, nothing, view, same, detached, named in run_twice(make, x):
        assert three == 3 and nothing is None and same is x and constant is weight
        assert transposed.stride() == (1, 4) and transposed.data_ptr() == x.data_ptr() == detached.data_ptr()
        torch.testing.assert_close(view, (x @ weight)[1:, ::2])
        torch.testing.assert_close(named["mean"], x.mean(-1, keepdim=True).T)
    assert len(traced) == 1


@pytest.mark.parametrize("body", [
    lambda x: x.add_(1).sin(),
    lambda x: F.dropout(x, 0.5) + torch.rand(3),
    lambda x: torch.as_strided(x, (2,), (1,)).exp(),
], ids=["writes to an input", "draws random numbers", "takes memory by its place"])  # fmt: skip
def test_what_a_plan_does_not_say_is_traced_again(traced, body):
    for _ in range(2):
        x, like = torch.ones(3), torch.ones(3)
        torch.manual_seed(0)
        with torch.no_grad():
            result = torch.compile(lambda x: body(x))(x)
            expected = body(like)
        assert torch.equal(x, like) and result.shape == expected.shape
    assert len(traced) == 2


def test_literals_are_those_of_each_program(traced):
    x = torch.ones(3)
    with torch.no_grad():
        for literal in ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]):
            assert torch.compile(lambda x, literal=literal: x * torch.tensor(literal))(x).tolist() == literal


def test_random_numbers_are_drawn_at_each_call():
    first, second = run_twice(lambda: lambda x: F.dropout(x), torch.ones(1000))
    assert not torch.equal(first, second)


def test_an_attribute_that_changes_its_size_is_traced_then(traced):
    x = torch.randn(2, 3)
    for _ in range(2):
        layer = nn.Linear(3, 4, bias=False)

        def function(x, held=layer):
            return held(x).relu()

        compiled = torch.compile(function, dynamic=False)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), function(x))
            layer.weight.data = torch.randn(6, 3)
            torch.testing.assert_close(compiled(x), function(x))
        assert len(traced) == 2  # for the first layer's two sizes


def test_gradients_are_not_asked_for_where_eager_asks_for_none(traced):
    layer, x = nn.Linear(3, 4), torch.randn(2, 3)
    for _ in range(2):
        result, weight = torch.compile(lambda x: (layer(x).detach() * 2, layer.weight), fullgraph=True)(x)
        assert not result.requires_grad and weight is layer.weight and weight.requires_grad
        torch.testing.assert_close(result, layer(x).detach() * 2)


def test_an_index_out_of_range_raises_as_in_eager(traced):
    table = torch.randn(5, 3)
    for _ in range(2):
        compiled = torch.compile(lambda index: F.embedding(index, table).exp())
        with torch.no_grad():
            torch.testing.assert_close(compiled(torch.tensor([0, 4])), table[torch.tensor([0, 4])].exp())
            with pytest.raises(IndexError, match="out of range"):
                compiled(torch.tensor([0, 5]))
    assert len(traced) == 1


def test_kernels_can_be_looked_at_all_the_same(traced):
    x, weight = torch.randn(300, 40), nn.Parameter(torch.randn(40))
    for _ in range(2):
        with torch.no_grad():
            compiled = torch.compile(lambda x: (x.sin() * weight).sum(0))
            compiled(x)
    assert len(traced) == 1
    with torch.no_grad(), torch.compiler.profile() as profile:
        result = compiled(x)
    assert "sin" in str(profile) and len(traced) == 2
    torch.testing.assert_close(result, (x.sin() * weight).sum(0).detach(), rtol=1e-4, atol=1e-4)


def test_stages_that_are_to_be_seen_are_made(traced, capsys):
    for _ in range(2):
        torch.compile(lambda x: x.sin() + 1, options={"logs": ["graph", "code"]})(torch.randn(5))
        assert "sin" in capsys.readouterr().err
    assert len(traced) == 2


def shared():
    whole = torch.randn(4, 3)
    return whole[:2], whole[2:]


X, Y = torch.randn(2, 3), torch.randn(2, 3)
BASE = (lambda x, y: x.sin() + y, (X, Y))


@pytest.mark.parametrize("function, inputs", [
    (lambda x, y: x.cos() + y, (X, Y)),
    (lambda x, y: torch.sub(x.sin(), y), (X, Y)),
    (lambda x, y: y + x.sin(), (X, Y)),
    (lambda x, y: torch.add(x.sin(), y, alpha=2), (X, Y)),
    (lambda x, y: (x.sin() + y, x.cos()), (X, Y)),
    (lambda x, y: x.sin() + y, (torch.randn(2, 1), Y)),
    (lambda x, y: x.sin() + y, (X.t().contiguous().t(), Y)),
    (lambda x, y: x.sin() + y, (X.double(), Y)),
    (lambda x, y: x.sin() + y, (torch.randn(3, 3)[1:], Y)),
    (lambda x, y: x.sin() + y, shared()),
    (lambda x, y: (x.sin() + y)[..., 1:], (X, Y)),
    (lambda x, y: (x.sin() + y)[..., :1], (X, Y)),
])  # fmt: skip
def test_other_graphs_have_other_keys(function, inputs):
    base = key(BASE[0], *BASE[1])
    assert base is not None and key(function, *inputs) not in (base, None)


def test_equal_graphs_have_equal_keys():
    first, second = (key(lambda x, y: x.sin() + y, torch.randn(2, 3), torch.randn(2, 3)) for _ in range(2))
    assert first == second is not None


def test_modes_and_options_make_other_keys():
    function, inputs = BASE
    base = key(function, *inputs)
    with torch.no_grad():
        assert key(function, *inputs) not in (base, None)
    with torch.inference_mode():
        assert key(function, *inputs) not in (base, None)
    assert key(function, *inputs, options=Options(1)) not in (base, None)
    torch.set_default_dtype(torch.float64)
    try:
        assert key(function, *inputs) not in (base, None)
    finally:
        torch.set_default_dtype(torch.float32)


@torch.compiler.allow_in_graph
def of_the_program(x):
    return x * 2


def test_graphs_without_keys(monkeypatch):
    function, inputs = BASE
    assert key(function, *inputs, options=Options(2, debug=True)) is None
    assert key(function, *inputs, options=Options(2, autotune=True)) is None
    assert key(lambda x: of_the_program(x), X) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert key(function, *inputs) is None
    monkeypatch.setattr(library, "_changed", [])
    chosen = library.Library("aten", "IMPL")
    chosen.impl("sin", lambda x: x, "Meta")
    chosen._destroy()
    assert key(function, *inputs) is None


def test_a_method_of_tensors_that_the_program_replaced_has_no_key(monkeypatch):
    assert key(lambda x: x.relu(), X) is not None
    monkeypatch.setattr(torch.Tensor, "relu", lambda self: torch.sin(self))
    found = []

    def backend(module, example_inputs):
        found.extend(node.target for node in module.graph.nodes if node.op == "call_method")
        found.append(KeptPlans(OPTIONS).key_of(module))
        return module.forward

    torch.compile(lambda x: x.relu(), backend=backend)(X)
    assert "relu" not in found or found[-1] is None
