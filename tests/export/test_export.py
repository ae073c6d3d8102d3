"""`torch.export.export`: programs give eager's values, check their inputs, and have PyTorch's signatures."""

from __future__ import annotations

import copy
import math

import pytest

import rushlight
from rushlight.core.pytree import tree_flatten, tree_map
from rushlight.export import Dim, UserError, export
from tests.export.programs import PROGRAMS


def _copied(value):
    return tree_map(lambda leaf: leaf.clone() if hasattr(leaf, "clone") else leaf, value)


def _exported(name, lib=rushlight, strict=False):
    lib.manual_seed(0)
    module, args, kwargs, shapes = PROGRAMS[name](lib)
    return module, args, kwargs, lib.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=strict)


def _assert_equal(found, wanted):
    found, spec = tree_flatten(found)
    wanted, wanted_spec = tree_flatten(wanted)
    assert spec == wanted_spec
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, rushlight.Tensor):
            rushlight.testing.assert_close(one, other)
        else:
            assert one == other


@pytest.mark.parametrize("decomposed", [False, True], ids=["as traced", "decomposed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_and_writes_what_eager_does(name, decomposed):
    module, args, kwargs, program = _exported(name)
    before = copy.deepcopy(module.state_dict())
    program = program.run_decompositions() if decomposed else program
    eager_args, own_args = _copied(args), _copied(args)
    wanted = copy.deepcopy(module)(*eager_args, **kwargs)
    eager_state = copy.deepcopy(module)
    eager_state(*_copied(args), **kwargs)
    found = program.module()(*own_args, **kwargs)
    _assert_equal(found, wanted)
    _assert_equal(own_args, eager_args)
    for key, value in eager_state.state_dict().items():
        rushlight.testing.assert_close(program.state_dict[key], value)
    assert before.keys() == program.state_dict.keys()


@pytest.mark.parametrize("name", ["mlp_open", "convolutions", "encoder", "views_written"])
def test_open_sizes_serve_other_sizes(name):
    module, args, kwargs, program = _exported(name)
    x = rushlight.randn(7, *args[0].shape[1:])
    for made in (program, program.run_decompositions()):
        _assert_equal(made.module()(x), module(x))


@pytest.mark.parametrize("name", PROGRAMS)
def test_strict_export_gives_the_same_program(name):
    assert str(_exported(name)[3].graph_signature) == str(_exported(name, strict=True)[3].graph_signature)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_flow_to_the_parameters(name):
    module, args, kwargs, program = _exported(name)
    parameters = list(program.parameters())
    results = [leaf for leaf in tree_flatten(program.module()(*args, **kwargs))[0] if isinstance(leaf, rushlight.Tensor)]
    if parameters:
        found = rushlight.autograd.grad(sum(result.sum() for result in results), parameters)
        assert all(gradient.shape == parameter.shape for gradient, parameter in zip(found, parameters, strict=True))


def test_mutations_are_outputs_of_the_functional_graph():
    signature = _exported("counter")[3].run_decompositions().graph_signature
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    assert list(signature.user_inputs_to_mutate.values()) == ["x"]
    program = _exported("batch_norm_in_training")[3].run_decompositions()
    assert not any(node.target.is_mutable for node in program.graph.nodes if hasattr(node.target, "is_mutable"))


def test_parameters_buffers_and_constants():
    module, _, _, program = _exported("counter")
    assert dict(program.named_parameters()) == {"weight": module.weight}
    assert [name for name, _ in program.named_buffers()] == ["count", "hidden"]
    assert [buffer is module.get_buffer(name) for name, buffer in program.named_buffers()] == [True, True]
    assert sorted(program.constants) == ["constant", "hidden", "lifted_tensor_0"]
    assert sorted(program.state_dict) == sorted(program.module().state_dict()) == ["count", "weight"]
    assert program.example_inputs[1] == {"scale": 3}


@pytest.mark.parametrize("args, kwargs, text", [
    ((rushlight.ones(2, 5),), {}, r"input.size\(\)\[1\] == 4, got 5"),
    ((rushlight.ones(9, 4),), {}, r"input.size\(\)\[0\] <= 8, got 9"),
    ((rushlight.ones(4),), {}, r"input.dim\(\) == 2, got 1"),
    ((rushlight.ones(2, 4, dtype=rushlight.float64),), {}, r"input.dtype == torch.float32"),
    (("no",), {}, r"isinstance\(input, torch.Tensor\), got str"),
])  # fmt: skip
def test_a_wrong_input_is_named(args, kwargs, text):
    module, example, _, _ = PROGRAMS["mlp"](rushlight)
    program = export(module, example, dynamic_shapes={"input": {0: Dim("batch", max=8)}})
    with pytest.raises(AssertionError, match=text):
        program.module()(*args, **kwargs)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(*args)


def test_a_wrong_structure_and_a_wrong_constant_are_errors():
    _, args, kwargs, program = _exported("counter")
    with pytest.raises(ValueError, match="input tree spec"):
        program.module()(*args)
    with pytest.raises(AssertionError, match="scale == 3, got 4"):
        program.module()(*args, scale=4)


class _Branch(rushlight.nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # the line to name
            return x
        return -x


@pytest.mark.parametrize("strict", [False, True])
def test_a_branch_on_values_names_the_line(strict):
    with pytest.raises(RuntimeError, match="the line to name"):
        export(_Branch(), (rushlight.ones(2),), strict=strict)


class _Fixed(rushlight.nn.Module):
    def forward(self, x):
        return x.reshape(2, 6) if x.shape[0] == 4 else x


def test_open_sizes_that_the_program_fixes():
    x = rushlight.ones(4, 3)
    with pytest.raises(UserError, match=r"Suggested fixes:\n  batch = 4"):
        export(_Fixed(), (x,), dynamic_shapes={"x": {0: Dim("batch")}})
    program = export(_Fixed(), (x,), dynamic_shapes={"x": {0: Dim.AUTO}})
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] == 4"):
        program.module()(rushlight.ones(5, 3))
    with pytest.raises(UserError):
        export(_Fixed(), (x,), dynamic_shapes={"x": {0: Dim.DYNAMIC}})


class _Equal(rushlight.nn.Module):
    def forward(self, x, y):
        return x + y


def test_sizes_of_one_name_are_equal():
    batch = Dim("batch", min=2, max=16)
    args = rushlight.ones(4), rushlight.ones(4)
    program = export(_Equal(), args, dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    assert str(program.range_constraints) == "{s0: VR[2, 16]}"
    with pytest.raises(AssertionError, match=r"y.size\(\)\[0\]"):
        program.module()(rushlight.ones(5), rushlight.ones(6))
    with pytest.raises(UserError, match="must always be equal"):
        export(_Equal(), args, dynamic_shapes={"x": {0: Dim("a")}, "y": {0: Dim("b")}})


def test_wrong_arguments_of_export():
    with pytest.raises(ValueError, match="instance of `torch.nn.Module`"):
        export(lambda x: x, (rushlight.ones(2),))
    with pytest.raises(TypeError, match="tuple"):
        export(_Equal(), [rushlight.ones(2)])
    with pytest.raises(UserError, match="top-level keys"):
        export(_Equal(), (rushlight.ones(2), rushlight.ones(2)), dynamic_shapes={"z": None})


def test_is_exporting():
    seen = []

    class Asks(rushlight.nn.Module):
        def forward(self, x):
            seen.append(rushlight.compiler.is_exporting())
            return x + 1

    export(Asks(), (rushlight.ones(2),))
    assert seen == [True]
    assert not rushlight.compiler.is_exporting()


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_signature_is_pytorchs(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.export")
    ours, theirs = (_exported(name, lib)[3].graph_signature for lib in (rushlight, torch))
    assert [str(spec) for spec in ours.input_specs] == [str(spec) for spec in theirs.input_specs]
    assert [spec.kind.name for spec in ours.output_specs] == [spec.kind.name for spec in theirs.output_specs]


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_functional_signature_is_pytorchs(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.export")
    ours, theirs = (_exported(name, lib)[3].run_decompositions().graph_signature for lib in (rushlight, torch))
    assert sorted(str(spec) for spec in ours.input_specs) == sorted(str(spec) for spec in theirs.input_specs)
    assert [(spec.kind.name, spec.target) for spec in ours.output_specs if spec.target] == [
        (spec.kind.name, spec.target) for spec in theirs.output_specs if spec.target
    ]


def test_captures_ask_whether_a_program_is_exported():
    class Asking(rushlight.nn.Module):
        def forward(self, x):
            return x * 2 if rushlight.compiler.is_exporting() else x * 3

    x = rushlight.ones(2)
    assert rushlight.compile(Asking(), fullgraph=True)(x).tolist() == [3.0, 3.0]
    assert export(Asking(), (x,), strict=True).module()(x).tolist() == [2.0, 2.0]


def test_arguments_without_effect_warn():
    with pytest.warns(UserWarning, match="have no effect"):
        export(rushlight.nn.Linear(1, 1), (rushlight.ones(1, 1),), preserve_module_call_signature=("",))


def test_compiling_the_module_leaves_the_sizes_of_the_program_open():
    class Shifted(rushlight.nn.Module):
        def forward(self, x):
            return x.sin() + 1

    program = export(Shifted(), (rushlight.randn(8, 3, 5),), dynamic_shapes={"x": {0: Dim("a"), 2: Dim("b")}})
    module = program.module()
    compiled = rushlight.compile(module, fullgraph=True)
    for sizes in ((8, 3, 5), (4, 3, 7), (2, 3, 9)):
        x = rushlight.randn(*sizes)
        rushlight.testing.assert_close(compiled(x), x.sin() + 1)
        rushlight.testing.assert_close(module(x), x.sin() + 1)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] == 3, got 4"):
        module(rushlight.randn(2, 4, 9))


class OpenFloats(rushlight.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        scaled = x / n**0.5 + rushlight.full((2,), 1 / n).sum() + rushlight.tensor([n, 0.5 * n]).sum()
        return scaled + math.floor(n * 0.5) + rushlight.linspace(0, n / 2, n).sum(), n * 0.25


def _open_floats():
    program = export(OpenFloats(), (rushlight.ones(3, 4),), dynamic_shapes=({0: Dim("n")},))
    other = rushlight.rand(5, 4)
    return program, other, OpenFloats()(other)


@pytest.mark.parametrize("decomposed", [False, True])
def test_floats_that_follow_from_open_sizes_stay_open(decomposed):
    program, other, wanted = _open_floats()
    assert "** 0.5" in program.graph_module.code and "1 / sym_size" in program.graph_module.code
    assert type(program.graph_signature.output_specs[1].arg).__name__ == "SymFloatArgument"
    _assert_equal((program.run_decompositions() if decomposed else program).module()(other), wanted)


def test_open_floats_are_saved_and_exported_again(tmp_path):
    program, other, wanted = _open_floats()
    rushlight.export.save(program, tmp_path / "program.pt2")
    _assert_equal(rushlight.export.load(tmp_path / "program.pt2").module()(other), wanted)
    again = export(program.module(), (rushlight.ones(3, 4),), dynamic_shapes=({0: Dim("n")},))
    _assert_equal(again.module()(other), wanted)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: rushlight.tensor(n), lambda n: rushlight.tensor([[n, 7], [1, n * 2]]), lambda n: rushlight.as_tensor([n]),
        lambda n: rushlight.tensor([n], dtype=rushlight.float64), lambda n: rushlight.ones(2).new_tensor([n, 0.5]),
        lambda n: rushlight.tensor(n * 0.5), lambda n: rushlight.asarray([n, True]), lambda n: rushlight.LongTensor([n]),
    ],
)  # fmt: skip
def test_tensors_of_open_sizes_stay_open(make):
    class Made(rushlight.nn.Module):
        def forward(self, x):
            return make(x.shape[0]) + x.sum().to(rushlight.int64)

    program = export(Made(), (rushlight.zeros(3),), dynamic_shapes=({0: Dim("n")},))
    found, wanted = program.module()(rushlight.zeros(5)), make(5)
    assert found.dtype == rushlight.result_type(wanted, rushlight.tensor(0))
    _assert_equal(found, wanted)


def test_a_size_that_the_program_fixed_is_named():
    class Fixed(rushlight.nn.Module):
        def forward(self, x):
            return x * float(x.shape[0])

    program = export(Fixed(), (rushlight.ones(3),), dynamic_shapes=({0: Dim.AUTO},))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 3, got 5"):
        program.module()(rushlight.ones(5))


class FloatFromValues(rushlight.nn.Module):
    def forward(self, x):
        s = x.abs().max().item()
        return x / s, rushlight.full((2,), s * 2), rushlight.tensor([s, 1.0]), x.shape[0] * s


@pytest.mark.parametrize("decomposed", [False, True])
def test_floats_that_values_decide_are_kept(decomposed, tmp_path):
    program = export(FloatFromValues(), (rushlight.ones(4),), dynamic_shapes=({0: Dim("n")},))
    program = program.run_decompositions() if decomposed else program
    other = rushlight.tensor([1.0, 2, -3, 4, 5])
    _assert_equal(program.module()(other), FloatFromValues()(other))
    rushlight.export.save(program, tmp_path / "program.pt2")
    _assert_equal(rushlight.export.load(tmp_path / "program.pt2").module()(other), FloatFromValues()(other))


def test_branches_on_floats_that_values_decide_are_refused():
    class Branches(rushlight.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum().item() > 2 else x

    with pytest.raises(UserError, match=r"which the program computes[\s\S]*x.sum\(\).item\(\) > 2"):
        export(Branches(), (rushlight.ones(4),))


def test_writes_before_sizes_that_values_decide_are_made_functional():
    class Writes(rushlight.nn.Module):
        def forward(self, x):
            y = x.clone().clamp_(min=0)
            return rushlight.where(y > 0)[0], y[y > 0]

    program = export(Writes(), (rushlight.ones(4),), dynamic_shapes=({0: Dim("n")},)).run_decompositions()
    other = rushlight.tensor([1.0, -2.0, 3.0])
    _assert_equal(program.module()(other), Writes()(other))


def test_writes_to_tensors_whose_sizes_values_decide_are_made_functional():
    class Writes(rushlight.nn.Module):
        def forward(self, x):
            chosen = x[x > 0].clone()
            chosen.mul_(2)
            return chosen, rushlight.where(chosen > 2)[0]

    program = export(Writes(), (rushlight.ones(4),), dynamic_shapes=({0: Dim("n")},)).run_decompositions()
    other = rushlight.tensor([1.0, -2.0, 3.0])
    _assert_equal(program.module()(other), Writes()(other))
