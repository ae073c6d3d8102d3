"""Fourier transforms against NumPy's; dtypes, sizes, errors; short-time transforms."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

_random = np.random.default_rng(0)
REAL = _random.standard_normal((3, 5, 4))
COMPLEX = REAL + 1j * _random.standard_normal((3, 5, 4))
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_REALS = ("rfft", "ihfft", "rfftn", "rfft2")


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_one_dimension(name: str, norm: str | None):
    source = REAL if name in OF_REALS else COMPLEX
    for n in (None, 3, 4, 7):
        for dim in (-1, 0, 1):
            want = getattr(np.fft, name)(source, n, dim, norm)
            got = getattr(rl.fft, name)(rl.from_numpy(source), n, dim, norm)
            assert not got.is_conj() and got.numpy().dtype == want.dtype
            np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_dimensions(name: str):
    source = REAL if name in OF_REALS else COMPLEX
    value = rl.from_numpy(source)
    for s, dims in ((None, None), (None, (0, 2)), ((4, 3), (0, 1)), ((2, 6), None), ((-1, 5), (1, 2))):
        sizes = None if s is None else tuple(source.shape[d] if n == -1 else n for n, d in zip(s, dims or (1, 2), strict=True))
        # The last size of irfft's -1 is that of the result.
        if name == "irfft" and s and s[-1] == -1:
            continue
        axes = dims or (None if s is None else (1, 2))
        want = getattr(np.fft, name + "n")(source, sizes, axes)
        np.testing.assert_allclose(getattr(rl.fft, name + "n")(value, s, dims).numpy(), want, atol=1e-12)
    np.testing.assert_allclose(
        getattr(rl.fft, name + "2")(value, norm="ortho").numpy(), getattr(np.fft, name + "2")(source, norm="ortho"), atol=1e-12
    )


def test_hermitian_transforms_of_several_dimensions_invert_each_other():
    value = rl.from_numpy(REAL)
    np.testing.assert_allclose(rl.fft.hfftn(rl.fft.ihfftn(value), s=value.shape).numpy(), REAL, atol=1e-12)
    np.testing.assert_allclose(rl.fft.hfft2(rl.fft.ihfft2(value), s=value.shape[1:]).numpy(), REAL, atol=1e-12)


def test_dtypes():
    assert rl.fft.fft(rl.ones(4)).dtype is rl.complex64
    assert rl.fft.fft(rl.arange(4)).dtype is rl.complex64
    assert rl.fft.irfft(rl.ones(4, dtype=rl.complex128)).dtype is rl.float64
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        rl.fft.fft(rl.ones(4).half())


def test_empty_batches_and_no_dimensions():
    assert rl.fft.fft(rl.ones(0, 4)).shape == (0, 4)
    assert rl.fft.rfft(rl.ones(0, 4)).shape == (0, 3)
    assert rl.fft.irfft(rl.ones(0, 3, dtype=rl.complex64)).shape == (0, 4)
    assert rl.fft.fftn(rl.ones(2, 2), dim=()).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rl.fft.rfft(rl.ones(3) + 0j), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda: rl.fft.fft(rl.ones(3), 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: rl.fft.irfft(rl.ones(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: rl.fft.fft(rl.ones(3), norm="none"), RuntimeError, 'Invalid normalization mode: "none"'),
        (lambda: rl.fft.fft(rl.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: rl.fft.fftn(rl.ones(3, 3), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda: rl.fft.fftn(rl.ones(3), s=(1, 2)), RuntimeError, "Got shape with 2 values but input tensor only has 1"),
        (lambda: rl.fft.fftn(rl.ones(3, 3), s=(1,), dim=(0, 1)), RuntimeError, "must have the same length"),
        (lambda: rl.fft.rfftn(rl.ones(3), dim=()), RuntimeError, "rfftn must transform at least one axis"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_frequencies_and_shifts():
    for n in (5, 6):
        np.testing.assert_allclose(rl.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(rl.fft.rfftfreq(n, 0.5, dtype=rl.float64).numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-12)
    value = rl.from_numpy(REAL)
    for dim in (None, 1, (0, 2)):
        np.testing.assert_array_equal(rl.fft.fftshift(value, dim).numpy(), np.fft.fftshift(REAL, dim))
        np.testing.assert_array_equal(rl.fft.ifftshift(value, dim).numpy(), np.fft.ifftshift(REAL, dim))


def test_a_signal_comes_back_from_its_frames():
    signal = rl.from_numpy(_random.standard_normal((2, 40)))
    window = rl.hamming_window(8, dtype=rl.float64)
    for options in ({}, {"center": False}, {"normalized": True}, {"onesided": False}):
        frames = rl.stft(signal, 8, window=window, return_complex=True, **options)
        back = rl.istft(frames, 8, window=window, **options)
        np.testing.assert_allclose(back.numpy(), signal.numpy(), atol=1e-12)


def test_frames_are_windows_of_the_signal():
    signal = rl.arange(10.0, dtype=rl.float64)
    frames = rl.stft(signal, 4, hop_length=2, center=False, return_complex=True)
    want = np.stack([np.fft.rfft(np.arange(start, start + 4.0)) for start in range(0, 8, 2)], 1)
    np.testing.assert_allclose(frames.numpy(), want, atol=1e-12)
    assert rl.stft(signal, 4, return_complex=False).shape == (3, 11, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: rl.stft(x, 4), "stft requires the return_complex parameter be given for real inputs"),
        (lambda x: rl.stft(x, 40, center=False, return_complex=True), "expected 0 < n_fft < 10, but got n_fft=40"),
        (lambda x: rl.stft(x, 4, 0, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (lambda x: rl.stft(x, 4, win_length=5, return_complex=True), "expected 0 < win_length <= n_fft, but got win_length=5"),
        (lambda x: rl.stft(x, 4, window=rl.ones(3), return_complex=True), "window tensor of size equal to win_length=4"),
        (lambda x: rl.stft(x + 0j, 4, onesided=True), "Cannot have onesided output if window or input is complex"),
        (lambda x: rl.istft(x, 4), "istft requires a complex-valued input tensor"),
        (lambda x: rl.istft(rl.ones(3, 5) + 0j, 8), "expected the frequency dimension"),
        (lambda x: rl.istft(rl.ones(3, 5) + 0j, 4, window=rl.zeros(4)), "window overlap add min: 1"),
    ],
)
def test_errors_of_short_time_transforms(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(rl.ones(10))
