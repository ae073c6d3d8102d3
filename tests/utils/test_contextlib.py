"""Contexts that decorate functions and generators, tensors that change places, groups of tensors, and other helpers of utils."""

from __future__ import annotations

import weakref

import pytest

import rushlight as torch
from rushlight.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype


class Noting(_DecoratorContextManager):
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        self.seen.append("in")

    def __exit__(self, *error):
        self.seen.append("out")

    def clone(self):
        return type(self)(self.seen)


def test_functions_and_generators_run_in_a_context():
    seen = []

    @Noting(seen)
    def function(x):
        seen.append(x)
        return x + 1

    @Noting(seen)
    def generator():
        got = yield 1
        seen.append(got)
        return "end"

    assert function(1) == 2 and seen == ["in", 1, "out"]
    seen.clear()
    made = generator()
    assert next(made) == 1 and seen == ["in", "out"]
    with pytest.raises(StopIteration) as end:
        made.send("sent")
    assert end.value.value == "end" and seen == ["in", "out", "in", "sent", "out"]
    assert context_decorator(lambda: Noting(seen), lambda: 5)() == 5


def test_contexts_without_arguments_decorate_as_classes():
    seen = []

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    @Plain
    def function():
        return 1

    assert function() == 1 and seen == ["in", "out"]
    with Plain():
        assert seen[-1] == "in"


def test_tensors_change_places():
    a, b = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    a.note = "a"
    kept = a
    torch.utils.swap_tensors(a, b)
    assert kept.shape == (3,) and type(kept) is torch.nn.Parameter and b.tolist() == [1.0, 1.0] and b.note == "a"
    assert not hasattr(a, "note") and b.requires_grad
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1"):
        torch.utils.swap_tensors(a, b)
    assert reference() is a


def test_groups_of_tensors():
    x, y, z = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
    groups = _group_tensors_by_device_and_dtype([[x, y, z], [None, x, y]], with_indices=True)
    assert {kind: ([[id(each) for each in part] for part in lists], places) for (_, kind), (lists, places) in groups.items()} == {
        torch.float32: ([[id(x), id(z)], [id(None), id(y)]], [0, 2]), torch.float64: ([[id(y)], [id(x)]], [1]),
    }  # fmt: skip
    with pytest.raises(ValueError, match="of one length"):
        _group_tensors_by_device_and_dtype([[x], []])


def test_variables_are_tensors():
    x = torch.ones(2)
    made = torch.autograd.Variable(x, requires_grad=True)
    assert made.requires_grad and made.data_ptr() == x.data_ptr() and isinstance(x, torch.autograd.Variable)
    with pytest.raises(TypeError, match="has to be a tensor"):
        torch.autograd.Variable([1.0])


def test_sobol_points():
    engine = torch.quasirandom.SobolEngine(3)
    first = engine.draw(4)
    assert first.tolist() == [[0.0] * 3, [0.5] * 3, [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]] and engine.num_generated == 4
    assert engine.reset().fast_forward(2).draw(2).equal(first[2:])
    scrambled = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
    assert scrambled.draw_base2(3).shape == (8, 2) and repr(scrambled) == "SobolEngine(dimension=2, scramble=True, seed=1)"
    with pytest.raises(ValueError, match="power of 2"):
        scrambled.draw_base2(1)
    with pytest.raises(ValueError, match="dimensionality"):
        torch.quasirandom.SobolEngine(0)


def test_unsafe_globals_of_a_checkpoint(tmp_path):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "whole")
    torch.save({"a": torch.ones(1)}, tmp_path / "plain")
    find = torch.serialization.get_unsafe_globals_in_checkpoint
    assert find(tmp_path / "whole") == ["torch.nn.modules.linear.Linear"] and find(tmp_path / "plain") == []
    with torch.serialization.safe_globals([torch.nn.Linear]):
        assert find(tmp_path / "whole") == []
    layers = [torch.nn.Linear(1, 1), torch.nn.Bilinear(1, 1, 1), torch.nn.Linear(1, 1)]
    torch.save(layers, tmp_path / "fourth", pickle_protocol=4)  # which writes a repeated text once
    assert find(tmp_path / "fourth") == ["torch.nn.modules.linear.Bilinear", "torch.nn.modules.linear.Linear"]
    (tmp_path / "text").write_text("no checkpoint")
    with pytest.raises(ValueError, match="zip format"):
        find(tmp_path / "text")


def test_what_is_built_and_classes_that_are_not_there():
    assert "Rushlight" in torch.__config__.show() and "Threads" in torch.__config__.parallel_info()
    with pytest.raises(RuntimeError, match="'foo.Bar', but it does not exist"):
        torch.classes.foo.Bar  # noqa: B018


def test_what_is_known_of_the_machine(capsys):
    from rushlight.utils import collect_env

    collect_env.main()
    shown = capsys.readouterr().out
    assert "(Rushlight)" in shown and "numpy==" in shown and collect_env.get_env_info().cuda_compiled_version == "None"
