"""Looking at what was captured: `explain`, cache entries, guards, generated code, graphs."""

from __future__ import annotations

import dis
import io
import sys
from contextlib import redirect_stdout

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list


def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_explain_counts_graphs_breaks_and_operators():
    found = torch._dynamo.explain(toy)(torch.ones(3), -torch.ones(3))
    assert (found.graph_count, found.graph_break_count) == (2, 1)
    assert found.op_count == sum(map(len, found.ops_per_graph)) == (6 if sys.version_info >= (3, 13) else 7)  # with `< 0`
    reason = found.break_reasons[0]
    assert "value of a tensor" in reason.reason and reason.file == __file__
    assert reason.line == toy.__code__.co_firstlineno + 2 and "torch.where" in reason.hint
    assert any("size=[3]" in guard for guard in found.guards) and len(found.out_guards) == len(found.guards)
    assert [name for name, seconds in found.compile_times if seconds > 0] == ["toy", "toy"]


def test_an_explanation_prints():
    text = str(torch._dynamo.explain(toy)(torch.ones(3), torch.ones(3)))
    for part in ("Graph Count: 2", "Graph Break Count: 1", "Break Reasons:", "if b.sum() < 0", "Hint: ", "Out Guards:", "abs",
                 "Compile Times:"):  # fmt: skip
        assert part in text
    with redirect_stdout(io.StringIO()) as printed:
        torch._dynamo.explain(toy)(torch.ones(3), torch.ones(3)).print_readable()
    assert "def forward(self" in printed.getvalue() and "x = a / (torch.abs(a) + 1)" in printed.getvalue()


def test_explain_runs_anew_what_was_compiled_and_leaves_nothing():
    compiled = torch.compile(toy, backend="eager")
    compiled(torch.ones(3), torch.ones(3))
    assert torch._dynamo.explain(compiled)(torch.ones(3), torch.ones(3)).graph_count == 2
    assert len(_debug_get_cache_entry_list(compiled)) == 1
    with pytest.raises(TypeError, match="missing 1 required"):
        torch._dynamo.explain(toy)(torch.ones(3))


def test_cache_entries_of_a_function():
    compiled = torch.compile(lambda x, k: (x + k).sum(), backend="eager", dynamic=False)
    x = torch.ones(3)
    compiled(x, 1), compiled(x, 2)
    latest, first = _debug_get_cache_entry_list(compiled)
    values = (globals(), None)
    assert latest.check_fn(x, 2, *values) and not latest.check_fn(x, 1, *values) and first.check_fn(x, 1, *values)
    assert f"{latest.guarded_code.graph_name}(x)" in latest.guarded_code.source and "k == 2" in latest.guarded_code.guards.text()
    assert latest.guarded_code.graph_name in dis.Bytecode(latest.code).dis()


def test_cache_entries_of_a_module_and_of_other_things():
    model = torch.compile(nn.Linear(3, 2), backend="eager")
    model(torch.ones(3))
    assert len(_debug_get_cache_entry_list(model)) == 1
    assert _debug_get_cache_entry_list(test_cache_entries_of_a_function.__code__) == []
    with pytest.raises(TypeError, match="a function written in Python or its code, got int"):
        _debug_get_cache_entry_list(3)


def test_graphs_print():
    graphs = []
    torch.compile(lambda x: torch.relu(x) * 2, backend=lambda module, inputs: (graphs.append(module), module.forward)[1])(
        torch.ones(3)
    )
    assert "relu" in graphs[0].print_readable(print_output=False)
    with redirect_stdout(io.StringIO()) as printed:
        graphs[0].graph.print_tabular()
    assert "call_function" in printed.getvalue() and "relu" in printed.getvalue()


def broken_by_print(torch, x):
    x = x + 1
    print(end="")
    return x * 2


def item(torch, x):
    return x * 2 + x.sum().item()


def branch(torch, x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def loop_over_data(torch, x):
    while x.sum() < 10:
        x = x + 1
    return x


def broken_in_no_grad(torch, x):
    with torch.no_grad():
        y = x + 1
        torch._dynamo.graph_break()
        z = y * 2
    return z


def plain(torch, x):
    return torch.nn.functional.softmax(torch.sin(x), -1) + sorted({"b": x, "a": 1}).index("b")


ORACLE = [broken_by_print, item, branch, loop_over_data, broken_in_no_grad, plain]


@pytest.mark.oracle
@pytest.mark.parametrize("program", ORACLE, ids=lambda program: program.__name__)
def test_graphs_and_breaks_are_as_many_as_torch_finds(program):
    peer = pytest.importorskip("torch")
    ours = torch._dynamo.explain(program)(torch, torch.ones(2, 3))
    theirs = peer._dynamo.explain(program)(peer, peer.ones(2, 3))
    assert ours.graph_count == theirs.graph_count
    found, wanted = ({reason.user_stack[-1].lineno for reason in one.break_reasons} for one in (ours, theirs))
    assert found == wanted


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences_are_steps_of_eager(kind):
    layer, readout = kind(4, 8, num_layers=2, batch_first=True), nn.Linear(8, 2)

    def read(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return readout(nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)[0])

    x, lengths = torch.randn(3, 5, 4), torch.tensor([5, 2, 3])
    found = torch._dynamo.explain(read)(x, lengths)
    assert found.graph_count == 1 and all("runs as it is" in reason.reason for reason in found.break_reasons)
    compiled = torch.compile(read)
    for size in (3, 4):
        x, lengths = torch.randn(size, 5, 4), torch.arange(size) + 2
        torch.testing.assert_close(compiled(x, lengths), read(x, lengths))


def test_a_break_in_an_inner_function_counts_once():
    class Inner(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                x = x + 1
            return x * 2

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x.exp()) - 1

    found = torch._dynamo.explain(Outer())(torch.ones(3))
    assert [reason.reason for reason in found.break_reasons] == ["a branch on the value of a tensor"]
