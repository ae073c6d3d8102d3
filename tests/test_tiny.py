"""The whole path in one file, on the two-line function that docs/follow/inference.md follows too. Read it top to bottom."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.fx.proxy_tensor import capture, make_fx
from rushlight.inductor.codegen.cpp.program import ProgramWriter
from rushlight.inductor.graph import GraphLowering


def attend(x, w, b):
    return torch.softmax(x @ w + b, dim=-1)


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return [torch.from_numpy(random.standard_normal(size, np.float32)) for size in ((4, 8), (8, 16), (16,))]


def expected(x, w, b):
    scores = x.numpy() @ w.numpy() + b.numpy()
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def test_1_a_tensor_is_a_view_of_a_storage(inputs):
    x = inputs[0]
    rows = x.t()
    assert rows.shape == (8, 4) and rows.stride() == (1, 8)
    assert rows.untyped_storage() == x.untyped_storage()
    before = x._version
    rows[0] = 7.0
    assert x[:, 0].tolist() == [7.0] * 4 and x._version > before


def test_2_operators_dispatch_to_kernels(inputs):
    np.testing.assert_allclose(attend(*inputs).numpy(), expected(*inputs), rtol=1e-5)
    shapes = [tensor.to("meta") for tensor in inputs]
    assert attend(*shapes).shape == (4, 16), "the Meta kernels know the result's shape without data"
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        attend(inputs[0], inputs[0], inputs[2])


def test_3_the_tape_gives_gradients(inputs):
    x, w, b = inputs
    w.requires_grad_()
    y = attend(x, w, b)
    assert [y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()] == ["SoftmaxBackward0", "AddBackward0"]
    (y * y).sum().backward()
    gradient = w.grad
    step = 1e-3 * gradient
    with torch.no_grad():
        change = (attend(x, w + step, b) ** 2 - attend(x, w - step, b) ** 2).sum()
    np.testing.assert_allclose(change.item(), 2e-3 * (gradient**2).sum().item(), rtol=1e-2)


def test_4_a_module_learns(inputs):
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    goal = torch.tensor([3, 1, 4, 1])
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[0]), goal)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_5_capture_gives_a_graph_of_aten_operators(inputs):
    graph = make_fx(attend)(*inputs).graph
    graph.lint()
    called = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert called == ["aten.mm.default", "aten.add.Tensor", "aten._softmax.default"]
    assert "test_tiny.py" in next(node.stack_trace for node in graph.nodes if node.op == "call_function")


def test_6_lowering_gives_loops_and_the_scheduler_fuses_them(inputs):
    lowered = GraphLowering(capture(attend, tuple(inputs)).module).run()
    text = str(lowered)
    assert "template='gemm'" in text and "reduction_type=max" in text and "test_tiny.py" in text
    product, softmax = ProgramWriter(lowered, threads=1).write().groups
    assert product.template is not None
    assert [type(member.data).__name__ for member in softmax.members] == ["Reduction", "Pointwise"] * 2
    assert len(softmax.stored) == 1, "one kernel for the four loops of softmax, and only the result goes to memory"


def test_7_compiled_code_equals_eager(inputs, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    compiled = torch.compile(attend, options={"dump": str(tmp_path)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would mean that no native code was made
        np.testing.assert_allclose(compiled(*inputs).numpy(), attend(*inputs).numpy(), rtol=1e-5)
    (folder,) = tmp_path.glob("*_attend")
    names = sorted(path.name for path in folder.iterdir())
    stages = ["captured", "passes", "graph", "loops", "fusion", "memory", "code", "library", "module", "guards", "bytecode"]
    assert [name[3:].partition(".")[0] for name in names] == stages
    assert "static void kernel_0(const float* in0" in (folder / "06_code.cpp").read_text()
    for backend in ("eager", "aot_eager"):
        result = torch.compile(attend, backend=backend)(*inputs)
        np.testing.assert_allclose(result.numpy(), expected(*inputs), rtol=1e-5)


def test_8_a_checkpoint_survives_a_round_trip(tmp_path):
    model, fresh = nn.Linear(8, 16), nn.Linear(8, 16)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    fresh.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), fresh.parameters(), strict=True))
