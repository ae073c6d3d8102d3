"""Devices in compiled, scripted and traced functions."""

from __future__ import annotations

import pytest

import rushlight as torch

ABSENT = "Torch not compiled with CUDA enabled"


def test_tensors_on_meta_in_a_compiled_function():
    def function(x):
        made = torch.ones(2, device="meta")
        with torch.device("meta"):
            other = torch.zeros(3)
        return made, other, x.to("meta"), x + 1

    *made, result = torch.compile(function)(torch.ones(1))
    assert all(tensor.is_meta for tensor in made) and result.tolist() == [2.0]


def test_a_compiled_function_under_another_default_device():
    function = torch.compile(lambda x: (torch.zeros(3), x + 1))
    for _ in range(2):
        assert function(torch.ones(1))[0].is_cpu
        with torch.device("meta"):
            made, result = function(torch.ones(1, device="cpu"))
            assert made.is_meta and result.tolist() == [2.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.to("cuda"), lambda x: x.cuda(), lambda x: torch.ones(2, device="cuda") + x,
        lambda x: x.to(torch.device("cuda", 1)), lambda x: torch.ones_like(x, device="cuda"),
    ],
)  # fmt: skip
def test_absent_devices_in_a_compiled_function(function):
    with pytest.raises(AssertionError, match=ABSENT):
        torch.compile(function)(torch.ones(2))
    with pytest.raises(AssertionError, match=ABSENT):
        torch.jit.trace(function, torch.ones(2))


def test_absent_devices_in_a_scripted_function():
    @torch.jit.script
    def function(x: torch.Tensor):
        return torch.ones([2], device="cuda") + x

    with pytest.raises(RuntimeError, match=ABSENT):
        function(torch.ones(2))


def test_the_states_of_no_devices_can_be_put_back():
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    with pytest.raises(AssertionError, match=ABSENT):
        torch.cuda.set_rng_state_all([torch.zeros(16, dtype=torch.uint8)])
