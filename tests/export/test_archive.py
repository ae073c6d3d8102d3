"""`torch.export.save` and `load`: programs come back as they were, and damaged files are errors."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import zipfile

import pytest

import rushlight
from rushlight.core.pytree import tree_flatten
from rushlight.export import Dim, export, load, register_dataclass, save
from tests.export.programs import PROGRAMS


def _program(name):
    rushlight.manual_seed(0)
    module, args, kwargs, shapes = PROGRAMS[name](rushlight)
    return export(module, args, kwargs, dynamic_shapes=shapes)


def _content(program, **options):
    stream = io.BytesIO()
    save(program, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize("decomposed", [False, True], ids=["as traced", "decomposed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_comes_back(name, decomposed):
    program = _program(name)
    program = program.run_decompositions() if decomposed else program
    found = load(io.BytesIO(_content(program)))
    assert str(found) == str(program)
    assert found.call_spec == program.call_spec
    args, kwargs = program.example_inputs
    results = [tree_flatten(each.module()(*each.example_inputs[0], **kwargs))[0] for each in (found, program)]
    for one, other in zip(*results, strict=True):
        assert rushlight.equal(one, other) if isinstance(one, rushlight.Tensor) else one == other
    assert [parameter.requires_grad for parameter in found.parameters()] == [True] * len(list(program.parameters()))


def test_tied_parameters_stay_tied(tmp_path):
    save(_program("tied"), tmp_path / "tied.pt2")
    found = load(str(tmp_path / "tied.pt2"))
    assert found.state_dict["embed.weight"] is found.state_dict["head.weight"]


def test_open_sizes_are_checked_after_loading():
    program = export(rushlight.nn.ReLU(), (rushlight.ones(4),), dynamic_shapes={"input": {0: Dim("batch", max=8)}})
    module = load(io.BytesIO(_content(program))).module()
    assert module(rushlight.ones(7)).shape == (7,)
    with pytest.raises(AssertionError, match="<= 8, got 9"):
        module(rushlight.ones(9))


def test_extra_files():
    found = {"note": "", "absent": "kept"}
    load(io.BytesIO(_content(_program("mlp"), extra_files={"note": "text"})), extra_files=found)
    assert found == {"note": "text", "absent": "kept"}


def test_versions_of_operators_are_not_recorded():
    with pytest.warns(UserWarning, match="expected_opset_version has no effect"):
        load(io.BytesIO(_content(_program("mlp"))), expected_opset_version={"aten": 10})


@dataclasses.dataclass
class Pair:
    left: rushlight.Tensor
    right: rushlight.Tensor


class _Swap(rushlight.nn.Module):
    def forward(self, pair):
        return Pair(pair.right + 1, pair.left)


def test_dataclasses_as_inputs_and_outputs():
    register_dataclass(Pair)
    program = export(_Swap(), (Pair(rushlight.zeros(2), rushlight.ones(2)),))
    result = load(io.BytesIO(_content(program))).module()(Pair(rushlight.zeros(2), rushlight.ones(2)))
    assert type(result) is Pair and result.left.tolist() == [2, 2] and result.right.tolist() == [0, 0]


def test_complex_numbers_and_layouts_come_back():
    module = rushlight.nn.Module()
    module.register_buffer("numbers", rushlight.tensor([1 + 2j], dtype=rushlight.complex128))
    module.forward = lambda x: x.to(rushlight.float64) * module.numbers
    found = load(io.BytesIO(_content(export(module, (rushlight.ones(1),)))))
    assert found.module()(rushlight.ones(1)).tolist() == [1 + 2j]


def test_only_programs_can_be_saved():
    with pytest.raises(TypeError, match="ExportedProgram"):
        save(rushlight.nn.ReLU(), io.BytesIO())


def _changed(content, name, change):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(made, "w") as after:
        for entry in before.namelist():
            after.writestr(entry, change(before.read(entry)) if entry == name else before.read(entry))
    return io.BytesIO(made.getvalue())


def test_another_version_and_another_format_are_errors():
    content = _content(_program("mlp"))
    with pytest.raises(RuntimeError, match="version 99"):
        load(_changed(content, "version", lambda _: b"99"))
    with pytest.raises(RuntimeError, match="no file of torch.export.save"):
        load(_changed(content, "format", lambda _: b"else"))
    with pytest.raises(FileNotFoundError):
        load("/nowhere/at/all.pt2")


def test_damaged_files_are_errors():
    content, generator = _content(_program("counter")), random.Random(0)
    for end in range(0, len(content), 101):
        with pytest.raises(RuntimeError, match="not a valid exported program"):
            load(io.BytesIO(content[:end]))
    for _ in range(100):
        damaged = bytearray(content)
        damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        try:
            load(io.BytesIO(bytes(damaged)))
        except RuntimeError as error:
            assert "not a valid exported program" in str(error)


def _paths(value, path=()):
    yield path
    for key, child in (value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()):
        yield from _paths(child, (*path, key))


@pytest.mark.parametrize("value", [None, -1, "os.system", [], {}, {"node": "x"}, 1 << 70])
def test_forged_programs_are_errors_or_programs(value):
    content = _content(_program("mlp_open"))
    record = json.loads(zipfile.ZipFile(io.BytesIO(content)).read("program.json"))
    paths = list(_paths(record))
    for path in random.Random(0).sample(paths, min(len(paths), 60)):
        forged = json.loads(json.dumps({"whole": record}))
        owner = forged
        *parents, last = ("whole", *path)
        for key in parents:
            owner = owner[key]
        owner[last] = value
        text = json.dumps(forged["whole"]).encode()
        try:
            load(_changed(content, "program.json", lambda _, text=text: text))
        except RuntimeError as error:
            assert "not a valid exported program" in str(error)


class NumbersFromValues(rushlight.nn.Module):
    """Sizes that values decide, with bounds that are checked when the program runs."""

    def forward(self, x, i):
        n = i.max().item()
        rushlight._check(n >= 2)
        rushlight._check(n <= x.shape[0])
        chosen = x[x > 0]
        return rushlight.where(x > 0)[0], chosen.sum(), rushlight.zeros(n) + 1, x.narrow(0, 0, n), n * 2


@pytest.mark.parametrize("opened", [{0: Dim.AUTO}, None])
@pytest.mark.parametrize("decomposed", [False, True])
def test_programs_with_sizes_that_values_decide_come_back(tmp_path, opened, decomposed):
    example = rushlight.tensor([1.0, -1.0, 2.0, 3.0, 4.0]), rushlight.tensor([3, 1])
    program = export(NumbersFromValues(), example, dynamic_shapes=(opened, None))
    program = program.run_decompositions() if decomposed else program
    rushlight.export.save(program, tmp_path / "program.pt2")
    loaded = rushlight.export.load(tmp_path / "program.pt2").module()
    x, i = rushlight.tensor([4.0, -3.0, 2.0, -1.0, 1.0]), rushlight.tensor([2, 4])
    for found, wanted in zip(loaded(x, i), NumbersFromValues()(x, i), strict=True):
        rushlight.testing.assert_close(found, wanted)
    with pytest.raises(RuntimeError, match="u0 >= 2"):
        loaded(x, rushlight.tensor([1, 1]))
