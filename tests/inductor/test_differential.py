"""Random programs through inductor against eager. `make fuzz` runs many more; see tests/fuzz_inductor.py."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from tests.fuzz_inductor import failure
from tests.inductor.differences import difference
from tests.inductor.open_programs import outcome
from tests.inductor.random_programs import Program, random_open_program, random_program

BATCH = 8

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")


@pytest.mark.parametrize("first", range(0, 48, BATCH))
def test_random_programs_agree_with_eager(first):
    for seed in range(first, first + BATCH):
        program = random_program(seed)
        problem = failure(program, parallel=seed % 2 == 1)
        assert not problem, f"seed {seed}\n{program}\n{problem}"


@pytest.mark.parametrize("first", range(0, 24, BATCH))
def test_random_programs_compiled_once_agree_with_eager_at_several_sizes(first):
    served = 0
    for seed in range(first, first + BATCH):
        program = random_open_program(seed, 6)
        found = outcome(program, seed, threads=1 + seed % 2)
        assert not found.problem, f"seed {seed}\n{program}\n{found.problem}"
        served += found.served
    assert served > 3 * BATCH


@pytest.mark.parametrize("first", range(5000, 5032, BATCH))
def test_several_random_programs_in_one_graph(first):
    programs = [random_program(seed, statements=6) for seed in range(first, first + BATCH)]
    functions = [program.function() for program in programs]

    def make_inputs():
        return [[spec.make() for spec in program.inputs] for program in programs]

    def run_all(*inputs):
        return tuple(function(*arguments) for function, arguments in zip(functions, inputs, strict=True))

    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", message="compile")
        problem = difference(run_all, torch.compile(run_all), make_inputs, coarsest(programs))
    assert not problem, "\n".join(map(str, programs)) + problem


def coarsest(programs: list[Program]) -> str:
    """The precision of the least precise program."""
    order = ("bfloat16", "float16", "float32", "float64")
    return min((program.precision for program in programs), key=order.index)


def test_nothing_is_joined_to_something():
    def function(x):
        normal = torch.nn.functional.layer_norm(x, [4, 7])
        return torch.cat((normal[:, :, :0], normal), 2), torch.cat((x[:0], x)), torch.cat((x[:0], x[:0]))

    with torch.no_grad():
        x = torch.randn(2, 4, 7)
        for want, have in zip(function(x), torch.compile(function)(x), strict=True):
            assert have.shape == want.shape and torch.allclose(have, want, atol=1e-6)
