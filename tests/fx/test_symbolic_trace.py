"""symbolic_trace, Transformer, replace_pattern and packages: what torch.fx documents of them."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import operator
import pickle
import sys
import threading

import pytest

import rushlight as rl
from rushlight import fx, nn
from rushlight.core.pytree import tree_flatten
from rushlight.nn import functional as F


def calls(graph: fx.Graph) -> list[tuple[str, object]]:
    """Opcode and target of the calls of a graph."""
    return [(node.op, node.target) for node in graph.nodes if node.op.startswith("call") or node.op == "get_attr"]


@fx.wrap
def left_whole(value, factor):
    """Recorded as one call although it branches."""
    return value * factor if factor > 0 else value


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(rl.full((4,), 2.0))
        self.register_buffer("offset", rl.ones(4))
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x, power=2):
        hidden = F.gelu(self.linear(x)) * self.scale + self.offset
        first, second = hidden.split(2, dim=-1)
        return self.tail(hidden**power), (first - second).sum(dim=-1), x.shape[0]


def test_a_module_becomes_its_calls():
    module = Block()
    traced = fx.symbolic_trace(module)
    names = [str(target) for op, target in calls(traced.graph) if op in ("call_module", "get_attr")]
    assert names == ["linear", "scale", "offset", "tail.0", "tail.1"]
    assert ("call_function", F.gelu) in calls(traced.graph)
    x = rl.randn(3, 4)
    for got, wanted in zip(traced(x), module(x), strict=True):
        assert got == wanted if isinstance(wanted, int) else rl.equal(got, wanted)
    assert traced.graph.find_nodes(op="placeholder")[1].args == (2,)
    traced.graph.lint()


def test_operators_methods_and_attributes_are_recorded():
    def program(x, y):
        z = -x + 2 * y - 1
        z = z @ y.T
        z[0] = 3.0
        return z.relu().mean(), x[:, 1:], x.dtype, 1 / y, abs(x), x >= y

    traced = fx.symbolic_trace(program)
    targets = [target for _, target in calls(traced.graph)]
    for wanted in (operator.neg, operator.matmul, operator.setitem, "relu", "mean", getattr, operator.truediv, operator.ge):
        assert wanted in targets
    x, y = rl.randn(3, 3), rl.randn(3, 3)
    for got, wanted in zip(traced(x.clone(), y), program(x.clone(), y), strict=True):
        assert got is wanted or rl.equal(got, wanted)


def test_functions_of_the_library_are_leaves():
    traced = fx.symbolic_trace(lambda x: rl.cat([F.softmax(x, dim=-1), rl.add(x, 1)]))
    assert [target for _, target in calls(traced.graph)] == [F.softmax, rl.add, rl.cat]


def test_control_flow_on_a_traced_value_is_an_error():
    with pytest.raises(fx.TraceError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(fx.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: [row for row in x])
    with pytest.raises(RuntimeError, match=r"'len' is not supported in symbolic tracing by default.*fx.wrap"):
        fx.symbolic_trace(lambda x: len(x))
    with pytest.raises(TypeError, match="indices must be integers"):
        fx.symbolic_trace(lambda x: [1, 2, 3][x])
    for ask in (lambda x: int(x), lambda x: float(x), lambda x: complex(x), lambda x: range(x)):
        with pytest.raises(TypeError, match="Proxy"):
            fx.symbolic_trace(ask)


def test_unpacking_a_known_number_of_items_is_recorded():
    def program(x):
        a, b = x.chunk(2)
        return a + b

    x = rl.arange(4.0)
    assert fx.symbolic_trace(program)(x).tolist() == [2, 4]


def test_concrete_arguments_are_fixed():
    def program(x, flag, sizes):
        return x + sizes[0] if flag else x - sizes[1]

    traced = fx.symbolic_trace(program, concrete_args={"flag": True, "sizes": (fx.PH, 5)})
    assert [node.target for node in traced.graph.find_nodes(op="placeholder")] == ["x", "flag", "sizes"]
    assert traced(rl.ones(2), True, (3.0, 5)).tolist() == [4, 4]
    for wrong in ((False, (3.0, 5)), (True, (3.0, 6))):
        with pytest.raises(AssertionError, match="has been specialized to have value"):
            traced(rl.ones(2), *wrong)
    with pytest.raises(RuntimeError, match="no parameters of"):
        fx.symbolic_trace(program, concrete_args={"nothing": 1})


def test_variadic_parameters_are_one_value_each():
    def program(x, *args, scale=2.0, **kwargs):
        return x * scale + args[0] + kwargs["bias"]

    traced = fx.symbolic_trace(program)
    targets = [node.target for node in traced.graph.find_nodes(op="placeholder")]
    assert targets == ["x", "scale", "*args", "**kwargs"]


def test_wrapped_functions_are_one_call():
    traced = fx.symbolic_trace(lambda x: left_whole(x, x.sum()))
    assert [target for _, target in calls(traced.graph)][-1].__name__ == "left_whole"
    assert traced(rl.tensor([1.0, 2.0])).tolist() == [3, 6]
    assert left_whole(rl.tensor(2.0), 3) == 6
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("max")


def test_math_functions_of_traced_values_are_recorded():
    traced = fx.symbolic_trace(lambda x: x * math.sqrt(x.shape[0]))
    assert traced(rl.ones(4)).tolist() == [2, 2, 2, 2]


def test_leaves_are_the_tracers_choice():
    class Opaque(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, nn.Sequential)

    module = Block()
    graph = Opaque().trace(module)
    assert ("call_module", "tail") in calls(graph)
    assert ("call_function", F.linear) in calls(graph)
    x = rl.randn(2, 4)
    assert rl.equal(fx.GraphModule(module, graph)(x)[0], module(x)[0])


def test_tensors_made_outside_become_constants():
    offset = rl.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x + offset)
    assert traced._tensor_constant0 is offset
    assert traced(rl.zeros(2)).tolist() == [1, 2]


def test_a_foreign_parameter_is_an_error():
    weight = nn.Parameter(rl.ones(2))
    with pytest.raises(NameError, match="parameter is not a member of this module"):
        fx.symbolic_trace(lambda x: x * weight)


def test_other_threads_are_not_traced():
    module, seen = nn.Linear(2, 2), []

    class Slow(nn.Module):
        def forward(self, x):
            worker = threading.Thread(target=lambda: seen.append(module(rl.ones(1, 2))))
            worker.start()
            worker.join()
            return x + 1

    fx.symbolic_trace(Slow())
    assert type(seen[0]) is rl.Tensor


def test_transformer_rewrites_while_running():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(rl.sigmoid if target is rl.neg else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("neg" if target == "sigmoid" else target, args, kwargs)

    traced = fx.symbolic_trace(lambda x, y=2: rl.neg(x).sigmoid() + y)
    swapped = Swap(traced).transform()
    x = rl.tensor([0.5])
    assert rl.equal(swapped(x), -rl.sigmoid(x) + 2)
    module = Block()
    same = fx.Transformer(fx.symbolic_trace(module)).transform()
    assert rl.equal(same(rl.ones(1, 4))[0], module(rl.ones(1, 4))[0])


def test_replace_pattern_replaces_every_match():
    def program(x, w):
        a = rl.cat([x, w]).sum() + 1
        return rl.cat([w, x]).sum() + a

    traced = fx.symbolic_trace(program)
    matches = fx.replace_pattern(traced, lambda a, b: rl.cat([a, b]).sum(), lambda a, b: a.sum() - b.sum())
    assert len(matches) == 2 and all(match.anchor.target == "sum" for match in matches)
    x, w = rl.tensor([1.0]), rl.tensor([5.0])
    assert traced(x, w) == (5 - 1) + (1 - 5) + 1


def test_replace_pattern_leaves_values_that_are_used_elsewhere():
    def program(x):
        inner = x.neg()
        return inner.relu() + inner

    traced = fx.symbolic_trace(program)
    assert fx.replace_pattern(traced, lambda a: a.neg().relu(), lambda a: a) == []
    assert traced(rl.tensor([-2.0])) == 4


def test_replace_pattern_in_a_chain():
    traced = fx.symbolic_trace(lambda x: x + 1 + 1 + 1)
    assert len(fx.replace_pattern(traced, lambda a: a + 1, lambda a: a * 2)) == 3
    assert traced(rl.tensor(1.0)) == 8
    with pytest.raises(RuntimeError, match="inputs"):
        fx.replace_pattern(traced, lambda a: a * 2, lambda a, b: a * b)


def test_a_traced_module_pickles_and_copies():
    module = fx.symbolic_trace(Block())
    x = rl.randn(2, 4)
    for other in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert rl.equal(other(x)[0], module(x)[0])


def test_to_folder_writes_a_package(tmp_path, monkeypatch):
    module = fx.symbolic_trace(Block())
    module.to_folder(tmp_path / "written_block", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("written_block").Written()
    x = rl.randn(2, 4)
    assert rl.equal(made(x)[0], module(x)[0])
    sys.modules.pop("written_block", None)
    with pytest.raises(ValueError, match="identifier"):
        module.to_folder(tmp_path / "other", "not a name")


@pytest.mark.oracle
def test_graphs_are_those_of_torch():
    torch = pytest.importorskip("torch")

    def program(library):
        functional = library.nn.functional

        class Model(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = library.nn.Conv2d(3, 4, 3)
                self.norm = library.nn.BatchNorm2d(4)
                self.gain = library.nn.Parameter(library.ones(4))

            def forward(self, x, y=1.0):
                x = functional.relu(self.norm(self.conv(x)))
                a, b = x.mean((2, 3)).chunk(2, dim=1)
                return library.add(a * self.gain[:2], b, alpha=2).view(x.shape[0], -1) / y

        return Model()

    ours, theirs = (library.fx.symbolic_trace(program(library)).graph for library in (rl, torch))
    assert [(node.op, node.name, str(node.args)) for node in ours.nodes] == [
        (node.op, node.name, str(node.args)) for node in theirs.nodes
    ]


def test_what_was_traced_is_traced_again():
    traced = fx.symbolic_trace(lambda x: left_whole(x, 2) + x)
    for _ in range(2):
        traced = fx.symbolic_trace(traced)
    assert [target for _, target in calls(traced.graph)][0].__name__ == "left_whole"
    outer = rl.nn.Sequential(traced, rl.nn.ReLU())
    assert [target for _, target in calls(fx.symbolic_trace(outer).graph)][0].__name__ == "left_whole"


def test_arguments_fixed_to_none_and_in_dicts():
    def program(x, options, bias=None):
        found = x * options["scale"] + options["shift"]
        return found if bias is None else found + bias

    traced = fx.symbolic_trace(program, concrete_args={"options": {"scale": fx.PH, "shift": 1}, "bias": None})
    x = rl.ones(2)
    assert traced(x, {"scale": 3, "shift": 1}).tolist() == [4, 4]
    for wrong in (({"scale": 3, "shift": 2},), ({"scale": 3, "shift": 1}, x)):
        with pytest.raises(AssertionError, match="has been specialized to have value"):
            traced(x, *wrong)
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        fx.symbolic_trace(lambda x, function: function(x), concrete_args={"function": rl.sin})


def test_asserts_are_recorded_and_kept():
    def program(x):
        rl._assert(x.sum() > 0, "the sum must be positive")
        return x + 1

    traced = fx.symbolic_trace(program)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(rl.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="must be positive"):
        traced(-rl.ones(2))


@pytest.mark.parametrize("call", [
    lambda x: rl.einsum("i,i->i", x, x), lambda x: rl.tensordot(x, x, dims=1), lambda x: rl.meshgrid(x, x, indexing="ij"),
    lambda x: rl.norm(x), lambda x: rl.cdist(x[None], x[None]), lambda x: rl.unique(x), lambda x: rl.block_diag(x, x),
    lambda x: rl.cartesian_prod(x, x), lambda x: rl.broadcast_tensors(x, x), lambda x: rl.atleast_2d(x),
    lambda x: rl.nonzero(x), lambda x: rl.unique_consecutive(x), lambda x: rl.result_type(x, 1),
])  # fmt: skip
def test_functions_of_several_operators_are_one_call(call):
    traced, x = fx.symbolic_trace(call), rl.tensor([1.0, 2.0, 2.0])
    assert len(calls(traced.graph)) <= 3
    found, wanted = tree_flatten(traced(x))[0], tree_flatten(call(x))[0]
    assert all(rl.equal(one, other) if isinstance(one, rl.Tensor) else one is other for one, other in zip(found, wanted, strict=True))


def test_what_cannot_be_an_argument():
    @dataclasses.dataclass
    class Box:
        held: object

    for program in (lambda x: [x, object()], lambda x: (x, rl.sin), lambda x: {"kind": int}):
        with pytest.raises(NotImplementedError, match="argument of type"):
            fx.symbolic_trace(program)
    traced = fx.symbolic_trace(lambda x: Box(x + 1))
    assert traced(rl.ones(1)).held.tolist() == [2]


def test_a_pattern_of_two_inputs_is_not_one_value_twice():
    traced = fx.symbolic_trace(lambda x, y: (x + x) * (x + y))
    assert len(fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a - b)) == 1
    assert traced(rl.ones(1), rl.ones(1)).tolist() == [0]


def test_unused_modules_go_even_where_a_used_one_is_gone():
    traced = fx.symbolic_trace(rl.nn.Sequential(rl.nn.Linear(2, 2), rl.nn.ReLU()))
    traced.add_submodule("extra.inner", rl.nn.ReLU())
    traced.delete_submodule("1")
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "0"]


def test_operands_of_einsum_in_a_sequence_are_traced():
    for call in (lambda a, b: rl.einsum("ij,jk->ik", [a, b]), lambda a, b: rl.einsum("ij,jk->ik", (a, b))):
        traced = fx.symbolic_trace(call)
        a, b = rl.randn(2, 3), rl.randn(3, 2)
        assert rl.allclose(traced(a, b), a @ b) and "einsum" in traced.code


def test_only_functions_that_write_are_refused():
    class Pure(fx.Tracer):
        check_mutable_operations = True

    assert Pure().trace(lambda x: rl.relu(x).fill_(0)) is not None
    with pytest.raises(RuntimeError, match="mutable operation"):
        Pure().trace(lambda x: rl.relu_(x))


def test_calls_with_out_are_recorded():
    traced = fx.symbolic_trace(lambda x, y: rl.add(x, 1, out=y))
    target = rl.zeros(2)
    assert traced(rl.ones(2), target) is target and target.tolist() == [2, 2]

    class Pure(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="mutable operation aten::sigmoid.out"):
        Pure().trace(lambda x: rl.sigmoid(x, out=rl.rand_like(x)))


def test_scripted_modules_are_called_as_methods():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = rl.jit.script(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner(x)

    held, x = Holder(), rl.ones(2)
    traced = fx.symbolic_trace(held)
    assert ("call_method", "forward") in calls(traced.graph) and rl.equal(traced(x), held(x))


def test_nodes_that_do_not_fit_a_graph():
    traced = fx.symbolic_trace(nn.Linear(2, 2))
    copied = fx.Graph()
    for node in traced.graph.nodes:
        copied.node_copy(node)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        copied.lint()
    with pytest.raises(ValueError, match="must be callable"):
        fx.Node(copied, "wrong", "call_function", "name")
    with pytest.warns(UserWarning, match="no underlying reference"):
        traced.graph.get_attr("absent")


def test_generated_code_names_the_traced_file():
    traced = fx.symbolic_trace(lambda x: x + 1)
    assert "test_symbolic_trace.py" in traced.forward.__code__.co_filename
    assert rl.typename(rl.log_).endswith("log_") and rl.typename(3) == "int"
