"""GraphModule and the generated code: what runs, how it reads, what errors say, copies and pickles."""

from __future__ import annotations

import copy
import gc
import math
import operator
import pickle
import traceback
from collections import namedtuple
from types import SimpleNamespace

import pytest

from rushlight.fx import Graph, GraphModule
from rushlight.nn.modules.module import Module

Pair = namedtuple("Pair", "first second")


class Scale(Module):
    """Multiplies by a number."""

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Root(Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()
        self.unused = Scale()
        self.inner = Module()
        self.inner.constant = 10
        self.inner.deep = Scale(5)


def build(body) -> GraphModule:
    """A GraphModule of one placeholder x whose output is `body(graph, x)`."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(body(graph, x))
    graph.lint()
    return GraphModule({}, graph)


def test_code_releases_values_after_their_last_use():
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=3)
    total = graph.call_function(operator.add, (x, y))
    graph.call_function(operator.eq, (total, 1))
    graph.output(graph.call_function(math.sqrt, (total,)))
    module = GraphModule({}, graph)
    assert module.code == (
        "def forward(self, x, y = 3):\n"
        "    add = x + y;  x = y = None\n"
        "    eq = add == 1;  eq = None\n"
        "    sqrt = math_sqrt(add);  add = None\n"
        "    return sqrt\n"
    )
    assert module(13) == 4.0 and module(6, 10) == 4.0


@pytest.mark.parametrize(
    ("target", "args", "source"),
    [
        (operator.add, ("x", 1), "x + 1"),
        (operator.pow, (-2, "x"), "(-2) ** x"),
        (operator.matmul, ("x", "x"), "x @ x"),
        (operator.neg, ("x",), "-x"),
        (operator.invert, ("x",), "~x"),
        (operator.getitem, ("x", (slice(1, None), 0, None)), "x[(slice(1, None, None), 0, None)]"),
        (operator.contains, ("x", 1), "operator_contains(x, 1)"),
        (getattr, ("x", "shape"), "x.shape"),
        (getattr, ("x", "bad name"), "getattr(x, 'bad name')"),
        (getattr, ("x", "shape", None), "getattr(x, 'shape', None)"),
        (max, ("x", float("inf"), float("-inf")), "max(x, inf, -inf)"),
        (max, ("x", complex(float("nan"), 1)), "max(x, complex(nan, 1.0))"),
        (max, ("x", Pair(1, 2)), "max(x, {pair}(1, 2))"),
        (math.atan2, ("x", b"y"), "math_atan2(x, b'y')"),
    ],
)
def test_expressions(target, args, source):
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(target, tuple(x if value == "x" else value for value in args)))
    code = graph.python_code()
    pair = next((name for name, value in code.globals.items() if value is Pair), "")
    assert f" = {source.format(pair=pair)};  x = None" in code.src


def test_values_of_operators_agree_with_the_interpreter_of_python():
    module = build(lambda graph, x: graph.call_function(operator.pow, (graph.call_function(operator.neg, (x,)), 2)))
    assert module(3) == 9
    assert build(lambda graph, x: graph.call_function(operator.pow, (-2, x)))(2) == 4
    assert build(lambda graph, x: graph.call_method("bit_length", (5,)))(0) == 3


def test_in_place_operators_leave_immutable_inputs_alone():
    def body(graph, x):
        return x, graph.call_function(operator.iadd, (x, 1))

    assert build(body)(1) == (1, 2)
    same, changed = build(lambda graph, x: (x, graph.call_function(operator.iadd, (x, [1]))))([0])
    assert same is changed and same == [0, 1]


def test_setitem():
    def body(graph, x):
        graph.call_function(operator.setitem, (x, 0, 5))
        return x

    module = build(body)
    assert "    x[0] = 5\n" in module.code and module([1, 2]) == [5, 2]


def test_names_of_parameters_and_nested_arguments():
    graph = Graph()
    x = graph.placeholder("L_x_")
    rest = graph.placeholder("*rest")
    out = graph.call_function(dict, (), {"a": [x, (rest,)], "b": {1: x}})
    graph.output({"r": out, "t": (x,)})
    module = GraphModule({}, graph)
    assert module.code.startswith("def forward(self, L_x_, *rest):\n    l_x_ = L_x_\n")
    assert module(1, 2, 3) == {"r": {"a": [1, ((2, 3),)], "b": {1: 1}}, "t": (1,)}


def test_keyword_that_is_no_identifier():
    module = build(lambda graph, x: graph.call_function(dict, (), {"a b": x}))
    assert module(1) == {"a b": 1}


def test_get_attr_and_call_module():
    graph = Graph()
    x = graph.placeholder("x")
    scaled = graph.call_module("inner.deep", (graph.call_module("scale", (x,)),))
    graph.output(graph.call_function(operator.add, (scaled, graph.get_attr("inner.constant"))))
    root = Root().eval()
    module = GraphModule(root, graph, "Small")
    assert module(1) == 20
    assert module.inner.deep is root.inner.deep and not hasattr(module, "unused")
    assert module.inner is not root.inner
    assert type(module).__name__ == "Small" and not module.training
    graph.lint()
    assert "deep = self.inner.deep(scale)" in module.code.replace("inner_deep", "deep")


def test_paths_that_are_no_identifiers():
    graph = Graph()
    graph.output(graph.call_module("layers.0", (graph.placeholder("x"),)))
    module = GraphModule({"layers.0": Scale()}, graph)
    assert 'getattr(self.layers, "0")(x)' in module.code and module(4) == 8


def test_missing_targets():
    graph = Graph()
    graph.call_module("inner.nowhere")
    with pytest.raises(RuntimeError, match="Node inner_nowhere referenced target inner.nowhere"):
        GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Module has no attribute nowhere"):
        GraphModule(Root(), graph)
    with pytest.raises(TypeError, match="needs a Module or a dict as root, got int"):
        GraphModule(3, Graph())


def test_lint_checks_targets():
    module = GraphModule({}, Graph())
    with module.graph.inserting_before():
        module.graph.get_attr("a.b")
    with pytest.raises(RuntimeError, match="a.b references nonexistent attribute a of GraphModule"):
        module.graph.lint()


def test_recompile_after_an_edit():
    module = build(lambda graph, x: graph.call_function(operator.add, (x, 1)))
    assert module(1) == 2
    module.graph.find_nodes(op="call_function")[0].target = operator.sub
    assert module(1) == 2
    module.recompile()
    assert module(1) == 0 and "x - 1" in module.code
    module.graph = build(lambda graph, x: x).graph
    assert module(7) == 7


def test_instances_do_not_share_code():
    one, two = (build(lambda graph, x, k=k: graph.call_function(operator.add, (x, k))) for k in (1, 2))
    assert (one(0), two(0), one(0)) == (1, 2, 1)


def test_traceback_shows_generated_code_and_user_line():
    module = build(lambda graph, x: graph.call_function(operator.add, (x, "a")))
    trace = 'File "/model.py", line 3, in forward\n    return x + "a"\n'
    module.graph.find_nodes(op="call_function")[0].meta["stack_trace"] = trace
    with pytest.raises(TypeError) as caught:
        module(1)
    text = "".join(traceback.format_exception(caught.value))
    assert "add = x + 'a';  x = None" in text
    assert 'While executing node add, from /model.py:3: return x + "a"' in text


def test_source_cache_is_released():
    import linecache

    module = build(lambda graph, x: x)
    module(1)
    filename = type(module).forward.__code__.co_filename
    assert filename in linecache.cache
    del module
    gc.collect()
    assert filename not in linecache.cache


def tensor_like(dtype: str, *shape: int) -> SimpleNamespace:
    strides = [math.prod(shape[index + 1 :]) for index in range(len(shape))]
    return SimpleNamespace(dtype=f"torch.{dtype}", shape=shape, stride=lambda: strides, device="cpu")


def annotated() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    total = graph.call_function(operator.add, (x, 1))
    both = graph.call_function(divmod, (total, 2))
    graph.output((both,))
    x.meta["val"] = total.meta["val"] = tensor_like("float32", 4, 4)
    both.meta["val"] = (tensor_like("int64"), tensor_like("bool", 2))
    total.meta["stack_trace"] = (
        'File "/lib.py", line 9, in __call__\n    run()\nFile "/a/b.py", line 3, in foo\n    return x + 1\n'
    )
    return GraphModule({}, graph)


def test_print_readable(capsys):
    expected = (
        "class GraphModule(torch.nn.Module):\n"
        '    def forward(self, x: "f32[4, 4]"):\n'
        "        # File: /a/b.py:3 in foo, code: return x + 1\n"
        '        add: "f32[4, 4]" = x + 1;  x = None\n'
        "\n"
        "        # No stacktrace found for following nodes\n"
        '        divmod_1: "(i64[], b8[2])" = divmod(add, 2);  add = None\n'
        "        return (divmod_1,)"
    )
    module = annotated()
    assert module.print_readable(print_output=False) == expected
    assert capsys.readouterr().out == ""
    module.print_readable(include_stride=True, include_device=True)
    assert '"f32[4, 4][4, 1]cpu"' in capsys.readouterr().out


def test_print_readable_shows_inner_graphs():
    inner = build(lambda graph, x: x)
    graph = Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("y"),)))
    text = GraphModule({"inner": inner}, graph).print_readable(print_output=False)
    assert "\n    class GraphModule(torch.nn.Module):\n        def forward(self, x):\n            return x" in text


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies(duplicate):
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (graph.call_module("scale", (x,)), 1)))
    module = GraphModule(Root(), graph, "Named").eval()
    module.meta["kind"] = "test"
    twin = duplicate(module)
    twin.graph.find_nodes(op="call_function")[0].target = operator.sub
    twin.recompile()
    assert module(2) == 5 and twin(2) == 3
    assert type(twin).__name__ == "Named" and isinstance(twin, GraphModule) and not twin.training
    assert twin.graph.owning_module is twin


def test_deepcopy_copies_modules():
    graph = Graph()
    graph.output(graph.call_module("scale", (graph.placeholder("x"),)))
    module = GraphModule(Root(), graph)
    twin = copy.deepcopy(module)
    twin.scale.factor = 100
    assert module(1) == 2 and twin(1) == 100


def test_submodules():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("scale", (x,)))
    module = GraphModule(Root(), graph)
    assert module.add_submodule("a.b", Scale()) and module.add_submodule("scale.part", Scale())
    assert not module.add_submodule("a.b.factor.c", Scale())
    assert [name for name, _ in module.named_modules()] == ["", "scale", "scale.part", "a", "a.b"]
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "scale", "scale.part"]
    assert module.delete_submodule("scale.part") and not module.delete_submodule("nowhere.at")


def test_subclass_and_forward_hooks():
    class Mine(GraphModule):
        pass

    graph = Graph()
    graph.output(graph.placeholder("x"))
    module = Mine({}, graph)
    module.register_forward_hook(lambda owner, args, output: output + 1)
    assert isinstance(module, Mine) and module(1) == 2


@pytest.mark.oracle
def test_same_code_as_torch():
    torch = pytest.importorskip("torch")

    def build_both(graph_type, module_type):
        graph = graph_type()
        x, y = graph.placeholder("x"), graph.placeholder("y", default_value=3)
        total = graph.call_function(operator.add, (x, y))
        item = graph.call_function(operator.getitem, (total, (slice(1, None, None), 0, None)))
        relu = graph.call_method("relu", (total,), {"k": [total, {"z": item}]})
        root = graph.call_function(math.sqrt, (relu,))
        shape = graph.call_function(getattr, (root, "shape"))
        graph.call_function(max, (shape, float("inf")))
        graph.output({"a": (shape, [relu])})
        return module_type({}, graph)

    ours, theirs = build_both(Graph, GraphModule), build_both(torch.fx.Graph, torch.fx.GraphModule)
    assert ours.code.strip() == theirs.code.strip()
    torch_text = theirs.print_readable(print_output=False)
    assert ours.print_readable(print_output=False).strip() == torch_text.strip()
