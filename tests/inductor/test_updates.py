"""Updates of parameters and of their state: what reads the same tensors and is stored anyway shares a loop."""

from __future__ import annotations

import rushlight as torch
from tests.inductor.test_write_backs import check, program


def texts(function, *inputs):
    made, in_place = program(function, *inputs)
    return [" ".join(member.name for member in group.members) for group in made.groups], sorted(in_place.values())


def update(parameter, gradient, mean):
    parameter.add_(torch.sign(mean * 0.9 + gradient * 0.1), alpha=-0.01)
    mean.lerp_(gradient, 0.01)


def test_a_parameter_and_its_state_are_one_loop():
    inputs = [torch.randn(7, 5), torch.randn(7, 5), torch.randn(7, 5)]
    groups, in_place = texts(update, *inputs)
    assert len(groups) == 1 and in_place == ["arg0_1", "arg2_1"]
    check(update, *inputs)


def test_the_state_may_be_written_first():
    def backwards(parameter, gradient, mean):
        mean.lerp_(gradient, 0.01)
        parameter.add_(gradient, alpha=-0.01)

    inputs = [torch.randn(35), torch.randn(35), torch.randn(35)]
    assert texts(backwards, *inputs)[1] == ["arg0_1", "arg2_1"] and len(texts(backwards, *inputs)[0]) == 1
    check(backwards, *inputs)


def test_old_values_that_are_read_across_are_kept():
    def crossed(x, y):
        x_new, y_new = x + y.flip(0), y * 2 + x.flip(0)
        x.copy_(x_new)
        y.copy_(y_new)

    check(crossed, torch.randn(33), torch.randn(33))


def test_loops_that_share_nothing_or_differ_in_size_stay_apart():
    def separate(x, y, z, w):
        return x + 1, y + 1, z * w.sum(0), w - 1

    inputs = [torch.randn(6), torch.randn(6), torch.randn(6), torch.randn(4, 6)]
    groups, _ = texts(separate, *inputs)
    assert len(groups) == 4
    check(separate, *inputs)


def test_results_of_one_input_are_one_loop():
    def both(x, y):
        return x.sin(), y.cos(), x + y

    groups, _ = texts(both, torch.randn(6, 3), torch.randn(6, 3))
    assert len(groups) == 2
    check(both, torch.randn(6, 3), torch.randn(6, 3))
