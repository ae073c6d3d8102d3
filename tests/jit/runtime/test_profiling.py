"""The profiling executor: plans behind checks, fallbacks that profile anew, bailouts, and the same results as without it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import rushlight as torch
from rushlight.jit.runtime.executor import ProfilingExecutor, SimpleExecutor, executor_of
from rushlight.jit.runtime.modes import Modes, modes
from rushlight.jit.runtime.native import native_compiler
from tests.fuzz_profiling import chosen, compare
from tests.jit import differential


def text_of(graph) -> str:
    return re.sub(r" # .*", "", str(graph))


def gated(x, y):
    """Operators that become one group."""
    return torch.tanh(x * y) * torch.sigmoid(x) + y


def fallbacks(scripted) -> list:
    """The executors that calls go through where a check fails, outermost first."""
    found = [executor_of(scripted._function)]
    while True:
        graph = found[-1].current_plan().graph
        constants = [node["value"] for node in graph.find_all_nodes("prim::Constant") if "fallback" in node.attributes]
        if not constants or constants[0]._executor is None:
            return found
        found.append(constants[0]._executor)


def kinds_in(graph) -> set[str]:
    return {node.kind for node in graph.all_nodes()}


def test_misses_make_further_plans_up_to_the_depth():
    with chosen(profiling=True, strategy=(("STATIC", 2), ("DYNAMIC", 1))):
        scripted = torch.jit.script(gated)
        for size in (2, 2, 3, 3, 4, 4, 5, 5, 6):
            x, y = torch.randn(size), torch.randn(size)
            torch.testing.assert_close(scripted(x, y), gated(x, y))
        x, y = torch.randn(2, 2), torch.randn(2, 2)  # another rank: for the last fallback
        torch.testing.assert_close(scripted(x, y), gated(x, y))
        first, second, third, last = fallbacks(scripted)
        assert [type(each) for each in (first, second, third, last)] == [ProfilingExecutor] * 3 + [SimpleExecutor]
        for each, sizes in ((first, "2"), (second, "3")):
            assert f"prim::TypeCheck[types=[Float({sizes}, strides=[1], requires_grad=0" in text_of(each.current_plan().graph)
        assert "prim::TensorExprDynamicGuard[types=[Float(*, requires_grad=0" in text_of(third.current_plan().graph)
        assert kinds_in(last.current_plan().graph).isdisjoint({"prim::TypeCheck", "prim::TensorExprDynamicGuard", "prim::profile"})


def test_strategy_by_depth():
    found = Modes(strategy=(("STATIC", 2), ("DYNAMIC", 3)))
    assert found.depth == 5 and [found.strategy_at(depth) for depth in (5, 4, 3, 2, 1)] == ["STATIC"] * 2 + ["DYNAMIC"] * 3


def test_no_depth_no_profile():
    with chosen(profiling=True, strategy=()):
        scripted = torch.jit.script(gated)
        scripted(torch.ones(2), torch.ones(2))
        assert type(executor_of(scripted._function)) is SimpleExecutor


def test_gradients_go_through_guarded_differentiable_graphs():
    def layer(x, w, b):
        h = torch.sigmoid(x * w + b)
        return torch.tanh(h * w) * h + x

    x, w, b = torch.randn(4, 3), torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    with chosen(profiling=True):
        scripted = torch.jit.script(layer)
        for _ in range(2):
            scripted(x, w, b)
        text = text_of(scripted.graph_for(x, w, b))
        assert (
            "prim::RequiresGradCheck[types=[Tensor(requires_grad=0), Tensor(requires_grad=1), Tensor(requires_grad=1)]](%x.1, %w.1, "
            "%b.1)"
        ) in text
        assert "prim::DifferentiableGraph_0" in text and "fallback=1" in text
        for inputs in ((x, w, b), (x.requires_grad_(), w, b), (x.detach(), w.detach(), b), (x[:1], w, b)):
            wanted = [each for each in inputs if each.requires_grad]
            found = torch.autograd.grad(scripted(*inputs).sum(), wanted)
            for one, other in zip(found, torch.autograd.grad(layer(*inputs).sum(), wanted), strict=True):
                torch.testing.assert_close(one, other)
        with torch.no_grad():
            assert not scripted(x, w, b).requires_grad
        second = torch.autograd.grad(torch.autograd.grad(scripted(x, w, b).sum(), w, create_graph=True)[0].sum(), w)[0]
        wanted = torch.autograd.grad(torch.autograd.grad(layer(x, w, b).sum(), w, create_graph=True)[0].sum(), w)[0]
        torch.testing.assert_close(second, wanted)


def test_complex_numbers_do_not_use_the_real_formulas():
    def product(x, y):
        return ((x * y) * x) * y * x

    y = torch.randn(3)
    with chosen(profiling=True, autodiff_threshold=1):
        scripted = torch.jit.script(product)
        for dtype in (torch.float32, torch.float32, torch.complex64):
            x = torch.randn(3, dtype=dtype, requires_grad=True)
            found, wanted = (torch.autograd.grad(f(x, y).abs().sum(), x)[0] for f in (scripted, product))
            torch.testing.assert_close(found, wanted)


def test_groups_run_natively(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    asked = []

    def compiler(graph, arguments, name, dims):
        made = native_compiler()(graph, arguments, name)
        asked.append((graph, name, made is not None))
        return made

    monkeypatch.setattr("rushlight.jit.runtime.specialized.native_compiler", lambda: compiler)

    def printing(x, y, name: str):
        print(name)  # there is no native form of the whole function
        return torch.tanh(x * y) * torch.sigmoid(x) + y

    x, y = torch.randn(4, 3), torch.randn(4, 3)
    with chosen(profiling=True):
        scripted = torch.jit.script(printing)
        for _ in range(5):
            torch.testing.assert_close(scripted(x, y, "a"), printing(x, y, "a"))
    assert [(name, made) for _, name, made in asked if name == "group"] == [("group", True)]
    graph = next(graph for graph, name, _ in asked if name == "group")
    assert [node.kind for node in graph.nodes if node.kind != "prim::Constant"] == [
        "aten::mul", "aten::tanh", "aten::sigmoid", "aten::mul", "aten::add",
    ]  # fmt: skip


def growing(x, n: int):
    """A loop with a branch, whose tensors change their sizes."""
    y = x
    for i in range(n):
        if x.size(0) > 1:
            y = y * x + i
            y = y + torch.ones(i % 2 + 1, 1)
        else:
            y = y - x + i
    return y.sum(0)


@pytest.mark.parametrize("index", range(5))
def test_every_guard_can_bail_out(index, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE", "0")
    x = torch.randn(1, 3)
    with chosen(profiling=True, tensor_exprs=False):
        scripted = torch.jit.script(growing)
        for _ in range(2):
            scripted(x, 3)
        code = executor_of(scripted._function).current_plan().code
        assert code.num_bailouts() == 5
        code.request_bailout(index)
        assert str(code).count("FAIL_GUARD") == 1
        assert torch.equal(scripted(x, 3), growing(x, 3))
        assert "FAIL_GUARD" not in str(code)  # it failed once, and is a guard again
        for sizes in ((2, 3), (1, 1), (1, 3)):
            other = torch.randn(sizes)
            assert torch.equal(scripted(other, 3), growing(other, 3))


def test_guards_in_code():
    def function(x, y):
        return torch.tanh(x * y) + x if x.size(0) > 1 else x

    x = torch.ones(2, 3)
    with chosen(profiling=True, tensor_exprs=False):
        scripted = torch.jit.script(function)
        scripted(x, x)
        text = text_of(scripted.graph_for(x, x))
        lines = str(scripted.get_debug_state().execution_plans.popitem()[1].code).splitlines()
    assert "prim::BailOut[index=0](%" in text and "prim::BailoutTemplate_0()" in text and "prim::FusionGroup_1(%" in text
    assert "prim::If" not in text.partition("with prim")[0]  # the size is known behind the guard
    words = [line.split(" ", 1)[1].split(" #")[0] for line in lines]
    assert words.index("GUARD 0") < words.index("RET 0") < words.index("TAIL_CALL 0")


def strict(x):
    """What is fused, and what is not."""
    with torch.jit.strict_fusion():
        return torch.cummax(x * x + x, 0)[0]


def test_strict_fusion_names_what_is_not_fused():
    with chosen(profiling=True):
        scripted = torch.jit.script(strict)
        scripted(torch.ones(3))
        with pytest.raises(RuntimeError, match=r"Found unfused operators: \n\taten::cummax\(Tensor self, int dim\)"):
            scripted(torch.ones(3))
    with pytest.warns(UserWarning, match="Only works in script mode"):
        strict(torch.ones(3))


def test_other_threads_that_profile_do_not_confuse_plans():
    with chosen(profiling=True):
        scripted = torch.jit.script(gated)
        inputs = [(torch.randn(1 + i % 3), torch.randn(1 + i % 3)) for i in range(60)]
        with ThreadPoolExecutor(4) as pool:
            for (x, y), found in zip(inputs, pool.map(lambda each: scripted(*each), inputs), strict=True):
                torch.testing.assert_close(found, gated(x, y))


def test_what_changes_sizes_in_place_is_not_assumed():
    def reshaped(x, y):
        z = x * y + x
        z.unsqueeze_(0)
        return z * z + z, z.size(0)

    x = torch.randn(2, 3)
    for tensor_exprs in (True, False):
        with chosen(profiling=True, tensor_exprs=tensor_exprs):
            scripted = torch.jit.script(reshaped)
            for _ in range(3):
                result, size = scripted(x, x)
                torch.testing.assert_close(result, reshaped(x, x)[0])  # native code may round otherwise
                assert size == 1


@pytest.mark.parametrize("tensor_exprs", [True, False], ids=["checks", "guards"])
@pytest.mark.filterwarnings("ignore")
def test_programs_give_what_the_plain_executor_gives(tensor_exprs, tmp_path):
    """Every sixteenth program, on tensors that change from call to call; `python -m tests.fuzz_profiling` takes them all."""
    compared, differences = compare(differential.programs()[::16], tmp_path, tensor_exprs)
    assert compared > 250 and not differences and not modes().profiling


def test_inputs_of_a_group_that_depend_on_one_another_have_gradients_of_gradients():
    def function(x, b):
        v = (b * b).clone()
        v.mul_(0.9)
        w = v + b
        return (w * b).tanh() * w * x

    x, b = torch.randn(3), torch.randn(3, requires_grad=True)
    with chosen(profiling=True, autodiff_threshold=1):
        scripted = torch.jit.script(function)
        for _ in range(3):
            found, wanted = (torch.autograd.grad(each(x, b).sum(), b, create_graph=True)[0] for each in (scripted, function))
            torch.testing.assert_close(found, wanted)
            found, wanted = (torch.autograd.grad(each.square().sum(), b)[0] for each in (found, wanted))
            torch.testing.assert_close(found, wanted)


def test_results_of_a_group_that_need_no_gradient():
    def function(x, w):
        a = x * x + 1
        return a * w, a.exp()

    x, w = torch.randn(3), torch.randn(3, requires_grad=True)
    with chosen(profiling=True, autodiff_threshold=1):
        scripted = torch.jit.script(function)
        for _ in range(3):
            assert [each.requires_grad for each in scripted(x, w)] == [True, False]
