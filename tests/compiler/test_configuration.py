"""Settings, counts and logs under PyTorch's names: `torch._dynamo.config` and its like."""

from __future__ import annotations

import logging
import unittest
import warnings
from unittest import mock

import pytest

import rushlight as torch
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list
from rushlight._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs
from rushlight._dynamo.utils import counters
from rushlight.compiler import settings as settings_module

dynamo, inductor, functorch = torch._dynamo.config, torch._inductor.config, torch._functorch.config


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch):
    monkeypatch.setattr(settings_module, "_configured", {})


def entries(compiled) -> int:
    return len(_debug_get_cache_entry_list(compiled))


# What captures do


@pytest.mark.parametrize("name", ["recompile_limit", "cache_size_limit"])
def test_the_limit_holds_for_functions_compiled_before_and_after(name):
    before = torch.compile(lambda x: x * 2, dynamic=False)
    setattr(dynamo, name, 3)
    after = torch.compile(lambda x: x * 2, dynamic=False)
    chosen = torch.compile(lambda x: x * 2, dynamic=False, options={"recompile_limit": 5})
    assert dynamo.recompile_limit == dynamo.cache_size_limit == 3
    for compiled, expected in ((before, 3), (after, 3), (chosen, 5)):
        with pytest.warns(UserWarning, match=f"was compiled {expected} times, the limit"):
            for size in range(2, 10):
                assert compiled(torch.ones(size)).shape == (size,)
        assert entries(compiled) == expected


def test_sizes_that_change_stay_fixed_without_automatic_dynamic_shapes():
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    with dynamo.patch(automatic_dynamic_shapes=False):
        for size in (2, 3, 4):
            compiled(torch.ones(size))
    assert counter.frame_count == 3
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    for size in (2, 3, 4):
        compiled(torch.ones(size))
    assert counter.frame_count == 2


def test_marks_hold_without_automatic_dynamic_shapes():
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=counter)
    with dynamo.patch("automatic_dynamic_shapes", False):
        for size in (2, 3, 4):
            x = torch.ones(size)
            torch._dynamo.decorators.mark_dynamic(x, 0)
            compiled(x)
    assert counter.frame_count == 1


def test_all_sizes_are_open_where_they_are_not_assumed_static():
    counter = CompileCounter()
    compiled, fixed = torch.compile(lambda x: x + 1, backend=counter), torch.compile(lambda x: x + 2, dynamic=False)
    with dynamo.patch({"assume_static_by_default": False}):
        for size in (2, 3, 4):
            compiled(torch.ones(size))
            fixed(torch.ones(size))
    assert counter.frame_count == 1 and entries(fixed) == 3


def test_errors_of_a_backend_can_be_suppressed():
    def broken(module, inputs):
        raise LookupError("no such thing")

    compiled, whole = torch.compile(lambda x: x * 2, backend=broken), torch.compile(lambda x: x * 2, backend=broken, fullgraph=True)
    with dynamo.patch(suppress_errors=True):
        with pytest.warns(UserWarning, match="runs in eager, because backend='broken' raised:\nLookupError: no such thing"):
            assert compiled(torch.ones(2)).tolist() == [2, 2]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiled(torch.ones(2)).tolist() == [2, 2]
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            whole(torch.ones(2))


def test_a_recompilation_can_be_an_error():
    compiled = torch.compile(lambda x: x * 2)
    compiled(torch.ones(2))
    with dynamo.patch(error_on_recompile=True):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
        with pytest.raises(torch._dynamo.exc.RecompileError, match=r"would be captured again: .*found a tensor of shape \[3\]"):
            compiled(torch.ones(3))
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]


def test_nothing_is_captured_while_capture_is_disabled():
    compiled = torch.compile(lambda x: x * 2)
    with dynamo.patch(disable=True):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert entries(compiled) == 0
    compiled(torch.ones(2))
    assert entries(compiled) == 1


# Settings of native code and of training


def test_settings_reach_compiled_functions():
    inductor.fallback_random = True
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    assert torch.equal(torch.compile(lambda x: torch.rand(5) + x)(torch.zeros(5)), expected)
    functorch.activation_memory_budget = 0.5
    inductor.cpp.threads = 2
    found = settings_module.configured(settings_module.from_environment())
    assert (found.memory_budget, found.threads, found.fallback_random) == (0.5, 2, True)
    inductor.cpp.threads = -1
    assert inductor.cpp.threads == -1 and functorch.activation_memory_budget == 0.5


def test_what_a_setting_cannot_be_and_names_that_do_not_exist():
    with pytest.raises(ValueError, match="memory_budget must be between 0 and 1"):
        functorch.activation_memory_budget = 2
    with pytest.raises(TypeError, match="recompile_limit expects int"):
        dynamo.recompile_limit = "many"
    for config in (dynamo, inductor, functorch):
        with pytest.raises(AttributeError, match="config.recompile_limits does not exist"):
            config.recompile_limits = 1
        with pytest.raises(AttributeError, match="does not exist"):
            config.recompile_limits  # noqa: B018
        with pytest.raises(AttributeError, match="does not exist"), config.patch(nothing=1):
            pass
    with pytest.raises(AttributeError, match="triton.nothing does not exist"):
        inductor.triton.nothing = 1


def test_settings_without_effect_are_kept():
    before = inductor.triton.unique_kernel_names
    with inductor.patch("triton.unique_kernel_names", "x"):
        assert inductor.triton.unique_kernel_names == "x"
    assert inductor.triton.unique_kernel_names is before
    assert "verbose" in dir(dynamo) and "freezing" in dir(inductor)


def test_patch_decorates_functions():
    @dynamo.patch(recompile_limit=2)
    def limit():
        return dynamo.recompile_limit

    assert [limit(), limit(), dynamo.recompile_limit] == [2, 2, 16]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_name_is_one_of_pytorch():
    pytest.importorskip("torch")
    import torch._dynamo.config as their_dynamo
    import torch._functorch.config as their_functorch
    import torch._inductor.config as their_inductor

    older = {  # those of PyTorch 2.1 that later versions dropped
        "aot_inductor_output_path", "force_mixed_mm", "realize_bytes_threshold", "reordering", "triton.assert_indirect_indexing",
        "triton.max_block",
    }  # fmt: skip
    for ours, theirs in ((dynamo, their_dynamo), (inductor, their_inductor), (functorch, their_functorch)):
        for name in ours._settings.keys() - older:
            place = theirs
            for part in name.split("."):
                assert hasattr(place, part), name
                place = getattr(place, part)
    from torch._logging._internal import log_registry

    known = {*log_registry.artifact_names, *log_registry.log_alias_to_log_qnames, "modules"}
    assert {*torch._logging._STAGES, *torch._logging._WITHOUT_STAGES} <= known


# Counts and logs


def branching(x):
    y = x.relu() + 1
    if y.sum() > 0:
        return y * 2
    return y


def test_backends_that_count():
    counter, other, kept = CompileCounter(), CompileCounterWithBackend("aot_eager"), EagerAndRecordGraphs()
    for backend in (counter, other, kept):
        assert torch.equal(torch.compile(branching, backend=backend)(torch.ones(3)), branching(torch.ones(3)))
    assert counter.frame_count == other.frame_count == len(kept.graphs) == len(other.graphs) == 2
    assert counter.op_count == other.op_count == sum(n.op.startswith("call_") for g in kept.graphs for n in g.graph.nodes)
    counter.clear()
    assert counter.frame_count == counter.op_count == 0


def test_counters_say_what_was_captured():
    counters.clear()
    torch.compile(branching, backend="eager")(torch.ones(3))
    assert counters["stats"]["unique_graphs"] == 2 and counters["frames"] == {"total": 2, "ok": 2}
    assert dict(counters["graph_break"]) == {"a branch on the value of a tensor": 1}
    assert counters["stats"]["calls_captured"] >= 3 and torch._dynamo.utils.counters is counters


def test_set_logs_prints_the_stages_that_it_names(capfd):
    torch._logging.set_logs(graph_breaks=True, recompiles=True, dynamo=logging.DEBUG, inductor=logging.INFO)
    compiled = torch.compile(branching, backend="eager")
    compiled(torch.ones(3))
    compiled(torch.ones(4))
    text = capfd.readouterr().err
    assert "--- graph_breaks: branching" in text and "--- recompiles: branching" in text and "--- guards" not in text
    torch._logging.set_logs()
    torch.compile(lambda x: branching(x) * 3, backend="eager")(torch.ones(3))
    assert capfd.readouterr().err == ""
    with pytest.raises(ValueError, match="Unrecognized log or artifact name passed into set_logs: nothing"):
        torch._logging.set_logs(nothing=True)


def test_run_uses_what_was_captured():
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x * 2, backend=counter)
    compiled(torch.ones(2))
    only = torch._dynamo.run(compiled)
    assert only(torch.ones(2)).tolist() == [2, 2] and only(torch.ones(3)).tolist() == [2, 2, 2] and counter.frame_count == 1
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.optimize_assert("eager")(branching)(torch.ones(2))
    torch._dynamo.mark_static_address(torch.ones(2))


def test_patch_decorates_classes_of_tests():
    class Cases(unittest.TestCase):
        seen = []

        def test_limit(self):
            self.seen.append(dynamo.recompile_limit)

    patched = dynamo.patch(recompile_limit=3)(Cases)
    assert patched.__name__ == "Cases" and issubclass(patched, Cases)
    assert unittest.TestSuite([patched("test_limit")]).run(unittest.TestResult()).wasSuccessful()
    assert Cases.seen == [3] and dynamo.recompile_limit == 16
    with pytest.raises(TypeError, match=r"subclasses of unittest.TestCase, got the class int"):
        dynamo.patch(recompile_limit=3)(int)


def test_mocks_of_settings():
    dynamo.recompile_limit = 4
    with mock.patch.object(dynamo, "recompile_limit", 2), mock.patch("rushlight._dynamo.config.verbose", True):
        assert (dynamo.recompile_limit, dynamo.verbose) == (2, True)
    assert (dynamo.recompile_limit, dynamo.verbose) == (4, False)
    del dynamo.recompile_limit
    with pytest.raises(AttributeError, match="recompile_limit does not exist"):
        dynamo.recompile_limit  # noqa: B018
    dynamo.recompile_limit = 16
