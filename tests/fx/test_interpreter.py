"""Interpreter: results, release of values, override points, errors."""

from __future__ import annotations

import gc
import operator
import weakref

import pytest

import rushlight as rl
from rushlight.fx import Graph, GraphModule, Interpreter, Transformer, symbolic_trace
from rushlight.fx.graph import CodeGen
from rushlight.nn.modules.module import Module

pytestmark = pytest.mark.usefixtures("small_heap")


class Value:
    """A number that can be weakly referenced."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __add__(self, other: int) -> Value:
        return Value(self.number + other)


def chain(length: int) -> GraphModule:
    graph = Graph()
    value = graph.placeholder("x")
    for _ in range(length):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return GraphModule({}, graph)


def test_runs_every_opcode():
    class Twice(Module):
        def forward(self, x):
            return 2 * x

    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=4)
    rest = graph.placeholder("*rest")
    total = graph.call_function(operator.add, (graph.call_module("twice", (x,)), graph.get_attr("offset")))
    graph.output({"total": [total, y], "bits": graph.call_method("bit_length", (total,)), "rest": rest})
    module = GraphModule({"twice": Twice(), "offset": 7}, graph)
    expected = {"total": [13, 4], "bits": 4, "rest": []}
    assert Interpreter(module).run(3) == expected
    assert Interpreter(module).run(3, 5, 6, 7) == {"total": [13, 5], "bits": 4, "rest": [6, 7]}
    assert type(Interpreter(module).run(3)["total"]) is list


def test_containers_reach_functions_as_plain_ones():
    seen = []
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(lambda *args: seen.append(args), ([x], {"k": x}, slice(x, None))))
    Interpreter(GraphModule({}, graph)).run(1)
    numbers, table, part = seen[0]
    assert type(numbers) is list and type(table) is dict and part == slice(1, None)


def test_values_are_released_after_their_last_use():
    module, references = chain(3), []

    class Watching(Interpreter):
        def run_node(self, n):
            gc.collect()
            alive = sum(reference() is not None for reference in references)
            assert alive <= 2, f"{alive} values alive at {n}"
            result = super().run_node(n)
            references.append(weakref.ref(result))
            return result

    inputs = [Value(0)]
    references.append(weakref.ref(inputs[0]))
    assert Watching(module).boxed_run(inputs).number == 3
    assert inputs == [] and all(reference() is None for reference in references[:-1])


def test_boxed_run_takes_defaults_and_the_rest():
    graph = Graph()
    x, y, rest = graph.placeholder("x"), graph.placeholder("y", default_value=4), graph.placeholder("*rest")
    graph.output((x, y, rest))
    interpreter = Interpreter(GraphModule({}, graph))
    assert interpreter.boxed_run([1]) == (1, 4, []) and interpreter.boxed_run([1, 2, 3]) == (1, 2, [3])


def test_keeps_values_when_asked_to():
    interpreter = Interpreter(chain(3), garbage_collect_values=False)
    interpreter.run(0)
    assert sorted(interpreter.env.values()) == [0, 1, 2, 3]


def test_initial_env():
    module = chain(3)
    second = module.graph.find_nodes(op="call_function")[1]
    assert Interpreter(module).run(0, initial_env={second: 100}) == 101


def test_override():
    class Subtract(Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(operator.sub if target is operator.add else target, args, kwargs)

    assert Subtract(chain(3)).run(10) == 7


def test_another_graph():
    assert Interpreter(Module(), graph=chain(2).graph).run(1) == 3


def test_errors_name_the_node_and_keep_their_type():
    module = chain(2)
    node = module.graph.find_nodes(op="call_function")[1]
    node.meta["stack_trace"] = 'File "/model.py", line 3, in forward\n    return x + 1'
    node.args = (node.args[0], "a")
    with pytest.raises(TypeError) as caught:
        Interpreter(module).run(1)
    (note,) = caught.value.__notes__
    assert note.startswith("While executing %add_1 : [num_users=1] = call_function[target=operator.add](args = (%add,")
    assert "/model.py" in note
    interpreter = Interpreter(module)
    interpreter.extra_traceback = False
    with pytest.raises(TypeError) as caught:
        interpreter.run(1)
    assert not hasattr(caught.value, "__notes__")


def test_missing_input_attribute_and_value():
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        Interpreter(chain(1)).run()
    module = chain(1)
    with module.graph.inserting_before():
        module.graph.get_attr("a.b")
    with pytest.raises(RuntimeError, match="nonexistent target a in GraphModule"):
        Interpreter(module).run(1)
    module = chain(1)
    module.graph.output_node().append(module.graph.find_nodes(op="placeholder")[0])
    with pytest.raises(RuntimeError, match="Node add uses node x, which has no value"):
        Interpreter(module).run(1)


def test_no_output():
    assert Interpreter(GraphModule({}, Graph())).run() is None


def test_transformers_keep_the_code_generator():
    class OneList(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, values){maybe_return_annotation}:\n    {', '.join(free_vars)} = values"

        def process_inputs(self, *inputs):
            return inputs[0]

    traced = symbolic_trace(lambda a, b: a + b)
    traced.graph.set_codegen(OneList())
    traced.recompile()
    assert Transformer(traced).transform()([rl.ones(2), rl.ones(2)]).tolist() == [2.0, 2.0]
