"""Counting operations: the numbers of PyTorch, by module and operator."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.utils.flop_counter import FlopCounterMode, register_flop_formula


def network(torch):
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1, stride=2), torch.nn.Flatten(), torch.nn.Linear(128, 5))


PROGRAMS = {
    "network": lambda torch: network(torch)(torch.ones(2, 3, 8, 8)).sum().backward(),
    "grouped": lambda torch: torch.nn.functional.conv2d(
        torch.ones(1, 4, 4, 4, requires_grad=True), torch.ones(8, 2, 3, 3, requires_grad=True), groups=2
    ).sum().backward(),
    "transposed": lambda torch: torch.nn.functional.conv_transpose2d(
        torch.ones(1, 3, 4, 4, requires_grad=True), torch.ones(3, 6, 3, 3, requires_grad=True)
    ).sum().backward(),
    "products": lambda torch: torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)).sum(),
    "added": lambda torch: torch.addmm(torch.ones(3), torch.ones(2, 4), torch.ones(4, 3)),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_totals_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode as Expected

    with Expected(display=False) as expected:
        PROGRAMS[name](torch)
    with FlopCounterMode(display=False) as counter:
        PROGRAMS[name](rl)
    assert counter.get_total_flops() == expected.get_total_flops() > 0


def test_modules_and_the_table(capsys):
    with FlopCounterMode() as counter:
        network(rl)(rl.ones(2, 3, 8, 8))
    counts = counter.get_flop_counts()
    assert counts["Sequential.2"] == {rl.ops.aten.addmm: 2 * 2 * 128 * 5}
    assert counts["Global"][rl.ops.aten.convolution] == 2 * 2 * 8 * 16 * 27
    assert "Sequential.0" in capsys.readouterr().out
    assert counter.mod_tracker.parents == {"Global"}


def test_formulas_of_programs():
    with FlopCounterMode(display=False, custom_mapping={rl.ops.aten.tanh: lambda size, out_shape=None: 10 * size[0]}) as counter:
        rl.tanh(rl.ones(3))
    assert counter.get_total_flops() == 30
    with pytest.raises(ValueError, match="duplicate"):
        register_flop_formula(rl.ops.aten.mm)(lambda *args: 0)
