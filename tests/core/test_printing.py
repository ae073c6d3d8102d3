"""Printing of tensors: golden texts, and torch's own repr on random tensors."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest

from rushlight.core.dtype import ALL, bfloat16, float16, float32, float64, from_name, from_numpy_dtype, int32, int64
from rushlight.core.printing import PrintOptions, format_meta, format_tensor, get_printoptions, set_printoptions


@pytest.fixture(autouse=True)
def default_options():
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text(values, numpy_dtype=None, **arguments):
    array = np.asarray(values, dtype=numpy_dtype)
    return format_tensor(array, from_numpy_dtype(array.dtype), **arguments)


F32 = np.float32
NAN, INF = float("nan"), float("inf")

GOLDEN = [
    (text([1.0, 2.0], F32), "tensor([1., 2.])"),
    (text([1.5, -2.0], F32), "tensor([ 1.5000, -2.0000])"),
    (text([1.0, NAN, -0.0, INF], F32), "tensor([1., nan, -0., inf])"),
    (text([1e10, 1.0], F32), "tensor([1.0000e+10, 1.0000e+00])"),
    (text([1e-5], F32), "tensor([1.0000e-05])"),
    (text([0.0, NAN], F32), "tensor([0., nan])"),
    (text(-0.0, F32), "tensor(-0.)"),
    (text(3), "tensor(3)"),
    (text(True), "tensor(True)"),
    (text([[1, -20], [300, 4]]), "tensor([[  1, -20],\n        [300,   4]])"),
    (text([True, False]), "tensor([ True, False])"),
    (text([1, 2], np.uint8), "tensor([1, 2], dtype=torch.uint8)"),
    (text([1.5, 2.0]), "tensor([1.5000, 2.0000], dtype=torch.float64)"),
    (text([1.3, 1.0], np.float16), "tensor([1.2998, 1.0000], dtype=torch.float16)"),
    (text([1.3, 1.0], ml_dtypes.bfloat16), "tensor([1.2969, 1.0000], dtype=torch.bfloat16)"),
    (text([1.5 + 2j, 1 - 3.25j], np.complex64), "tensor([1.5000+2.0000j, 1.0000-3.2500j])"),
    (text([complex(1, NAN), complex(-INF, -0.0)], np.complex64), "tensor([1.+nanj, -inf-0.j])"),
    (text(1 + 2j), "tensor(1.+2.j, dtype=torch.complex128)"),
    (text([], F32), "tensor([])"),
    (text(np.zeros((2, 0, 3)), np.int64), "tensor([], size=(2, 0, 3), dtype=torch.int64)"),
    (text([], np.bool_), "tensor([], dtype=torch.bool)"),
    (text([1.0], F32, requires_grad=True), "tensor([1.], requires_grad=True)"),
    (text([1.0], F32, requires_grad=True, grad_fn_name="AddBackward0"), "tensor([1.], grad_fn=<AddBackward0>)"),
    (text([1.0], F32, device="cuda:0"), "tensor([1.], device='cuda:0')"),
    (text([1.0], F32, default_dtype=float64), "tensor([1.], dtype=torch.float32)"),
    (text([1.0 + 1j], default_dtype=float64), "tensor([1.+1.j])"),
    (text(np.arange(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (text([[1], [2]], prefix="Buffer("), "Buffer([[1],\n        [2]])"),
]


@pytest.mark.parametrize(("printed", "expected"), GOLDEN, ids=[expected for _, expected in GOLDEN])
def test_golden(printed, expected):
    assert printed == expected


def test_blank_lines_stand_between_matrices():
    assert text(np.arange(8).reshape(2, 2, 2)) == (
        "tensor([[[0, 1],\n"
        "         [2, 3]],\n"
        "\n"
        "        [[4, 5],\n"
        "         [6, 7]]])"
    )


def test_rows_are_cut_in_the_middle():
    assert text(np.arange(2200).reshape(11, 200)) == (
        "tensor([[   0,    1,    2,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  397,  398,  399],\n"
        "        [ 400,  401,  402,  ...,  597,  598,  599],\n"
        "        ...,\n"
        "        [1600, 1601, 1602,  ..., 1797, 1798, 1799],\n"
        "        [1800, 1801, 1802,  ..., 1997, 1998, 1999],\n"
        "        [2000, 2001, 2002,  ..., 2197, 2198, 2199]])"
    )


def test_long_rows_wrap_at_the_line_width():
    assert text(np.arange(100, 125)) == (
        "tensor([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113,\n"
        "        114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124])"
    )


def test_suffix_moves_to_a_line_of_its_own():
    assert text(np.arange(100, 114), np.int32) == (
        "tensor([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113],\n"
        "       dtype=torch.int32)"
    )


def test_any_strides():
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert format_tensor(array.T[::-2], int64) == "tensor([[ 3,  7, 11],\n        [ 1,  5,  9]])"
    row = np.lib.stride_tricks.as_strided(array, (2, 3), (0, 8))
    assert format_tensor(row, int64) == "tensor([[0, 1, 2],\n        [0, 1, 2]])"


def test_meta_tensors():
    assert format_meta((2, 3), float32) == "tensor(..., device='meta', size=(2, 3))"
    assert format_meta((2,), int64) == "tensor(..., device='meta', size=(2,), dtype=torch.int64)"
    assert format_meta((), float16, requires_grad=True) == (
        "tensor(..., device='meta', size=(), dtype=torch.float16, requires_grad=True)"
    )


def test_print_options():
    set_printoptions(precision=2, edgeitems=1, threshold=5)
    assert get_printoptions() == PrintOptions(precision=2, edgeitems=1, threshold=5)
    assert text([0.126, 1.0, 2.0], F32) == "tensor([0.13, 1.00, 2.00])"
    assert text(range(6)) == "tensor([0,  ..., 5])"
    set_printoptions(sci_mode=True)
    assert text([1.0], F32) == "tensor([1.00e+00])"
    set_printoptions(profile="short")
    assert get_printoptions() == PrintOptions(precision=2, edgeitems=2)
    set_printoptions(profile="full", linewidth=20)
    assert text(range(2000)).count("\n") == 999
    assert text([1.0], F32, options=PrintOptions(sci_mode=True)) == "tensor([1.0000e+00])"
    with pytest.raises(ValueError, match="unknown profile 'long', expected one of default, short, full"):
        set_printoptions(profile="long")


# Against torch, character by character


def random_shape(generator):
    shape = [generator.choice([0, 1, 2, 3, 4, 5, 7, 8, 12, 30]) for _ in range(generator.randint(0, 4))]
    if shape and generator.random() < 0.2:
        shape[generator.randrange(len(shape))] = generator.choice([40, 1001, 2000])
    while np.prod(shape) > 50_000:
        shape.pop(0)
    return shape


def random_floats(generator, numpy_generator, count):
    values = numpy_generator.standard_normal(count) * 10.0 ** generator.choice([-6, -4, -2, 0, 0, 0, 2, 3, 5, 9])
    kind = generator.random()
    if kind < 0.2:
        values *= 10.0 ** numpy_generator.integers(-5, 5, count)
    elif kind < 0.4:
        values = np.round(values)
    elif kind < 0.5:
        values[:] = 0
    for special in (NAN, INF, -INF, -0.0, 0.0):
        if generator.random() < 0.15:
            values[numpy_generator.random(count) < 0.1] = special
    return values


def random_array(generator, dtype):
    numpy_generator = np.random.default_rng(generator.randrange(1 << 30))
    shape = random_shape(generator)
    count = int(np.prod(shape))
    if dtype.is_complex:
        values = random_floats(generator, numpy_generator, count) + 0j
        values.imag = random_floats(generator, numpy_generator, count)
    elif dtype.is_floating_point:
        values = random_floats(generator, numpy_generator, count)
    else:
        limits = (0, 1) if dtype.name == "bool" else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
        digits = 10 ** generator.randint(1, 17)
        values = numpy_generator.integers(max(limits[0], -digits), min(limits[1], digits), count, endpoint=True)
    with np.errstate(over="ignore"):
        array = values.astype(dtype.numpy).reshape(shape)
    return array.swapaxes(0, -1) if array.ndim and generator.random() < 0.3 else array


def random_options(generator):
    if generator.random() < 0.5:
        return {"profile": "default"}
    return {
        "precision": generator.choice([0, 2, 4, 8]),
        "threshold": generator.choice([5, 50, 1000]),
        "edgeitems": generator.choice([0, 1, 2, 3, 5]),
        "linewidth": generator.choice([10, 40, 80, 120]),
        "sci_mode": generator.choice([None, None, True, False]),
    }


def to_torch(torch, array):
    """The array as a torch tensor; bfloat16 through its bits, which torch.from_numpy does not take."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@pytest.fixture
def torch_module():
    torch = pytest.importorskip("torch")
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ALL, ids=[dtype.name for dtype in ALL])
def test_matches_torch(dtype, torch_module):
    torch = torch_module
    generator = random.Random(f"printing {dtype.name}")
    for case in range(60):
        array = random_array(generator, dtype)
        options = random_options(generator)
        set_printoptions(**options)
        torch.set_printoptions(**options)
        default = generator.choice(["float32", "float64"])
        torch.set_default_dtype(getattr(torch, default))
        tensor = to_torch(torch, array)
        requires_grad = (dtype.is_floating_point or dtype.is_complex) and generator.random() < 0.2
        arguments = {"requires_grad": requires_grad, "default_dtype": from_name(default)}
        printed = format_tensor(array, dtype, **arguments)
        assert printed == repr(tensor.requires_grad_(requires_grad)), (case, options, array.shape)
        assert format_meta(array.shape, dtype, default_dtype=from_name(default)) == repr(tensor.detach().to("meta"))


@pytest.mark.oracle
def test_gradient_suffix_matches_torch(torch_module):
    torch = torch_module
    for length in range(1, 20):
        array = np.arange(length, dtype=np.float32)
        result = torch.from_numpy(array).requires_grad_() + 1
        assert format_tensor(array + 1, float32, requires_grad=True, grad_fn_name="AddBackward0") == repr(result)


@pytest.mark.oracle
def test_dtype_names_match_torch(torch_module):
    for dtype in (bfloat16, float16, int32):
        assert str(dtype) == str(getattr(torch_module, dtype.name))
