"""rushlight/gemm.h, attention.h and conv.h against float64, at sizes that leave rests everywhere."""

from __future__ import annotations

import ctypes
import itertools
import os

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned

UNTOUCHED = -12345.0  # in memory behind what threads were given
THREADS = 8  # more than enough scratch for the threads of any test machine's first region


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tolerance(depth: int) -> float:
    """What a float32 sum of `depth` products of standard normal values may be off by."""
    return 2e-7 * depth + 2e-6


def longs(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def element_strides(array: np.ndarray) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def scratch(bytes_per_thread: int) -> np.ndarray:
    return aligned(bytes_per_thread // 4 * max(os.cpu_count() or 1, THREADS))


# ---- matrix products -----------------------------------------------------------------------------------------------


def run_gemm(kernels, a: np.ndarray, b: np.ndarray, by_panels: bool = False, rows_at_once: int = 0) -> np.ndarray:
    (rows, depth), columns = a.shape, b.shape[1]
    bias, out = random(columns, seed=5), np.full((rows, columns), np.nan, np.float32)
    packed = None if by_panels else aligned(kernels.call("packed_floats", depth, columns, result=ctypes.c_long))
    own = scratch(4 * kernels.call("own_panel_floats", depth, result=ctypes.c_long)) if by_panels else None
    strides = element_strides(a)[0], b, *element_strides(b)
    kernels.call("gemm_of", rows, a, *strides, bias, packed, own, out, columns, depth, rows_at_once)
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(out, exact, rtol=0, atol=tolerance(depth))
    return out


@pytest.mark.parametrize("columns", [1, 7, 16, 33, 96])
@pytest.mark.parametrize("depth", [1, 5, 64, 131])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 13, 37])
def test_gemm(kernels, rows, columns, depth, transposed):
    b = random(columns, depth).T if transposed else random(depth, columns)
    a = random(rows, depth, seed=1)
    packed = run_gemm(kernels, a, b)
    assert np.array_equal(run_gemm(kernels, a, b, by_panels=True), packed)


@pytest.mark.parametrize("rows", [*range(1, 27), 50, 143, 144, 145])
def test_gemm_of_any_rows(kernels, rows):
    run_gemm(kernels, random(rows, 40), random(40, 50))


@pytest.mark.parametrize("by_panels", [False, True])
def test_gemm_of_long_sums_goes_in_parts(kernels, by_panels):
    run_gemm(kernels, random(128, 4500), random(4500, 70, seed=1), by_panels)
    run_gemm(kernels, random(131, 4500), random(4500, 33, seed=1), by_panels)
    run_gemm(kernels, random(131, 4500), random(33, 4500, seed=1).T, by_panels, rows_at_once=64)


@pytest.mark.parametrize("rows", [0, 97, 128, 150])
@pytest.mark.parametrize("rows_at_once", [1, 32, 64, 96, 200])
def test_gemm_in_passes_of_rows(kernels, rows, rows_at_once):
    run_gemm(kernels, random(rows, 40), random(40, 70, seed=1), rows_at_once=rows_at_once)


def test_gemm_of_any_strides(kernels):
    run_gemm(kernels, random(37, 100)[:, :61], random(200, 90)[1:123:2, 5:80:3])


@pytest.mark.parametrize("rows, columns", [(1, 5), (32, 64), (33, 70), (60, 47)])
@pytest.mark.parametrize("depth", [1, 17, 130])
@pytest.mark.parametrize("by_columns", [False, True])
def test_gemm_turned(kernels, rows, columns, depth, by_columns):
    a = random(depth, rows).T if by_columns else random(rows, depth)
    b = random(columns, depth + 3, seed=1)[:, :depth].T
    out = np.full((rows, columns), np.nan, np.float32)
    packed = aligned(kernels.call("packed_floats", depth, rows, result=ctypes.c_long))
    kernels.call("gemm_turned_of", rows, a, *element_strides(a), b, depth + 3, packed, out, columns, depth)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=0, atol=tolerance(depth))


@pytest.mark.parametrize("rows, columns, depth", [(1, 5, 8), (7, 33, 20), (30, 64, 32), (13, 40, 3), (2, 3, 2100)])
@pytest.mark.parametrize("is_shared", [False, True])
def test_bgemm(kernels, rows, columns, depth, is_shared):
    batches = 5
    # Both operands transposed and plain, that is with unit stride along either dimension.
    for a_swap, b_swap in itertools.product([False, True], repeat=2):
        a = random(batches, depth, rows).swapaxes(1, 2) if a_swap else random(batches, rows, depth)
        b = (
            random(batches, columns, depth, seed=1).swapaxes(1, 2)
            if b_swap
            else random(batches, depth, columns, seed=1)
        )
        if is_shared:
            b = np.broadcast_to(b[:1], b.shape)
        out = np.full((batches, rows, columns), np.nan, np.float32)
        space = scratch(kernels.call("bgemm_bytes", depth, result=ctypes.c_long))
        kernels.call(
            "bgemm_any",
            rows,
            batches,
            a,
            longs(element_strides(a)),
            b,
            longs(element_strides(b)),
            out,
            columns,
            depth,
            space,
        )
        np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=0, atol=tolerance(depth))


@pytest.mark.parametrize("rows", [230, 1100])
@pytest.mark.parametrize("is_shared", [False, True])
def test_bgemm_in_passes(kernels, rows, is_shared):
    """Rows that no second-level cache holds, of whole numbers, whose sums are exact."""
    batches, columns, depth = 5, 70, 130
    a, b = np.rint(random(batches, rows, depth)), np.rint(random(batches, depth, columns, seed=1))
    if is_shared:
        b = np.broadcast_to(b[:1], b.shape)
    out = np.full((batches, rows, columns), np.nan, np.float32)
    space = scratch(kernels.call("bgemm_bytes", depth, result=ctypes.c_long))
    at = (longs(element_strides(array)) for array in (a, b))
    kernels.call("bgemm_any", rows, batches, a, next(at), b, next(at), out, columns, depth, space)
    assert np.array_equal(out, a @ b)


# ---- attention -----------------------------------------------------------------------------------------------------


def softmax_attention(q, k, v, scale, causal, added, kept):
    """The definition in float64; rows without any key give 0. Returns the result and the log-sum-exp."""
    scores = np.einsum("bhld,bhsd->bhls", q.astype(np.float64), k.astype(np.float64)) * scale
    if added is not None:
        scores = scores + added
    if kept is not None:
        scores = np.where(kept, scores, -np.inf)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    safe = np.where(total == 0, 1, total)
    lse = np.where(total == 0, 0, np.where(np.isneginf(top), 0, top) + np.log(safe))[..., 0]
    return np.einsum("bhls,bhsd->bhld", weights / safe, v.astype(np.float64)), lse


def run_attention(kernels, q, k, v, *, scale=0.2, causal=False, added=None, kept=None):
    batches, heads, rows, size = q.shape
    out = np.full((batches, rows, heads, size), np.nan, np.float32).swapaxes(1, 2)
    lse = np.full((batches, heads, rows), np.nan, np.float32)
    mask = added if added is not None else kept
    mask_at = (
        longs(element_strides(np.broadcast_to(mask, (batches, heads, rows, k.shape[2]))))
        if mask is not None
        else longs([0] * 4)
    )
    parts = [part for array in (q, k, v, out) for part in (array, longs(element_strides(array)))]
    null = ctypes.c_void_p(0)
    kernels.call(
        f"attention_{size}",
        *parts,
        lse,
        longs([batches, heads, rows, k.shape[2]]),
        float(scale),
        causal,
        null if added is None else added,
        null if kept is None else kept,
        mask_at,
    )
    want, want_lse = softmax_attention(q, k, v, scale, causal, added, kept)
    np.testing.assert_allclose(out, want, rtol=0, atol=4e-6)
    np.testing.assert_allclose(lse, want_lse, rtol=2e-6, atol=2e-6)


def heads_of(batches, heads, rows, size, seed):
    return random(batches, rows, heads, size, seed=seed).swapaxes(1, 2)


@pytest.mark.parametrize("size", [32, 37])
@pytest.mark.parametrize("rows, keys", [(1, 1), (1, 7), (1, 300), (2, 129), (5, 7), (33, 129), (128, 128), (70, 515)])
def test_attention(kernels, size, rows, keys):
    q, k, v = heads_of(2, 3, rows, size, 0), heads_of(2, 3, keys, size, 1), heads_of(2, 3, keys, size, 2)
    run_attention(kernels, q, k, v)
    run_attention(kernels, q, k, v, causal=True)


@pytest.mark.parametrize("rows", [45, 2])
@pytest.mark.parametrize("shape", [(2, 3, None, 150), (2, 1, 1, 150), (1, 1, None, 150), (1, 3, None, 1), (1, 1, 1, 1)], ids=str)
def test_attention_masks_broadcast(kernels, shape, rows):
    shape = [rows if size is None else size for size in shape]
    q, k, v = heads_of(2, 3, rows, 32, 0), heads_of(2, 3, 150, 32, 1), heads_of(2, 3, 150, 32, 2)
    run_attention(kernels, q, k, v, added=random(*shape, seed=3))
    run_attention(kernels, q, k, v, kept=random(*shape, seed=4) > -0.5)
    run_attention(kernels, q, k, v, kept=random(*shape, seed=4) > -0.5, causal=True)


@pytest.mark.parametrize("keys", [20, 300])
def test_attention_of_fully_masked_rows_is_zero(kernels, keys):
    q, k, v = heads_of(1, 2, 40, 32, 0), heads_of(1, 2, keys, 32, 1), heads_of(1, 2, keys, 32, 2)
    kept = np.ones((1, 1, 40, keys), bool)
    kept[:, :, 3] = False
    kept[:, :, 5, : keys - 4] = False
    run_attention(kernels, q, k, v, kept=kept)
    run_attention(kernels, q, k, v, added=np.where(kept, 0, -np.inf).astype(np.float32))


def test_attention_of_strided_heads(kernels):
    """No operand has a unit stride along D."""
    q, k, v = (random(1, 2, 64, rows, seed=rows)[:, :, ::2].swapaxes(2, 3) for rows in (40, 50, 51))
    run_attention(kernels, q, k, v[:, :, :50])


def test_attention_of_one_fully_masked_query_is_zero(kernels):
    q, k, v = heads_of(1, 2, 1, 32, 0), heads_of(1, 2, 300, 32, 1), heads_of(1, 2, 300, 32, 2)
    kept = np.zeros((1, 2, 1, 300), bool)
    kept[:, 1, :, 290:] = True  # of which the first two blocks of keys have none
    run_attention(kernels, q, k, v, kept=kept)
    run_attention(kernels, q, k, v, added=np.where(kept, 0, -np.inf).astype(np.float32))


@pytest.mark.parametrize("rows", [40, 1])
def test_attention_passes_nan_on(kernels, rows):
    q, k, v = heads_of(1, 2, rows, 32, 0), heads_of(1, 2, 50, 32, 1), heads_of(1, 2, 50, 32, 2)
    q[0, 0, rows // 6, 3] = np.nan
    with np.errstate(invalid="ignore"):
        run_attention(kernels, q, k, v)


# ---- convolution ---------------------------------------------------------------------------------------------------


def convolve(x, weight, stride, padding, dilation, groups):
    """The definition in float64, one kernel tap at a time."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    outputs, channels, kh, kw = weight.shape
    height = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    x = x.reshape(x.shape[0], groups, channels, *x.shape[2:])
    weight = weight.reshape(groups, outputs // groups, channels, kh, kw).astype(np.float64)
    out = np.zeros((x.shape[0], groups, outputs // groups, height, width))
    for ky, kx in itertools.product(range(kh), range(kw)):
        rows = slice(ky * dilation[0], ky * dilation[0] + (height - 1) * stride[0] + 1, stride[0])
        columns = slice(kx * dilation[1], kx * dilation[1] + (width - 1) * stride[1] + 1, stride[1])
        out += np.einsum("ngchw,goc->ngohw", x[:, :, :, rows, columns], weight[..., ky, kx])
    return out.reshape(x.shape[0], outputs, height, width)


def run_conv(kernels, x, weight, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    want = convolve(x, weight, stride, padding, dilation, groups)
    out, bias = np.full(want.shape, np.nan, np.float32), random(weight.shape[0], seed=9)
    shape = longs([*x.shape, weight.shape[0], *weight.shape[2:], *stride, *padding, *dilation, groups])
    size = kernels.call("conv_bytes", shape, result=ctypes.c_long) // 4
    threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    space = aligned(size * (threads + THREADS))
    space[:] = UNTOUCHED
    kernels.call("conv", x, weight, bias, out, shape, space)
    assert (space[size * threads :] == UNTOUCHED).all()
    depth = weight[0].size
    np.testing.assert_allclose(out, want + bias[:, None, None], rtol=0, atol=tolerance(depth))


@pytest.mark.parametrize("size", [(7, 7), (14, 13), (1, 40), (33, 5)])
@pytest.mark.parametrize("kernel, padding", [((1, 1), (0, 0)), ((3, 3), (1, 1)), ((3, 2), (0, 2)), ((1, 5), (0, 2))])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3)])
def test_conv2d(kernels, size, kernel, padding, stride):
    if size[0] + 2 * padding[0] < kernel[0]:
        pytest.skip("the kernel is larger than the image")
    run_conv(kernels, random(2, 5, *size), random(24, 5, *kernel, seed=1), stride, padding)


@pytest.mark.parametrize(
    "stride, padding, dilation", [((1, 1), (2, 2), (2, 2)), ((2, 1), (3, 1), (3, 1)), ((2, 2), (5, 4), (2, 3))]
)
def test_dilated_conv2d(kernels, stride, padding, dilation):
    run_conv(kernels, random(1, 3, 17, 23), random(7, 3, 3, 3, seed=1), stride, padding, dilation)


@pytest.mark.parametrize("groups, outputs", [(2, 48), (3, 9), (6, 6), (6, 18)])  # the last two depthwise
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("padding", [(1, 1), (0, 0)])
def test_grouped_and_depthwise_conv2d(kernels, groups, outputs, stride, padding):
    run_conv(kernels, random(2, 6, 19, 21), random(outputs, 6 // groups, 3, 3, seed=1), stride, padding, groups=groups)


@pytest.mark.parametrize("size", [(12, 11), (40, 40), (1, 200)])
def test_pointwise_grouped_conv2d(kernels, size):
    run_conv(kernels, random(2, 6, *size), random(8, 3, 1, 1, seed=1), groups=2)
    run_conv(kernels, random(1, 4, *size), random(48, 2, 1, 1, seed=1), groups=2)


def test_conv2d_of_many_channels_goes_in_parts(kernels):
    run_conv(kernels, random(1, 300, 9, 9), random(130, 300, 3, 3, seed=1), (1, 1), (1, 1))


def test_conv2d_of_wide_images(kernels):
    run_conv(kernels, random(1, 3, 40, 70), random(24, 3, 7, 7, seed=1), (2, 2), (3, 3))
