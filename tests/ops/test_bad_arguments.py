"""Bad arguments of operators give errors made for users: a fixed part of `tests.fuzz_arguments`, and what it has found."""

from __future__ import annotations

import math

import pytest

import rushlight as rl
from rushlight.ops.packet import namespaces
from tests.fuzz_arguments import findings, operators

aten = namespaces.aten


def test_some_random_arguments_of_every_operator():
    assert list(findings([op.name for op in operators()], range(2))) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.fill_(math.inf),
        lambda x: rl.full((2,), math.nan, dtype=rl.int32),
        lambda x: x.scatter(0, x, math.inf),
        lambda x: x.index_fill(0, x, -math.inf),
        lambda x: rl.linspace(0, math.inf, 3, dtype=rl.int64),
    ],
)
def test_numbers_without_an_integer_value(call):
    with pytest.raises(RuntimeError, match="without overflow"):
        call(rl.zeros(3, dtype=rl.int64))


@pytest.mark.parametrize("geometry", [((2, 3), (1,)), ((2,), (1, 1))])
def test_sizes_and_strides_of_different_lengths(geometry):
    with pytest.raises(RuntimeError, match="dimensionality of sizes"):
        rl.empty_strided(*geometry)


def test_zero_dimensional_tensors_have_no_sizes():
    for call in (lambda x: x.size(0), lambda x: x.stride(-1), lambda x: rl.fft.ifftshift(x, 0)):
        with pytest.raises(IndexError, match="tensor has no dimensions"):
            call(rl.tensor(1.0))


def test_windows_have_positive_sizes_and_strides():
    with pytest.raises(RuntimeError, match="stride should be greater than zero"):
        rl.nn.functional.unfold(rl.ones(1, 1, 3, 3), 2, stride=0)
    with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
        rl.nn.functional.fold(rl.ones(1, 4, 4), 3, 0)


def test_scale_factors():
    image = rl.ones(1, 1, 3, 3)
    for factors in ([2.0], [math.inf, 2.0]):
        with pytest.raises(RuntimeError, match="scale factor"):
            aten.upsample_nearest2d.vec(image, None, factors)


def test_numbers_too_large():
    with pytest.raises(RuntimeError, match="p=1099511627776"):
        rl.mvlgamma(rl.ones(2), 1 << 40)
    assert rl.round(rl.tensor([0.5]), decimals=1 << 40).isnan().all()


def test_frequencies_of_no_samples_and_no_spacing():
    assert rl.fft.fftfreq(0).tolist() == [] and rl.fft.rfftfreq(0).isnan().all()
    assert rl.fft.fftfreq(3, 0.0)[1:].tolist() == [math.inf, -math.inf]


def test_recurrent_cells_name_what_has_the_wrong_shape():
    with pytest.raises(RuntimeError, match="Expected w_ih of two dimensions"):
        aten.gru_cell.default(rl.ones(1, 2), rl.ones(1, 2), rl.ones(2), rl.ones(6, 2))
