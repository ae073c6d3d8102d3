"""Groups with equal kernels that one launch computes: which are, in what order, their text, and their numbers."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.inductor.codegen.triton import combined
from rushlight.inductor.codegen.triton.wrapper import grid_sizes
from tests.inductor.triton.interpreted import pieces_of


def updated(parameters, gradients, means):
    for parameter, gradient, mean in zip(parameters, gradients, means, strict=True):
        mean.lerp_(gradient, 0.1)
        parameter.sub_(mean / (mean.abs() + 1e-8))


def program_of(function, *inputs):
    ((_, program),) = pieces_of(function, *inputs)[1].programs
    return program


def vectors(*sizes, **options):
    torch.manual_seed(0)
    return [torch.randn(size, **options) for size in sizes]


def flat(function, count):
    """A function of lists as one of tensors."""

    def run(*given):
        return function(*(given[start : start + count] for start in range(0, len(given), count)))

    return run


def test_updates_are_one_launch():
    lists = [vectors(3000, 40, 4096) for _ in range(3)]
    program = program_of(flat(updated, 3), *sum(lists, []))
    kinds = [(launch.kind, len(launch.members)) for launch in program.launches]
    assert kinds == [("combined_pointwise", 2), ("pointwise", 0)]  # 3000 and 40 are multiples of 8, 4096 of more
    first = program.launches[0]
    assert len(first.parameters) == 6 and grid_sizes(first, {}) == (-(-3000 // first.choice.constants["XBLOCK"]) + 1,)


def test_the_text_of_a_combined_launch():
    program = program_of(
        lambda a, b, c, scale: (a * scale + 1, b * scale + 1, c * scale + 1), *vectors(48, 32, 64), torch.ones(())
    )
    assert (
        """
def combined_pointwise_mul_add_0(in_ptr1, in_ptr0_0, out_ptr0_0, in_ptr0_1, out_ptr0_1, in_ptr0_2, out_ptr0_2, XBLOCK: tl.constexpr):
    program = tl.program_id(0)
    end0 = ((48 + XBLOCK - 1) // XBLOCK)
    end1 = end0 + ((32 + XBLOCK - 1) // XBLOCK)
    if program < end0:
        in_ptr0 = in_ptr0_0
        out_ptr0 = out_ptr0_0
        number0 = 48
        begin = 0
    else:
        if program < end1:
            in_ptr0 = in_ptr0_1
            out_ptr0 = out_ptr0_1
            number0 = 32
            begin = end0
        else:
            in_ptr0 = in_ptr0_2
            out_ptr0 = out_ptr0_2
            number0 = 64
            begin = end1
    program = program - begin
    x = program * XBLOCK + tl.arange(0, XBLOCK)
    x_mask = x < number0
    tmp0 = tl.load(in_ptr0 + x, x_mask)
    tmp1 = tl.load(in_ptr1)
    tmp2 = tmp0 * tmp1
    tmp3 = tmp2 + 1.0
    tl.store(out_ptr0 + x, tmp3, x_mask)
"""
        in program.source
    )
    assert "launched together with group 1, 2" in str(program.groups[0])


def test_launches_have_a_limit_of_parameters(monkeypatch):
    monkeypatch.setattr(combined, "MAX_PARAMETERS", 9)
    program = program_of(lambda *given: tuple(each.sin() for each in given), *vectors(*range(16, 176, 16)))
    assert [len(launch.members) for launch in program.launches] == [4, 4, 2]


def test_groups_that_depend_on_each_other_stay_apart():
    def chain(a, b):
        first = (a.flip(0) * 2).sum() * a.sin()
        second = (b.flip(0) * 2).sum() * b.sin()
        return first, second, (first.flip(0) * 2).sum() * first.sin()

    program = program_of(chain, *vectors(64, 64))
    assert [len(launch.members) for launch in program.launches] == [2, 2, 0, 0]


def test_an_input_that_another_member_reads_is_not_overwritten():
    def crossed(a, b):
        new = a * 2 + b.flip(0), b * 2 + a.flip(0)
        a.copy_(new[0])
        b.copy_(new[1])

    assert not program_of(crossed, *vectors(64, 64)).in_place


def test_large_values_between_kernels_do_not_move():
    def twice(a, b):
        return (a.sin().flip(0) @ a).cos(), (b.sin().flip(0) @ b).cos()

    matrices = [torch.zeros(1024, 1024) for _ in range(2)]
    assert not any(launch.members for launch in program_of(twice, *matrices).launches)


def test_open_sizes_are_left_alone():
    def both(a, b):
        return a.sin() + 1, b.sin() + 1

    ((_, program),) = pieces_of(both, *vectors(64, 48), dynamic=True)[1].programs
    assert [len(launch.members) for launch in program.launches] == [0, 0]


def sums(*given):
    return tuple((each * each).sum() for each in given)


def norms(*given):
    return tuple(torch.softmax(each, -1) for each in given)


def casts(*given):
    return tuple(each.bfloat16() for each in given)


def gathered(*given):
    return tuple(each.t()[each.argmax(0)] for each in given)


CASES = {
    "sums of vectors": (sums, vectors(5, 70, 3000, 3001)),
    "sums of matrices": (sums, [torch.randn(40, 7), torch.randn(64, 128), torch.randn(32, 96)]),
    "softmax": (norms, [torch.randn(10, 48), torch.randn(12, 48), torch.randn(9, 64)]),
    "casts": (casts, [*vectors(16, 33, 1), torch.randn(3, 16).t(), torch.randn(5, 5).half()]),
    "gathers": (gathered, [torch.randn(4, 6), torch.randn(4, 8), torch.randn(4, 6)]),
}


@pytest.mark.parametrize("target", ["interpreter", "sanitizer"])
@pytest.mark.parametrize("name", CASES)
def test_numbers(name, target):
    function, inputs = CASES[name]
    _same(function, inputs, target)


@pytest.mark.parametrize("target", ["interpreter", "sanitizer"])
def test_updated_numbers(target):
    lists = [vectors(300, 40, 4096, 17, 64, 300) for _ in range(3)]
    wanted = [[each.clone() for each in part] for part in lists]
    updated(*wanted)
    run = torch.compile(flat(updated, 6), options={"target": f"triton-{target}"})
    run(*sum(lists, []))
    for ours, theirs in zip(sum(lists, []), sum(wanted, []), strict=True):
        torch.testing.assert_close(ours, theirs)


def _same(function, inputs, target):
    results = torch.compile(function, options={"target": f"triton-{target}"})(*inputs)
    for ours, theirs in zip(results, function(*inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
