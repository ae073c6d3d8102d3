"""Eager calls with numbers that change from call to call, as positions and lengths do: right values, and no new kernels."""

import pytest

import rushlight as torch
from rushlight.compiler import device_graphs

BOUNDS = [(5,), (0, 9, 1), (3, 20, 4), (20, 3, -4), (0.0, 1.0, 0.1), (1, 4, 0.5), (0, 20000), (5, 5)]
DTYPES = [None, torch.float32, torch.int32, torch.float64, torch.bfloat16]
FUNCTIONS = {
    "add": lambda x, k: x + k, "sub": lambda x, k: x - k, "rsub": lambda x, k: k - x, "mul": lambda x, k: x * k,
    "div": lambda x, k: x / k, "eq": lambda x, k: x == k, "gt": lambda x, k: x > k, "ne": lambda x, k: k != x,
}  # fmt: skip
INTEGERS = [
    torch.tensor([3, -4, 5]), torch.tensor([3, -4, 5], dtype=torch.int32), torch.tensor(7), torch.tensor(7, dtype=torch.int32),
    torch.tensor([7], dtype=torch.int8), torch.tensor([7], dtype=torch.uint8),
]  # fmt: skip


def same(there, here):
    assert (there.dtype, there.shape, there.device.type) == (here.dtype, here.shape, "cuda")
    assert torch.equal(there.cpu(), here)


@pytest.mark.parametrize("kind", DTYPES)
def test_ranges(kind):
    for bounds in BOUNDS:
        same(torch.arange(*bounds, dtype=kind, device="cuda"), torch.arange(*bounds, dtype=kind))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_beside_integers(name):
    for values in INTEGERS:
        for number in (3, -4, 1000) if values.dtype != torch.uint8 else (3, 200):
            same(FUNCTIONS[name](values.cuda(), number), FUNCTIONS[name](values, number))


def test_other_numbers_need_no_other_kernels():
    integers, floats = torch.tensor([3, -4, 5]).cuda(), torch.tensor([0.5, -1.5]).cuda()

    def call(number):
        torch.arange(number, number + 3, device="cuda")
        return integers + number, integers == number, floats * (number + 0.5), floats > number + 0.25

    call(2)
    before = len(device_graphs._graphs)
    found = [call(number) for number in range(3, 9)]
    assert len(device_graphs._graphs) == before
    assert [pair[0].tolist()[0] for pair in found] == list(range(6, 12))


def test_a_range_may_be_written_to():
    first = torch.arange(4, device="cuda")
    first.add_(5)
    assert torch.arange(4, device="cuda").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_numbers_beside_16_bit_floats_are_not_rounded_to_16_bits(kind):
    values = torch.randn(300).to(kind)
    for function in (
        lambda x: x * 0.3, lambda x: x / 0.3, lambda x: x + 0.3001, lambda x: x.clone().mul_(0.3), lambda x: x > 0.2981,
        lambda x: torch.addcmul(x, x, x, value=0.3), lambda x: x.clone().addcdiv_(x, x.abs() + 1, value=0.3),
    ):  # fmt: skip
        same(function(values.cuda()), function(values))
    found = torch.add(values.cuda(), values.cuda(), alpha=0.3)
    assert (found.cpu() != (values.float() + values.float() * 0.3).to(kind)).sum() <= 1
