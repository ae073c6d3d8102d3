"""Gradients of compiled random programs are eager's. `python -m tests.fuzz_gradients` runs many more."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.fuzz_gradients import OPTIONS, failure
from tests.inductor.random_programs import random_program

BATCH = 6
# Written inputs whose layout matters, products with one column, expanded leaves.
CHOSEN = (46, 129, 311, 591, 814)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using a target size"), pytest.mark.filterwarnings("ignore:var()"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]  # fmt: skip


def check(seed: int, backend: str, dynamic: bool | None = None) -> None:
    program = random_program(seed, 8)
    problem = failure(program, backend, OPTIONS[seed % len(OPTIONS)], dynamic)
    assert not problem, f"seed {seed}\n{program}\n{problem}"


@pytest.mark.parametrize("first", range(0, 4 * BATCH, BATCH))
def test_gradients_of_random_programs_are_eagers(first):
    for seed in range(first, first + BATCH):
        check(seed, "inductor" if seed % 3 else "aot_eager")


@pytest.mark.parametrize("first", range(1000, 1000 + 3 * BATCH, BATCH))
def test_gradients_of_random_programs_with_open_sizes_are_eagers(first):
    for seed in range(first, first + BATCH):
        check(seed, "inductor" if seed % 3 else "aot_eager", dynamic=True)


# Strides of dimensions with one element, and an offset that depends on sizes.
@pytest.mark.parametrize("seed", [196, 1010])
def test_gradients_of_chosen_programs_with_open_sizes_are_eagers(seed):
    check(seed, "inductor", dynamic=True)


@pytest.mark.parametrize("seed", CHOSEN)
def test_gradients_of_chosen_programs_are_eagers(seed):
    check(seed, "inductor")


def test_a_gradient_with_several_elements_in_one_place_is_copied():
    a = torch.ones(1).expand(3, 1).requires_grad_()
    for _ in range(2):
        torch.compile(lambda a: (a * 2).sum((0, 1)).exp())(a).backward()
    assert a.grad.stride() == (1, 1) and a.grad.shape == (3, 1)
