"""The short-time Fourier transform, over overlapping frames of a signal, and its inverse."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.composite.fft import BY_NUMBER, BY_ROOT, NONE
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_STFT = (
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    'str pad_mode="reflect", bool normalized=False, bool? onesided=None, bool? return_complex=None, '
    "bool? align_to_window=None) -> Tensor"
)
_ISTFT = (
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor"
)


class _Frames:
    """The lengths of a transform, its window (padded to a frame) and the call's name for errors."""

    def __init__(self, name: str, source: Tensor, n_fft: int, hop: int | None, length: int | None, window: Tensor | None):
        self.size = n_fft
        self.hop = n_fft // 4 if hop is None else hop
        self.length = n_fft if length is None else length
        self.call = (
            f"{name}(torch.{source.dtype.scalar_name}Tensor{list(source.shape)}, n_fft={n_fft}, hop_length={self.hop}, "
            f"win_length={self.length})"
        )
        self.window = window

    def refuse(self, why: str) -> None:
        """Raise RuntimeError."""
        raise RuntimeError(f"{self.call} : {why}")

    def padded_window(self, like: Tensor) -> Tensor:
        """Return the window in the middle of a frame, zeros around it; without a window, ones."""
        window = self.window
        if window is None:
            window = aten.ones.default((self.length,), dtype=like.dtype.to_real(), device=like.device)
        left = (self.size - self.length) // 2
        return aten.constant_pad_nd.default(window, [left, self.size - self.length - left], 0)

    def is_onesided(self, given: bool | None, source: Tensor) -> bool:
        """Return whether the spectrum holds only non-negative frequencies, which determine a real signal."""
        is_complex = source.dtype.is_complex or (self.window is not None and self.window.dtype.is_complex)
        if given and is_complex:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return not is_complex if given is None else given


@composite(_STFT)
def stft(
    self, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
    onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    frames = _Frames("stft", self, n_fft, hop_length, win_length, window)
    source = self if self.dim() != 1 else aten.unsqueeze.default(self, 0)
    if center and source.dim() == 2:
        source = _extend_ends(source, n_fft // 2, pad_mode)
    _check_signal(frames, self, source)
    _check_complex_choice(self, window, return_complex)
    pieces = aten.unfold.default(source, -1, n_fft, frames.hop) * frames.padded_window(self)
    spectrum = _spectrum(pieces, frames.is_onesided(onesided, self), BY_ROOT if normalized else NONE)
    result = aten.transpose.int(spectrum, 1, 2)
    result = aten.squeeze.dim(result, 0) if self.dim() == 1 else result
    return result if return_complex is None or return_complex else aten.view_as_real.default(result)


def _extend_ends(source: Tensor, count: int, mode: str) -> Tensor:
    return aten.squeeze.dim(aten.pad.default(aten.unsqueeze.default(source, 1), [count, count], mode), 1)


def _check_signal(frames: _Frames, self: Tensor, source: Tensor) -> None:
    if self.dtype.is_integral:
        frames.refuse("expected a tensor of floating point or complex values")
    if self.dim() not in (1, 2):
        frames.refuse("expected a 1D or 2D tensor")
    if not 0 < frames.size <= source.size(-1):
        frames.refuse(f"expected 0 < n_fft < {source.size(-1)}, but got n_fft={frames.size}")
    if frames.hop <= 0:
        frames.refuse(f"expected hop_length > 0, but got hop_length={frames.hop}")
    if not 0 < frames.length <= frames.size:
        frames.refuse(f"expected 0 < win_length <= n_fft, but got win_length={frames.length}")
    if frames.window is not None and tuple(frames.window.shape) != (frames.length,):
        frames.refuse(
            f"expected a 1D window tensor of size equal to win_length={frames.length}, but got window with size "
            f"{list(frames.window.shape)}"
        )


def _check_complex_choice(self: Tensor, window: Tensor | None, return_complex: bool | None) -> None:
    if return_complex is None and not self.dtype.is_complex and not (window is not None and window.dtype.is_complex):
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )


def _spectrum(pieces: Tensor, onesided: bool, scale: int) -> Tensor:
    axis = [pieces.dim() - 1]
    if pieces.dtype.is_complex:
        return aten._fft_c2c.default(pieces, axis, scale, True)
    return aten._fft_r2c.default(pieces, axis, scale, onesided)


@composite(_ISTFT)
def istft(
    self, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
    return_complex=False,
):  # fmt: skip
    if not self.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    frames = _Frames("istft", self, n_fft, hop_length, win_length, window)
    onesided = _is_onesided_inverse(self, window, n_fft, onesided, return_complex)
    _check_spectrum(frames, self, onesided)
    source = aten.unsqueeze.default(self, 0) if self.dim() == 2 else self
    pieces = _pieces(aten.transpose.int(source, 1, 2), frames, onesided, normalized, return_complex)
    shape = frames.padded_window(self)
    signal = _overlap(pieces * shape, frames.hop)
    weight = _overlap(aten.expand.default(shape * shape, (1, source.size(-1), n_fft)), frames.hop)
    start, end = _kept_range(frames, source.size(-1), center, length)
    signal, weight = signal[:, start:end], weight[:, start:end]
    covered = aten.logical_not.default(weight.detach().abs() <= 1e-11)
    why = "window overlap add min: 1, the windows leave points of the signal uncovered"
    weight = aten._checked.default(weight, covered, "RuntimeError", f"{frames.call} : {why}")
    signal = signal / weight
    missing = 0 if length is None else length - signal.size(-1)
    signal = aten.constant_pad_nd.default(signal, [0, missing], 0) if missing > 0 else signal
    return aten.squeeze.dim(signal, 0) if self.dim() == 2 else signal


def _is_onesided_inverse(
    self: Tensor, window: Tensor | None, n_fft: int, onesided: bool | None, return_complex: bool
) -> bool:
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return False if onesided is not None else self.size(-2) != n_fft
    if window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    return self.size(-2) != n_fft if onesided is None else onesided


def _check_spectrum(frames: _Frames, self: Tensor, onesided: bool) -> None:
    if not self.numel():
        frames.refuse("input tensor cannot be empty.")
    if self.dim() not in (2, 3):
        frames.refuse(f"expected a tensor with 3 or 4 dimensions, but got {self.dim() + 1}")
    if not 0 < frames.hop <= frames.length:
        frames.refuse("expected 0 < hop_length <= win_length")
    if not 0 < frames.length <= frames.size:
        frames.refuse("expected 0 < win_length <= n_fft")
    wanted = frames.size // 2 + 1 if onesided else frames.size
    if self.size(-2) != wanted:
        what = "n_fft / 2 + 1" if onesided else "n_fft"
        frames.refuse(
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {what} when "
            f"onesided={onesided}, but got {self.size(-2)}"
        )
    if frames.window is not None and tuple(frames.window.shape) != (frames.length,):
        frames.refuse("Invalid window shape. window has to be 1D and length of `win_length`")


def _pieces(source: Tensor, frames: _Frames, onesided: bool, normalized: bool, return_complex: bool) -> Tensor:
    """Return the frames of the signal, each multiplied by the window."""
    axis, scale = [source.dim() - 1], BY_ROOT if normalized else BY_NUMBER
    if return_complex:
        return aten._fft_c2c.default(source, axis, scale, False)
    half = source if onesided else aten.narrow.default(source, -1, 0, frames.size // 2 + 1)
    return aten._fft_c2r.default(half, axis, scale, frames.size)


def _overlap(pieces: Tensor, hop: int) -> Tensor:
    """Overlap-add frames (batch, count, size) at distance `hop`."""
    batch, count, size = pieces.shape
    starts = aten.unsqueeze.default(aten.arange.start_step(0, count * hop, hop, device=pieces.device), 1)
    positions = starts + aten.arange.start_step(0, size, 1, device=pieces.device)
    positions = aten.expand.default(aten.reshape.default(positions, (1, -1)), (batch, count * size))
    total = pieces.new_zeros((batch, (count - 1) * hop + size))
    return aten.scatter_add.default(total, 1, positions, aten.reshape.default(pieces, (batch, count * size)))


def _kept_range(frames: _Frames, count: int, center: bool, length: int | None) -> tuple[int, int]:
    """Return the range of the overlap-added frames that is the signal."""
    whole = frames.size + frames.hop * (count - 1)
    start = frames.size // 2 if center else 0
    if length is not None:
        return start, min(start + length, whole)
    return start, whole - frames.size // 2 if center else whole
