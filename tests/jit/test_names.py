"""Names of torch.jit and torch._C that programs use: fusers, strategies, futures, and what `torch._C` offers of the jit."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from typing import List  # noqa: UP035 (TorchScript's annotations)

import pytest

import rushlight as torch
from rushlight.jit.runtime.modes import change_modes, modes


@pytest.fixture(autouse=True)
def settings():
    before = modes()
    yield
    change_modes(**{key: getattr(before, key) for key in before.__dataclass_fields__})


def run(text: str) -> str:
    """What a program prints, in a process of its own."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=True).stdout


def test_importing_the_library_does_not_import_the_jit():
    assert run("import sys, rushlight; print([name for name in sys.modules if name.startswith('rushlight.jit')])") == "[]\n"


@pytest.mark.parametrize("how", ["import rushlight.jit", "from rushlight.jit import script", "from rushlight import jit"])
def test_native_code_however_the_jit_is_imported(how):
    made = run(f"""
        {how}
        import sys
        from rushlight.jit.runtime.native import native_compiler
        before = 'rushlight.compiler.scripted.native' in sys.modules
        print(before, native_compiler().__name__)
    """.replace("{how}", how))
    assert made == "False compile_native\n"


@pytest.mark.parametrize("name", ["fuser0", "fuser1", "fuser2", "fuser3", "none"])
def test_fusers(name):
    before = modes()
    with torch.jit.fuser(name):
        assert modes().fuses is (name not in ("fuser2", "none"))
        assert modes().tensor_exprs is (name in ("fuser1", "fuser3"))
        assert modes().onednn is torch.jit.onednn_fusion_enabled() is (name == "fuser3")
        assert modes().profiling is (name in ("fuser1", "fuser3"))
    assert modes() == before


def test_an_unknown_fuser():
    with pytest.raises(Exception, match=r"unrecognized fuser option \(name: fuser9\)"), torch.jit.fuser("fuser9"):
        pass


def test_no_fuser_makes_no_native_code(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    monkeypatch.setattr("rushlight.jit.runtime.specialized.native_compiler", lambda: pytest.fail("native code was asked for"))

    def function(x):
        return torch.tanh(x * x) + x

    with torch.jit.fuser("none"):
        scripted = torch.jit.script(function)
        for _ in range(3):
            assert torch.equal(scripted(torch.ones(3)), function(torch.ones(3)))


def test_fusion_strategy():
    assert torch.jit.set_fusion_strategy([("STATIC", 1)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    assert torch._C._jit_set_fusion_strategy([("DYNAMIC", 2)]) == [("STATIC", 1)]
    with pytest.raises(ValueError, match="FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: X"):
        torch.jit.set_fusion_strategy([("X", 1)])
    for bad in ("abc", [("STATIC",)]):
        with pytest.raises(TypeError):
            torch.jit.set_fusion_strategy(bad)
    with pytest.warns(UserWarning, match="bailout depth is deprecated"):
        assert torch._C._jit_set_bailout_depth(20) == 2
    assert modes().strategy == (("STATIC", 20),)


def test_switches_of_the_executors():
    C = torch._C
    assert C._jit_set_profiling_executor(True) is False and modes().profiling
    assert C._jit_set_profiling_mode(False) is True and not modes().specializes
    assert C._get_graph_executor_optimize(False) is True and C._get_graph_executor_optimize() is False
    assert C._jit_set_num_profiled_runs(3) == 1 and C._jit_get_num_profiled_runs() == 3
    for setter, getter in (("_jit_override_can_fuse_on_cpu", "_jit_can_fuse_on_cpu"), ("_jit_set_llga_enabled",
                           "_jit_llga_enabled"), ("_jit_set_texpr_fuser_enabled", "_jit_texpr_fuser_enabled"),
                           ("_jit_set_texpr_reductions_enabled", "_jit_texpr_reductions_enabled"),
                           ("_debug_set_fusion_group_inlining", "_debug_get_fusion_group_inlining")):  # fmt: skip
        before = getattr(C, getter)()
        assert getattr(C, setter)(not before) is before and getattr(C, getter)() is not before
        getattr(C, setter)(before)
    with pytest.warns(UserWarning, match="nvfuser is no longer supported"):
        C._jit_set_nvfuser_enabled(True)
    C._debug_set_autodiff_subgraph_inlining(False)
    assert modes().autodiff_threshold == 1


def test_passes_and_graphs_by_torchs_names():
    graph = torch._C.parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%x)\n")
    torch._C._jit_pass_dce(graph)
    assert "aten::neg" not in str(graph)
    assert torch._C.CompilationUnit is torch.jit.CompilationUnit
    assert str(torch._C._jit_get_schemas_for_operator("aten::add")[0]).startswith("aten::add")
    assert not hasattr(torch._C, "_jit_no_such_thing") and not hasattr(torch._C, "no_such_thing")


def test_operators_of_a_module():
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    assert torch.jit.export_opnames(scripted) == ["aten::linear", "aten::relu"]


def test_debug_state():
    @torch.jit.script
    def function(x):
        return x * 2

    function(torch.ones(2))
    state = function.get_debug_state()
    assert "aten::mul" in str(state.graph) and "OPN 0 2 # aten::mul" in str(next(iter(state.execution_plans.values())).code)


def test_futures():
    future = torch.jit.Future()
    seen = []
    future.add_done_callback(lambda each: seen.append(each.value()))
    after = future.then(lambda each: each.value() + 1)
    assert not future.done()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    future.set_result(3)
    assert (future.wait(), after.wait(), seen) == (3, 4, [3])
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        future.set_result(4)
    failed = torch.jit.Future()
    chained = failed.then(lambda each: each.value())
    failed.set_exception(ValueError("what went wrong"))
    for each in (failed, chained):
        with pytest.raises(ValueError, match="what went wrong"):
            each.wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        torch.jit.Future().set_exception(3)


def test_attribute_is_a_pair():
    value, kind = torch.jit.Attribute([], List[int])  # noqa: UP006
    assert value == [] and kind == List[int] and issubclass(torch.jit.ScriptWarning, Warning)  # noqa: UP006


class Score:
    """An object with operators."""

    def __init__(self, value: int):
        self.value = value

    def plus(self, other: int) -> int:
        return self.value + other

    def __len__(self) -> int:
        return self.value

    def __add__(self, other: int) -> int:
        return self.value + other


class Scoring(torch.nn.Module):
    """Gives an object."""

    def forward(self, value: int) -> Score:
        return Score(value)

    @torch.jit.export
    def read(self, score: Score) -> int:
        return score.value


def test_objects_of_archives():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Scoring()), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    score = loaded(3)
    assert type(score) is torch.jit.RecursiveScriptClass
    assert (score.value, score.plus(2), len(score), score + 4, score == score) == (3, 5, 3, 7, True)
    score.value = 8
    assert loaded.read(score) == 8
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        score.nothing = 1
    with pytest.raises(NotImplementedError, match="__mul__"):
        score * 2
