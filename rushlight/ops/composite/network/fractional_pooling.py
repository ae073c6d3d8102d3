"""Fractional max pooling (Graham 2015): windows start at pseudo-random places, so that any output size is possible."""

from __future__ import annotations

import math

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import arange, aten, spread
from rushlight.ops.registry import composite


def _starts(sample: Tensor, size: int, window: int, output: int) -> Tensor:
    """Return (N, C, output): where the windows of each plane start, from its sample (N, C) in [0, 1)."""
    if output == 1:
        return aten.full.default([*sample.shape, 1], size - window, dtype=int64, device=sample.device)
    step = (size - window) / (output - 1)
    base = sample.unsqueeze(-1)
    starts = ((arange(sample, output) + base) * step).to(int64) - (base * step).to(int64)
    last = arange(sample, output) == output - 1
    return aten.where.self(last, size - window, starts)


def _pool(x: Tensor, kernel_size, output_size, random_samples: Tensor, dims: int) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{dims}d"
    windows, outputs = spread(kernel_size, dims, "kernel_size"), spread(output_size, dims, "output_size")
    if x.dim() not in (dims + 1, dims + 2) or 0 in x.shape[-dims - 1 :]:
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor with non-zero sizes for its non-batch dimensions, but got "
            f"{list(x.shape)}"
        )
    batched = x if x.dim() == dims + 2 else x.unsqueeze(0)
    sizes = batched.shape[2:]
    for size, window, output in zip(sizes, windows, outputs, strict=True):
        if output + window - 1 > size:
            raise RuntimeError(f"{name}(): pool size {window} too large relative to input size {size} for output size {output}")
    _check_samples(batched, random_samples, dims, name)
    random_samples = random_samples.narrow(0, 0, batched.shape[0])
    # In two dimensions the first sample belongs to the width.
    order = [1, 0] if dims == 2 else [0, 1, 2]
    flat = None
    for axis, (size, window, output) in enumerate(zip(sizes, windows, outputs, strict=True)):
        starts = _starts(random_samples.select(-1, order[axis]), size, window, output)
        position = starts.unsqueeze(-1) + arange(x, window)
        shape = [*position.shape[:2], *[1] * (2 * dims)]
        shape[2 + axis], shape[2 + dims + axis] = output, window
        position = position.reshape(shape)
        flat = position if flat is None else flat * size + position
    index = flat.reshape([*batched.shape[:2], math.prod(outputs), math.prod(windows)])
    values = batched.flatten(2).gather(2, index.flatten(2)).reshape(index.shape)
    highest, which = aten.max.dim(values, -1)
    positions = index.gather(-1, which.unsqueeze(-1)).squeeze(-1)
    shape = [*x.shape[:-dims], *outputs]
    return highest.reshape(shape), positions.reshape(shape)


def _check_samples(batched: Tensor, random_samples: Tensor, dims: int, name: str) -> None:
    # More samples than the batch needs are accepted; the surplus is ignored.
    fits = random_samples.dim() == 3 and random_samples.shape[0] >= batched.shape[0]
    if not fits or list(random_samples.shape[1:]) != [batched.shape[1], dims]:
        raise RuntimeError(
            f"{name}(): expected _random_samples of shape {[*batched.shape[:2], dims]}, but got {list(random_samples.shape)}"
        )
    if random_samples.dtype is not batched.dtype:
        raise RuntimeError(
            f"{name}(): expected _random_samples to have the same dtype as the input, but got {random_samples.dtype} and "
            f"{batched.dtype}"
        )


@composite(
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)"
)
def fractional_max_pool2d(self, kernel_size, output_size, random_samples):
    return _pool(self, kernel_size, output_size, random_samples, 2)


@composite(
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)"
)
def fractional_max_pool3d(self, kernel_size, output_size, random_samples):
    return _pool(self, kernel_size, output_size, random_samples, 3)
