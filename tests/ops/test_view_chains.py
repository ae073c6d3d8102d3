"""Random chains of views and in-place writes: the same values and geometry as NumPy's, and all that can be seen as torch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as rl
from tests.ops.numpy_views import NumPyLibrary
from tests.ops.torch_oracle import array_of
from tests.ops.view_chains import Chain, Run, difference

seeds = st.integers(0, 1 << 32)


def compare_with_numpy(chain: Chain) -> None:
    model = Run(NumPyLibrary)
    for line in chain.lines:
        model.execute(line)
    for line, got, expected in zip(chain.lines, chain.run.errors, model.errors, strict=True):
        assert (got is None) == (expected is None), f"{line!r} raised {got}, in NumPy {expected}\n{chain.text()}"
    for name, tensor in chain.run.variables.items():
        array = model.variables[name].array
        np.testing.assert_array_equal(tensor.numpy(), array, err_msg=f"{name} of\n{chain.text()}")
        strides = [stride // array.itemsize for stride in array.strides]
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides, strict=True):
            assert array.size == 0 or size == 1 or stride == expected, f"{name}: {tensor.stride()}, not {strides}\n{chain.text()}"


@settings(max_examples=400, deadline=None)
@given(seeds)
def test_chains_do_what_they_do_in_numpy(seed):
    compare_with_numpy(Chain(rl, seed, for_numpy=True))


@pytest.mark.oracle
@pytest.mark.parametrize("grad", [False, True], ids=["values", "gradients"])
@settings(max_examples=200, deadline=None)
@given(seed=seeds)
def test_chains_do_what_they_do_in_torch(seed, grad):
    torch = pytest.importorskip("torch")
    found = difference(Chain(rl, seed, grad=grad), torch, array_of)
    assert found is None, found


def test_a_seed_gives_one_program():
    first, second = Chain(rl, 7), Chain(rl, 7)
    assert first.text() == second.text() and len(first.lines) > 2
    assert Chain(rl, 8).text() != first.text()


def test_differences_are_found():
    chain = Chain(rl, 3, for_numpy=True)
    chain.lines = ["v0 = torch.arange(6).remainder(7).to(torch.float64)", "v0.add_(2)", "v0[9] = 1"]
    chain.run = Run(rl)
    for line in chain.lines:
        chain.run.execute(line)
    assert [error and error[0] for error in chain.run.errors] == [None, None, "IndexError"]
    compare_with_numpy(chain)
    chain.run.variables["v0"].add_(1)
    with pytest.raises(AssertionError, match="v0.add_"):
        compare_with_numpy(chain)
