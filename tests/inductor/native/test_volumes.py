"""rushlight/volume.h against float64: convolutions over volumes, and the gradients of their input."""

from __future__ import annotations

import ctypes
import itertools
import os

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned
from tests.inductor.native.test_products import THREADS, longs, random, tolerance

# Size of the input, outputs, kernel, stride, padding, dilation, groups.
CASES = [
    ((1, 1, 9, 10, 33), 16, (3, 5, 7), (2, 2, 2), (1, 2, 3), (1, 1, 1), 1),
    ((2, 3, 4, 6, 32), 8, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 4, 5, 7, 16), 11, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 4, 5, 7, 18), 12, (2, 3, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((2, 6, 5, 4, 21), 9, (1, 2, 3), (1, 2, 3), (0, 1, 4), (1, 3, 2), 3),
    ((1, 5, 3, 3, 3), 5, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 5),
    ((1, 7, 2, 5, 9), 13, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((1, 2, 2, 2, 40), 2, (2, 2, 4), (2, 3, 16), (0, 1, 2), (1, 1, 1), 1),
    ((1, 3, 1, 1, 20), 3, (1, 1, 7), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((1, 170, 2, 4, 17), 3, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 2, 3, 3, 17), 2, (3, 3, 3), (1, 1, 1), (5, 4, 6), (1, 1, 1), 1),
]


def taps_of(size, kernel, stride, padding, dilation):
    """For each tap the slices of the padded input, and the sizes of the results."""
    extents = list(zip(size, kernel, stride, padding, dilation, strict=True))
    sizes = [(n + 2 * pad - spread * (taps - 1) - 1) // step + 1 for n, taps, step, pad, spread in extents]
    places = itertools.product(*map(range, kernel))
    return sizes, [
        (place, tuple(slice(at * d, at * d + (n - 1) * s + 1, s) for at, n, s, d in zip(place, sizes, stride, dilation, strict=True)))
        for place in places
    ]


def numbers(size, outputs, kernel, stride, padding, dilation, groups):
    axes = [value for axis in zip(size[2:], kernel, stride, padding, dilation, strict=True) for value in axis]
    return longs([size[0], size[1], outputs, groups, *axes])


def space_for(kernels, name, shape):
    """Scratch memory, with more behind it that must stay as it is."""
    threads = max(os.cpu_count() or 1, THREADS)
    return aligned(kernels.call(name, shape, threads, result=ctypes.c_long) // 4 + 64)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(kernels, case):
    size, outputs, kernel, stride, padding, dilation, groups = case
    x, weight = random(*size), random(outputs, size[1] // groups, *kernel, seed=1)
    sizes, taps = taps_of(size[2:], kernel, stride, padding, dilation)
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    split = padded.reshape(size[0], groups, -1, *padded.shape[2:])
    filters = weight.reshape(groups, outputs // groups, -1, *kernel).astype(np.float64)
    want = sum(
        np.einsum("ngcdhw,goc->ngodhw", split[(..., *part)], filters[(..., *place)]) for place, part in taps
    ).reshape(size[0], outputs, *sizes)
    shape, out = numbers(*case), np.full(want.shape, np.nan, np.float32)
    kernels.call("volumes", x, weight, out, shape, space_for(kernels, "volume_bytes", shape))
    np.testing.assert_allclose(out, want, rtol=0, atol=2 * tolerance(weight[0].size))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_input_gradient(kernels, case):
    size, outputs, kernel, stride, padding, dilation, groups = case
    sizes, taps = taps_of(size[2:], kernel, stride, padding, dilation)
    grad, weight = random(size[0], outputs, *sizes), random(outputs, size[1] // groups, *kernel, seed=1)
    whole = [n + 2 * pad for n, pad in zip(size[2:], padding, strict=True)]
    total = np.zeros((size[0], groups, size[1] // groups, *whole))
    split = grad.reshape(size[0], groups, -1, *sizes).astype(np.float64)
    filters = weight.reshape(groups, outputs // groups, -1, *kernel).astype(np.float64)
    for place, part in taps:
        total[(..., *part)] += np.einsum("ngodhw,goc->ngcdhw", split, filters[(..., *place)])
    inner = tuple(slice(pad, pad + n) for n, pad in zip(size[2:], padding, strict=True))
    want = total.reshape(size[0], size[1], *whole)[(..., *inner)]
    shape, out = numbers(*case), np.full(want.shape, np.nan, np.float32)
    packed = aligned(weight.size + 64)
    kernels.call("volumes_input", grad, weight, packed, out, shape, space_for(kernels, "volume_input_bytes", shape))
    np.testing.assert_allclose(out, want, rtol=0, atol=2 * tolerance(weight[0].size * 4))
