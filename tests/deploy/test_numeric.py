"""Matrices, Fourier transforms and complex numbers without Python: the results of eager, and statuses where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import ModelError
from tests.deploy.built import arrays, built_methods, same


def _matrices(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, dtype=dtype, generator=torch.Generator().manual_seed(sum(size)))


def _positive(a: torch.Tensor) -> torch.Tensor:
    return a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype)


LINALG = {
    "cholesky": (lambda a: torch.linalg.cholesky(_positive(a)), (_matrices(2, 4, 4),)),
    "upper": (lambda a: torch.linalg.cholesky(_positive(a), upper=True), (_matrices(5, 5, dtype=torch.float64),)),
    "solve": (torch.linalg.solve, (_matrices(3, 4, 4), _matrices(4, 2))),
    "solve_vectors": (torch.linalg.solve, (_matrices(3, 4, 4), _matrices(3, 4))),
    "solve_right": (lambda a, b: torch.linalg.solve(a, b, left=False), (_matrices(4, 4), _matrices(2, 3, 4))),
    "inv": (torch.linalg.inv, (_matrices(2, 3, 6, 6),)),
    "inv_of_singular": (torch.linalg.inv_ex, (torch.stack([torch.ones(3, 3), torch.eye(3)]),)),
    "det": (torch.linalg.det, (_matrices(4, 5, 5, dtype=torch.float64),)),
    "slogdet": (torch.linalg.slogdet, (torch.cat([_matrices(2, 3, 3), torch.zeros(1, 3, 3)]),)),
    "lu_factor": (torch.linalg.lu_factor, (_matrices(2, 5, 3),)),
    "lu": (torch.linalg.lu, (_matrices(2, 3, 5),)),
    "triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), (_matrices(2, 4, 4), _matrices(4, 3))),
    "triangular_right": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        (_matrices(4, 4), _matrices(2, 3, 4)),
    ),
    "cholesky_solve": (torch.cholesky_solve, (_matrices(4, 2), torch.linalg.cholesky(_positive(_matrices(4, 4))))),
    "cholesky_solve_upper": (
        lambda b, u: torch.cholesky_solve(b, u, upper=True), (_matrices(4, 2), torch.linalg.cholesky(_positive(_matrices(4, 4))).mT)
    ),
    "qr": (torch.linalg.qr, (_matrices(2, 5, 3),)),
    "qr_wide": (torch.linalg.qr, (_matrices(3, 5),)),
    "qr_complete": (lambda a: torch.linalg.qr(a, "complete"), (_matrices(5, 3, dtype=torch.float64),)),
    "eigvalsh": (torch.linalg.eigvalsh, (_matrices(2, 6, 6),)),
    "eigh": (lambda a: _from_eigh(a), (_matrices(2, 5, 5),)),
    "svd": (lambda a: _from_svd(a, False), (_matrices(2, 5, 3),)),
    "svd_full": (lambda a: _from_svd(a, True), (_matrices(3, 5),)),
    "svd_of_low_rank": (lambda a: _from_svd(a @ a.mT, True), (_matrices(5, 2, dtype=torch.float64),)),
    "pinv": (torch.linalg.pinv, (_matrices(2, 4, 3),)),
    "pinv_of_low_rank": (lambda a: torch.linalg.pinv(a @ a.mT, rtol=1e-4), (_matrices(4, 2),)),
    "wide_products": (lambda a, b: (a @ b, torch.addmm(b, a, b, alpha=2)), (_matrices(4, 4).double(), _matrices(4, 4).double())),
    "whole_products": (lambda a: a @ a.mT, (torch.arange(24, dtype=torch.int32).reshape(2, 3, 4) * 10**8,)),
}  # fmt: skip


def _from_eigh(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What vectors make, whose signs are anyone's choice."""
    values, vectors = torch.linalg.eigh(a)
    return values, (vectors * values[..., None, :]) @ vectors.mT, vectors.mT @ vectors


def _from_svd(a: torch.Tensor, full: bool) -> tuple[torch.Tensor, ...]:
    u, s, vh = torch.linalg.svd(a, full_matrices=full)
    count = s.shape[-1]
    return s, (u[..., :count] * s[..., None, :]) @ vh[..., :count, :], u.mT @ u, vh @ vh.mT


@pytest.fixture(scope="module")
def linalg(tmp_path_factory):
    return built_methods(LINALG, tmp_path_factory.mktemp("linalg"))


@pytest.mark.parametrize("name", LINALG)
def test_matrices(linalg, name):
    function, arguments = LINALG[name]
    same(getattr(linalg, name)(*arrays(*arguments)), function(*arguments), 1e-4)


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lu_factor"])
def test_singular_matrices_are_a_status(linalg, name):
    arguments = [np.zeros_like(each) for each in arrays(*LINALG[name][1])]
    if name == "cholesky":
        arguments[0][:] = np.nan
    with pytest.raises(ModelError, match="a matrix is singular or not positive-definite"):
        getattr(linalg, name)(*arguments)
    same(getattr(linalg, name)(*arrays(*LINALG[name][1])), LINALG[name][0](*LINALG[name][1]), 1e-4)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_numbers_that_are_not_finite_are_a_status(linalg, name):
    with pytest.raises(ModelError, match="not finite"):
        getattr(linalg, name)(np.full_like(arrays(*LINALG[name][1])[0], np.inf))


LENGTHS = (1, 2, 8, 15, 61, 64, 67, 134, 210, 331)
FOURIER = {f"fft_{n}": (torch.fft.fft, (torch.randn(3, n, dtype=torch.complex64),)) for n in LENGTHS}
FOURIER |= {f"rfft_{n}": (torch.fft.rfft, (torch.randn(2, n, dtype=torch.float64),)) for n in LENGTHS}
FOURIER |= {f"irfft_{n}": (lambda x, n=n: torch.fft.irfft(x, n=n), (torch.randn(2, n // 2 + 1, dtype=torch.complex64),))
            for n in LENGTHS}  # fmt: skip
FOURIER |= {
    "ifft": (lambda x: torch.fft.ifft(x, norm="ortho"), (torch.randn(4, 6, dtype=torch.complex128),)),
    "along_rows": (lambda x: torch.fft.fft(x, dim=0), (torch.randn(5, 6, dtype=torch.complex64),)),
    "two": (lambda x: torch.fft.fft2(x, norm="forward"), (torch.randn(2, 3, 4),)),
    "two_of_reals": (torch.fft.rfft2, (torch.randn(2, 3, 4),)),
    "back_to_reals": (lambda x: torch.fft.irfftn(torch.fft.rfftn(x), s=x.shape), (torch.randn(3, 4, 5),)),
    "hfft": (torch.fft.hfft, (torch.randn(5, dtype=torch.complex64),)),
    "shifted": (lambda x: torch.fft.fftshift(torch.fft.fft(x)), (torch.randn(6),)),
    "istft": (
        lambda z: torch.istft(z, 16, 4, window=torch.hann_window(16)), (torch.randn(2, 9, 17, dtype=torch.complex64),)
    ),
    "stft": (
        lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True), (torch.randn(2, 64),)
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def fourier(tmp_path_factory):
    return built_methods(FOURIER, tmp_path_factory.mktemp("fourier"))


@pytest.mark.parametrize("name", FOURIER)
def test_transforms(fourier, name):
    function, arguments = FOURIER[name]
    same(getattr(fourier, name)(*arrays(*arguments)), function(*arguments), 1e-4)


Z, W = (torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
COMPLEX = {
    "arithmetic": (lambda z, w: (z + w, z - 2 * w, z * w, z / w, 1j * z, z.conj() * w, -z), (Z, W)),
    "with_reals": (lambda z, x: (z + x, x * z, x / z, z.real - x, z.imag), (Z, torch.randn(4))),
    "parts": (lambda z: (z.abs(), z.angle(), torch.view_as_real(z), z.sgn(), z.isnan()), (Z,)),
    "functions": (lambda z: (z.exp(), z.log(), z.sqrt(), z.sin(), z.cos(), z.sinh(), z.cosh(), z**3, z**0.5), (Z,)),
    "shapes": (lambda z, w: (z.T, torch.cat([z, w]), torch.stack([z, w], -1), z[1:, ::2], z.flip(0), z.reshape(2, 6)), (Z, W)),
    "sums": (lambda z: (z.sum(), z.mean(0), z.cumsum(1), (z == z[0]).sum()), (Z,)),
    "products": (lambda z, w: (z @ w.T, z.conj() @ w.T), (Z, W)),
    "made": (lambda x: (torch.complex(x, 2 * x), torch.polar(x.abs(), x), x.to(torch.complex128)), (torch.randn(2, 3),)),
    "where": (lambda z, w: (torch.where(z.real > 0, z, w), torch.zeros_like(z), torch.nn.functional.pad(z, (1, 2))), (Z, W)),
    "wide": (lambda z: (z * z, z.abs()), (Z.to(torch.complex128),)),
    "angle_of_reals": (torch.angle, (torch.tensor([1.0, -1.0, 0.0, -0.0, float("nan")]),)),
}


@pytest.fixture(scope="module")
def complex_numbers(tmp_path_factory):
    return built_methods(COMPLEX, tmp_path_factory.mktemp("complex"))


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(complex_numbers, name):
    function, arguments = COMPLEX[name]
    same(getattr(complex_numbers, name)(*arrays(*arguments)), function(*arguments))


def test_complex_tensors_by_any_strides(complex_numbers):
    wide = np.zeros((4, 9), np.complex64)
    wide[:, ::3] = np.random.default_rng(0).random((4, 3)) * (1 + 2j)
    z = wide[:, ::3].T
    found = complex_numbers.parts(z)
    same(found, COMPLEX["parts"][0](torch.from_numpy(z.copy())))


def test_what_is_refused_says_so(tmp_path):
    with pytest.raises(NotExportable, match="aten::linalg_eig "):
        export(torch.linalg.eig, (torch.rand(3, 3),), tmp_path)
