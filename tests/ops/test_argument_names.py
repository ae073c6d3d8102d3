"""Every kernel takes its operator's arguments by the names in the schema."""

from __future__ import annotations

import inspect

import pytest

import rushlight as torch
from rushlight.ops.dispatcher import all_operators


def test_kernels_know_the_names_of_their_arguments():
    unknown = []
    for op in all_operators():
        for key, kernel in op.kernels.items():
            code = getattr(kernel.function, "__code__", None)
            if kernel.boxed or kernel.linked or code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
                continue
            parameters = inspect.signature(kernel.function).parameters
            unknown += [(op.name, key.name, each.name) for each in op._schema.arguments if each.name not in parameters]
    assert not unknown


@pytest.mark.parametrize("name", ["xlogy", "igamma", "special_zeta", "pow", "eq", "add", "mul"])
def test_operands_by_name(name):
    a, b = torch.rand(3) + 1, torch.rand(3) + 1
    function = torch.special.zeta if name == "special_zeta" else getattr(torch, name)
    second = "exponent" if name == "pow" else "other"
    for device in ("cpu", "meta"):
        x, y = a.to(device), b.to(device)
        wanted = function(x, y)
        for made in (function(x, **{second: y}), function(**{second: y, "input": x}),
                     getattr(torch.ops.aten, name)(**{second: y, "self": x})):  # fmt: skip
            assert made.shape == wanted.shape and (device == "meta" or torch.equal(made, wanted))
    assert torch.equal(torch.swapaxes(torch.ones(2, 3), axis0=0, axis1=1), torch.ones(3, 2))
