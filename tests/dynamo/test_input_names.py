"""What captured graphs call their inputs and calls, as users' backends see them, and the graph's name in the code that runs."""

from __future__ import annotations

import gc
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_fn

pytestmark = pytest.mark.usefixtures("small_heap")

TABLE = torch.ones(3)


def make(library):
    """A module with all kinds of inputs, of either library."""

    class Model(library.nn.Module):
        def __init__(self):
            super().__init__()
            self._linear = library.nn.Linear(4, 3)
            self.norm = library.nn.BatchNorm1d(3)
            self.scale = library.ones(3)
            self.ws = library.nn.ParameterList([library.nn.Parameter(library.ones(3))])
            self.seq = library.nn.Sequential(library.nn.Linear(3, 3))

        def forward(self, x, *args, k=None, **kw):
            out = self._linear(x)
            out = self.norm(out) * self.scale + args[0] + kw["z"] + k["a"][0]
            y = self.seq(out) + self.ws[0]
            return y

    return Model()


def captured(library, program, *args, **kwargs):
    graphs = []
    library.compile(program, backend=lambda module, _: (graphs.append(module), module.forward)[1])(*args, **kwargs)
    return graphs


def nodes_of_model(library):
    ones = library.ones(3)
    (graph,) = captured(library, make(library), library.ones(5, 4), ones, k={"a": [ones + 1]}, z=ones + 2)
    return [(node.op, node.name, node.target if isinstance(node.target, str) else "") for node in graph.graph.nodes]


def nodes_of_functions(library):
    table, held = library.ones(2), library.ones(2)
    holder = type("Holder", (), {})()
    holder.tensor, holder.more = library.ones(2), [library.ones(2)]

    def program(q, holder, pair):
        first = q + held
        second = first * holder.tensor + holder.more[0]
        return second.relu() + pair[1] + table

    (graph,) = captured(library, program, library.ones(2), holder, (1, library.ones(2)))
    return graph.code.strip(), [node.name for node in graph.graph.nodes]


@pytest.mark.oracle
def test_a_modules_graph_is_named_as_in_torch():
    oracle = pytest.importorskip("torch")
    assert nodes_of_model(torch) == nodes_of_model(oracle)


@pytest.mark.oracle
def test_a_functions_graph_reads_as_in_torch():
    oracle = pytest.importorskip("torch")
    assert nodes_of_functions(torch) == nodes_of_functions(oracle)


def test_parameters_are_inputs_of_users_graphs_and_gradients_reach_them():
    model = nn.Linear(4, 3)
    (graph,) = captured(torch, model, torch.ones(2, 4))
    targets = [node.target for node in graph.graph.find_nodes(op="placeholder")]
    assert targets == ["L_self_parameters_weight_", "L_self_parameters_bias_", "L_input_"]
    assert "L_self_parameters_weight_ : torch.nn.Parameter" in graph.code and not graph.graph.find_nodes(op="get_attr")
    compiled = torch.compile(model, backend=lambda module, inputs: module.forward)
    compiled(torch.ones(2, 4)).sum().backward()
    assert model.weight.grad.tolist() == [[2] * 4] * 3
    with torch.no_grad():
        model.bias.add_(1)
    assert torch.equal(compiled(torch.ones(2, 4)), model(torch.ones(2, 4)))


def test_a_function_called_like_our_own():
    def call_model(x, y):
        return x + y

    (graph,) = captured(torch, call_model, torch.ones(2), torch.ones(2))
    assert [node.target for node in graph.graph.find_nodes(op="placeholder")] == ["L_x_", "L_y_"]


def test_printed_graphs_name_lines_of_the_program():
    (graph,) = captured(torch, make(torch), torch.ones(5, 4), TABLE, k={"a": [TABLE + 1]}, z=TABLE + 2)
    places = {line.split("# File: ")[1].split(":")[0] for line in graph.print_readable(False).splitlines() if "# File" in line}
    assert places == {__file__}
    traced = torch.fx.symbolic_trace(lambda x: torch.sigmoid(x)).print_readable(False)
    assert __file__ in traced and "overrides" not in traced


def doubled(x):
    return x * 2


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_a_graph_is_among_the_globals_until_its_capture_is_gone(backend):
    compiled = torch.compile(doubled, backend=backend)
    compiled(torch.ones(2))
    (entry,) = _debug_get_cache_entry_list(compiled)
    name = entry.guarded_code.graph_name
    assert f"{name}(x)" in entry.guarded_code.source and name in entry.code.co_names
    function = innermost_fn(globals()[name])
    assert function(torch.ones(2))[0].tolist() == [2, 2]
    inner = function
    for _ in range(4):
        inner = inner.__closure__[0].cell_contents
    assert ("rushlight_entry" if backend == "inductor" else "def forward") in inner.source_code
    del entry, compiled
    torch._dynamo.reset()
    gc.collect()
    assert name not in globals()
    with pytest.raises(RuntimeError, match="was removed"):
        inner(torch.ones(2))


def test_a_published_graph_keeps_no_program_alive():
    namespace = {"torch": torch}
    exec("def function(x):\n    return x + 1", namespace)
    compiled = torch.compile(namespace["function"], backend="eager")
    compiled(torch.ones(2))
    assert any(name.startswith("__compiled_fn_") for name in namespace)
    function = weakref.ref(namespace["function"])
    del namespace, compiled
    gc.collect()
    assert function() is None


def test_innermost_fn():
    compiled = torch.compile(doubled)
    assert innermost_fn(compiled) is doubled and innermost_fn(doubled) is doubled
    model = nn.Linear(2, 2)
    assert innermost_fn(torch.compile(model)) is model
