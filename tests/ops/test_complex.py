"""Complex numbers: views of their parts, conjugates, promotion, what is refused, and printing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl


def test_parts_are_views():
    z = rl.tensor([1 + 2j, 3 - 4j])
    real, imag = z.real, z.imag
    assert real._base is z and real.stride() == (2,) and imag.storage_offset() == 1
    real[0] = 9
    imag.mul_(2)
    assert z.tolist() == [9 + 4j, 3 - 8j]
    assert z._version == real._version == imag._version == 2


def test_parts_can_be_assigned():
    z = rl.zeros(2, dtype=rl.complex64)
    z.real = rl.tensor([1.0, 2.0])
    z.imag = 3
    assert z.tolist() == [1 + 3j, 2 + 3j]


def test_real_tensors_are_their_own_real_part_and_conjugate():
    x = rl.ones(2)
    assert x.real is x and x.conj() is x and rl.real(x) is x and x.resolve_conj() is x
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag  # noqa: B018


def test_views_as_pairs_share_memory():
    pairs = rl.arange(12.0).view(2, 3, 2)
    z = rl.view_as_complex(pairs.permute(1, 0, 2))
    assert z.shape == (3, 2) and z.stride() == (1, 3) and z.data_ptr() == pairs.data_ptr()
    back = rl.view_as_real(z[1:])
    assert back.shape == (2, 2, 2) and back.stride() == (2, 6, 1) and back.storage_offset() == 2
    z.zero_()
    assert not pairs.any() and pairs._version == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (rl.ones(3), "Tensor must have a last dimension of size 2"),
        (rl.ones(2, 3).t(), "Tensor must have a last dimension with stride 1"),
        (rl.ones(3, 3)[:, :2], "Tensor must have a stride divisible by 2 for all but last dimension"),
        (rl.ones(2, 4)[:, 1:3], "Tensor must have a storage_offset divisible by 2"),
        (rl.tensor(1.0), "Input tensor must have one or more dimensions"),
        (rl.ones(2, dtype=rl.int32), "only supported for half, float and double tensors, but got a tensor of scalar type: Int"),
    ],
)
def test_what_is_no_pair_of_parts(source, message):
    with pytest.raises(RuntimeError, match=message):
        rl.view_as_complex(source)


def test_conjugates():
    z = rl.tensor([[1 + 2j, 3j]])
    assert z.conj().tolist() == [[1 - 2j, -3j]] and z.conj().is_conj() and not rl.is_conj(z)
    assert z.mH.tolist() == z.H.tolist() == z.adjoint().tolist() == [[1 - 2j], [-3j]]
    assert z.conj_physical_() is z and z.tolist() == [[1 - 2j, -3j]]
    assert rl.vdot(rl.tensor([1j]), rl.tensor([1j])).item() == 1


def test_made_from_parts():
    length, angle = rl.tensor([2.0, 1.0]), rl.tensor([0.0, math.pi / 2])
    np.testing.assert_allclose(rl.polar(length, angle).numpy(), [2, 1j], atol=1e-6)
    assert rl.complex(length, rl.tensor(1.0)).tolist() == [2 + 1j, 1 + 1j]
    with pytest.raises(RuntimeError, match="Expected both inputs to be Half, Float or Double tensors but got Float and Int"):
        rl.complex(length, rl.ones(2, dtype=rl.int32))
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        rl.complex(length, length.double())


def test_directions_and_angles():
    z = rl.tensor([3 + 4j, 0j, -2 + 0j])
    np.testing.assert_allclose(z.sgn().numpy(), [0.6 + 0.8j, 0, -1], rtol=1e-6)
    np.testing.assert_allclose(z.angle().numpy(), np.angle(z.numpy()), rtol=1e-6)
    x = rl.tensor([-2.0, 0.0, 5.0, math.nan])
    np.testing.assert_allclose(x.angle().numpy(), [np.pi, 0, 0, np.nan], rtol=1e-6)
    assert rl.tensor([-2, 3]).angle().dtype is rl.float32 and x[:3].sgn().tolist() == [-1, 0, 1]


def test_promotion():
    assert (rl.tensor([1, 2]) * 1j).dtype is rl.complex64
    assert (rl.ones(1, dtype=rl.float64) * 1j).dtype is rl.complex128
    assert (rl.ones(1, dtype=rl.complex64) + rl.ones((), dtype=rl.float64)).dtype is rl.complex64
    assert rl.ones(1, dtype=rl.complex64).abs().dtype is rl.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda z: z < z, lambda z: z.sign(), lambda z: z.floor(), lambda z: rl.maximum(z, z), lambda z: rl.atan2(z, z),
        lambda z: z.lgamma(), lambda z: z.erf(), lambda z: z.logit(), lambda z: z.relu(), lambda z: z.remainder(z),
        lambda z: float(z[0]), lambda z: int(z[0]), lambda z: rl.ones(2).add_(z), lambda z: z.signbit(), lambda z: z.isposinf(),
        lambda z: z.deg2rad(), lambda z: rl.fmax(z, z), lambda z: rl.gcd(z, z),
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_complex_numbers(call):
    with pytest.raises(RuntimeError):
        call(rl.tensor([1 + 2j, 3j]))


def test_numbers_without_imaginary_part_are_real():
    assert float(rl.tensor(2 + 0j)) == 2.0 and int(rl.tensor(2 + 0j)) == 2 and complex(rl.tensor(2j)) == 2j


def test_predicates():
    z = rl.tensor([1 + 0j, 2j, complex(math.nan, 0), complex(0, math.inf)])
    assert z.isreal().tolist() == [True, False, True, False]
    assert z.isnan().tolist() == [False, False, True, False]
    assert z.isfinite().tolist() == [True, True, False, False]


def test_printing():
    assert str(rl.tensor([1 + 2j, -3.5 - 4.25j])) == "tensor([ 1.0000+2.0000j, -3.5000-4.2500j])"
    assert str(rl.ones(1, dtype=rl.complex128)) == "tensor([1.+0.j], dtype=torch.complex128)"
