"""Tracing by itself: what is recorded, what is warned of, what is refused, and how traces and scripts go together."""

from __future__ import annotations

import copy
import threading
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.jit.tracing.check import TracingCheckError
from rushlight.jit.tracing.language import is_tracing, script_if_tracing
from rushlight.jit.tracing.trace import trace, trace_module
from rushlight.jit.tracing.warning import TracerWarning
from tests.jit.tracing.comparison import normalised

WEIGHT = torch.ones(2, requires_grad=True)


def test_sizes_are_recorded():
    traced = trace(lambda x: x.view(x.size(0) * 2, -1), torch.ones(2, 4))
    assert normalised(traced.graph) == (
        "graph(%0 : Float(2, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"
        "  %1 : int = prim::Constant[value=0]()\n"
        "  %2 : int = aten::size(%0, %1)\n"
        "  %3 : Long(device=cpu) = prim::NumToTensor(%2)\n"
        "  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()\n"
        "  %5 : Long(requires_grad=0, device=cpu) = aten::mul(%3, %4)\n"
        "  %6 : int = aten::Int(%5)\n"
        "  %7 : int = prim::Constant[value=-1]()\n"
        "  %8 : int[] = prim::ListConstruct(%6, %7)\n"
        "  %9 : Float(4, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::view(%0, %8)\n"
        "  return (%9)"
    )
    assert traced(torch.ones(3, 4)).shape == (6, 2)


def test_lines_of_the_program_are_kept():
    graph = str(trace(lambda x: x + 1, torch.ones(2)).graph)
    assert "test_trace.py:" in graph


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x * int(x.sum()), "Converting a tensor to a Python integer"),
        (lambda x: x * float(x.sum()), "Converting a tensor to a Python float"),
        (lambda x: x * x.sum().item(), "Converting a tensor to a Python number"),
        (lambda x: x if x.sum() > 0 else -x, "Converting a tensor to a Python boolean"),
        (lambda x: x if x.size(0) > 0 else -x, "Converting a tensor to a Python boolean"),
        (lambda x: x * [1, 2, 3][x.sum().long() * 0], "Converting a tensor to a Python index"),
        (lambda x: x * x.tolist()[0], "Converting a tensor to a Python list"),
        (lambda x: x + torch.tensor(x.numpy()), "Converting a tensor to a NumPy array"),
        (lambda x: sum(y for y in x), "Iterating over a tensor"),
        (lambda x: x * len(x), "Using len to get tensor shape"),
        (lambda x: x + torch.tensor([1.0, 2.0]), "torch.tensor results are registered as constants"),
        (lambda x: [x, x + 1], "Encountering a list at the output"),
    ],
)
def test_warnings(function, message):
    with pytest.warns(TracerWarning, match=message) as caught:
        trace(function, torch.ones(2), check_trace=False)
    assert all(each.filename == __file__ for each in caught if each.category is TracerWarning)


def test_no_warning_without_reason():
    model = nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.BatchNorm1d(2), nn.MultiheadAttention(4, 2)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(model[:2], torch.ones(1, 2, 4))
        trace(lambda x: torch.nn.functional.layer_norm(x, (2,)), torch.ones(3, 2))


@pytest.mark.parametrize(
    "function, inputs, message",
    [
        (lambda x: None, (torch.ones(2),), "The traced function didn't return any values"),
        (lambda x: 3, (torch.ones(2),), "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output"),
        (lambda x, n: x, (torch.ones(2), 3), r"Type 'Tuple\[Tensor, int\]' cannot be traced"),
        (lambda x: {"a": x}, (torch.ones(2),), "Encountering a dict at the output of the tracer"),
        (lambda x: x + WEIGHT, (torch.ones(2),), "Cannot insert a Tensor that requires grad"),
    ],
)
def test_refusals(function, inputs, message):
    with pytest.raises(RuntimeError, match=message):
        trace(function, inputs)
    assert not is_tracing()
    assert torch.ones(2).shape == (2,)


def test_refusals_of_modules():
    with pytest.raises(AttributeError, match="expected torch.nn.Module as the first argument"):
        trace_module(3, {})
    with pytest.raises(AttributeError, match="expected a dictionary of"):
        trace_module(nn.Linear(2, 2), torch.ones(2))
    with pytest.raises(NameError, match="example_kwarg_inputs must only contain names"):
        trace(lambda a: a, example_kwarg_inputs={"b": torch.ones(2)})


def test_check_finds_another_graph():
    calls = []

    def function(x):
        calls.append(x)
        return x + 1 if len(calls) % 2 else x * 2

    with pytest.raises(TracingCheckError, match="Graphs differed across invocations") as error:
        trace(function, torch.ones(2))
    assert "aten::add" in str(error.value) and "aten::mul" in str(error.value)


def test_check_finds_other_constants():
    calls = []

    def function(x):
        calls.append(x)
        return x + torch.ones(3).mul_(len(calls)).numpy().sum()

    with pytest.raises(TracingCheckError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace(function, torch.ones(2))


def test_check_tells_of_chance():
    with pytest.warns(TracerWarning, match="does not match") as caught:
        trace(lambda x: x + torch.rand(2), torch.ones(2))
    assert any("nondeterministic nodes" in str(each.message) and "aten::rand" in str(each.message) for each in caught)


def test_check_of_other_inputs():
    def function(x):
        return x if float(x.sum()) > 0 else -x

    with pytest.raises(TracingCheckError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace(function, torch.ones(2), check_inputs=[(-torch.ones(2),)])


class Model(nn.Module):
    """A layer used by two methods."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)

    def shifted(self, x, y):
        return self.linear(x) + y


def test_methods():
    model, x = Model(), torch.randn(2, 3)
    traced = trace_module(model, {"forward": x, "shifted": (x, x)})
    assert torch.equal(traced(x), model(x)) and torch.equal(traced.shifted(x, x), model.shifted(x, x))
    assert traced.linear.weight is model.linear.weight
    assert [name for name, _ in traced.named_parameters()] == ["linear.weight", "linear.bias"]


def test_bound_forward_traces_the_module():
    model = Model()
    assert isinstance(trace(model.forward, torch.ones(1, 3)), nn.Module)


def test_training_through_a_trace():
    x = torch.randn(5, 3)
    losses = []
    for wrap in (lambda model: model, lambda model: trace(model, x)):
        torch.manual_seed(0)
        model = wrap(Model())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses.append([])
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]


def test_traced_in_script():
    traced_function = trace(lambda x: x * 2, torch.ones(2))
    traced_module = trace(Model(), torch.ones(1, 3))

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = traced_module

        def forward(self, x):
            if x.size(0) > 1:
                return self.inner(x) + 1
            return traced_function(x)

    scripted = torch.jit.script(Outer())
    assert torch.equal(scripted(torch.ones(2, 3)), traced_module(torch.ones(2, 3)) + 1)
    assert torch.equal(scripted(torch.ones(1, 3)), torch.full((1, 3), 2.0))


@script_if_tracing
def choose(x):
    """A branch that a trace keeps."""
    if bool(x.sum() > 0):
        return x * 2
    return -x


def test_script_if_tracing():
    traced = trace(lambda x: choose(x) + 1, torch.ones(2))
    assert "prim::CallFunction" in str(traced.graph)
    assert traced(-torch.ones(2)).tolist() == [2.0, 2.0] and choose(-torch.ones(2)).tolist() == [1.0, 1.0]


def test_tracing_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("PYTORCH_JIT", "0")
    model = Model()
    assert trace(choose, torch.ones(2)) is choose and trace(model, torch.ones(1, 3)) is model
    assert trace_module(model, {"forward": torch.ones(1, 3)}) is model


def test_is_tracing():
    seen = []

    def function(x):
        seen.append(is_tracing())
        return x + 1

    trace(function, torch.ones(2), check_trace=False)
    assert seen == [True] and not is_tracing()


def test_other_threads_notice_nothing():
    sizes = []

    def function(x):
        thread = threading.Thread(target=lambda: sizes.append((type(x.size(0)), is_tracing(), x + 1)))
        thread.start()
        thread.join()
        return x * 2

    traced = trace(function, torch.ones(2), check_trace=False)
    assert sizes[0][:2] == (int, False)
    assert "aten::add" not in str(traced.graph)


def test_tensor_methods_are_restored():
    before = {name: getattr(torch.Tensor, name) for name in ("shape", "size", "__bool__", "__getitem__", "item")}
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: x / (1 // 0), torch.ones(2))
    assert before == {name: getattr(torch.Tensor, name) for name in before}


def test_values_of_a_trace_do_not_leak():
    kept = []

    def function(x):
        kept.append(x.size(0))
        return x + 1

    trace(function, torch.ones(2), check_trace=False)
    assert kept[0] + 1 == 3 and type(kept[0] + 1) is int and torch.zeros(kept[0]).shape == (2,)


def test_sizes_are_copied_as_ints():
    copies = []

    def function(x):
        copies.append(copy.deepcopy([x.size(0)])[0])
        return x + 1

    trace(function, torch.ones(2), check_trace=False)
    assert copies == [2] and type(copies[0]) is int


def test_autocast_is_recorded():
    model = nn.Linear(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        traced = trace(model, torch.ones(1, 3))
    assert "BFloat16" in str(traced.graph) and traced(torch.ones(1, 3)).dtype is torch.bfloat16


def test_nested_containers_in_and_out():
    def function(parts, pair):
        return {"a": parts["x"] + pair[0], "b": [pair[1][0], pair[1][1] * 2]}["b"][1] + parts["y"]

    inputs = ({"x": torch.ones(2), "y": torch.ones(2)}, (torch.ones(2), [torch.ones(2), torch.ones(2)]))
    assert trace(function, inputs)(*inputs).tolist() == [3.0, 3.0]


def test_writes_to_arguments():
    def function(x):
        x[0] = 5.0
        return x.t()

    traced = trace(function, torch.zeros(2, 2))
    x = torch.zeros(2, 2)
    assert traced(x).tolist() == [[5.0, 0.0], [5.0, 0.0]] and x.tolist() == [[5.0, 5.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: (x * 1).resize_(2, 2),
        lambda x: (x * 1).resize_([x.size(0), 2]),
        lambda x: (x * 1).resize_as_(x[:1]),
        lambda x: (x * 1).set_(x * 2, 1, (2, 2), (1, 1)),
        lambda x: (x * 1).set_().numel() + x,
    ],
)
def test_resizing_is_recorded(change):
    traced = trace(change, torch.arange(6.0).reshape(2, 3))
    other = torch.arange(12.0).reshape(4, 3)
    torch.testing.assert_close(traced(other.clone()), change(other.clone()))


def test_set_to_a_storage_is_refused():
    with pytest.raises(RuntimeError, match="set_ to a storage can't be traced"):
        trace(lambda x: (x * 1).set_(x.untyped_storage()), torch.ones(3))


def test_detaching_in_place_stops_gradients():
    x = torch.ones(3, requires_grad=True)
    traced = trace(lambda x: (x * 2).detach_() * x, x)
    traced(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 2.0))


def test_sizes_behave_as_ints():
    def program(x):
        n = x.size(0)
        assert isinstance(n, int) and [1, 2, 3][n] == 3 and len([0] * n) == 2 and n in (2, 5) and {2: 1}[n] == 1
        assert list(range(n)) == [0, 1] and divmod(n, 2)[0] == 1 and round(n) is n and f"{n}" == "2" and max(n, 1) == 2
        return x + n

    torch.testing.assert_close(trace(program, torch.ones(2))(torch.ones(2)), torch.full((2,), 3.0))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("GRU", {}), ("RNN", {"num_layers": 2}), ("LSTM", {"batch_first": True, "bidirectional": True}),
        ("LSTM", {"proj_size": 2}),
    ],
)  # fmt: skip
def test_packed_batches_of_other_sizes(kind, options):
    batch_first = options.get("batch_first", False)

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(nn, kind)(4, 3, **options)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False)
            output, state = self.layer(packed)
            return *nn.utils.rnn.pad_packed_sequence(output, batch_first=batch_first), state

    def inputs(batch, steps, lengths):
        sizes = (batch, steps, 4) if batch_first else (steps, batch, 4)
        return torch.randn(sizes), torch.tensor(lengths)

    module = Packed()
    traced = trace(module, inputs(2, 3, [1, 3]))
    others = inputs(4, 6, [2, 6, 1, 3])
    torch.testing.assert_close(traced(*others), module(*others))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * torch.tensor([x.size(0), 0.5]),
        lambda x: torch.tensor([[x.size(0), 7], [1, x.size(1)]]),
        lambda x: torch.tensor(x.shape, dtype=torch.float64),
        lambda x: torch._shape_as_tensor(x) + 1,
        lambda x: torch.zeros(2).fill_(x.size(0)),
        lambda x: torch.zeros(()).fill_(x.size(0) * 2),
    ],
)
def test_tensors_of_sizes_follow_the_sizes(function):
    traced = trace(function, torch.ones(3, 2))
    other = torch.ones(5, 2)
    torch.testing.assert_close(traced(other), function(other))


def test_a_size_written_to_elements_follows_the_sizes():
    def assign(x):
        y = x.clone()
        y[0] = x.size(0)
        return y

    torch.testing.assert_close(trace(assign, torch.ones(3, 2))(torch.ones(5, 2)), assign(torch.ones(5, 2)))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x * 2)


def test_errors_name_the_lines_of_the_program(tmp_path):
    traced = trace(Outer(), torch.ones(2, 3))
    torch.jit.save(traced, tmp_path / "model.pt")
    loaded = torch.jit.load(tmp_path / "model.pt")
    lines = [Inner.forward.__code__.co_firstlineno + 1, Outer.forward.__code__.co_firstlineno + 1]
    for module in (traced, loaded, torch.jit.freeze(traced.eval())):
        with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
            module(torch.ones(2, 4))
        for line in lines:
            assert f"{__file__}({line}): forward" in str(caught.value)
