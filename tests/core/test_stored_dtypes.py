"""Dtypes that tensors are stored in: unsigned integers, floats of 8 bits, complex numbers of two halves."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as rl

UNSIGNED = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
COMPUTED = (*UNSIGNED, *FLOAT8, "complex32")
NAMES = (*COMPUTED, "float4_e2m1fn_x2")
OTHERS = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def both(torch, action):
    """What an action gives in Rushlight and in torch: a value, or the type of the error."""

    def of(library):
        try:
            return action(library)
        except Exception as error:
            return type(error)

    return of(rl), of(torch)


def bytes_of(tensor) -> list[int]:
    return tensor.contiguous().view(-1).view(tensor_library(tensor).uint8).tolist()


def tensor_library(tensor):
    return rl if isinstance(tensor, rl.Tensor) else pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    torch = pytest.importorskip("torch")

    def facts(library):
        kind = getattr(library, name)
        return (
            repr(kind), kind.itemsize, kind.is_floating_point, kind.is_complex, kind.is_signed, str(kind.to_real()),
            pickle.loads(pickle.dumps(kind)) is kind, copy.copy(kind) is kind,
        )  # fmt: skip

    assert facts(rl) == facts(torch)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_limits(name):
    torch = pytest.importorskip("torch")
    for form in ("finfo", "iinfo"):
        ours, theirs = both(torch, lambda library: repr(getattr(library, form)(getattr(library, name))))  # noqa: B023
        assert ours == theirs or {ours, theirs} <= {TypeError, NotImplementedError}


@pytest.mark.oracle
@pytest.mark.parametrize("name", COMPUTED)
def test_promotion(name):
    torch = pytest.importorskip("torch")
    for other in (*OTHERS, *COMPUTED):
        for form in ("promote_types", "can_cast"):
            ours, theirs = both(
                torch, lambda library: str(getattr(library, form)(getattr(library, name), getattr(library, other)))  # noqa: B023
            )
            assert ours == theirs, (form, other)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
def test_casts_to_and_from_float8(name):
    torch = pytest.importorskip("torch")
    bits = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    edges = np.array([0, -0.0, 448, 464, 465, 500, 57344, 61440, 61441, 240, 248, 2**-9, 2**-10, np.inf, -np.inf], np.float32)
    numbers = np.concatenate([edges, bits.view(np.float32), np.random.default_rng(1).normal(0, 30, 50_000).astype(np.float32)])
    for kind in ("float32", "float64", "float16", "bfloat16"):
        ours, theirs = (
            library.from_numpy(numbers).to(getattr(library, kind)).to(getattr(library, name)) for library in (rl, torch)
        )
        np.testing.assert_array_equal(ours.float().numpy(), theirs.float().numpy())
        is_number = ~np.isnan(numbers)  # which of the NaNs a cast gives is not defined
        np.testing.assert_array_equal(ours.view(rl.uint8).numpy()[is_number], theirs.view(torch.uint8).numpy()[is_number])
    ours, theirs = (
        library.arange(256, dtype=library.uint8).view(getattr(library, name)).float().numpy() for library in (rl, torch)
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("name", (*UNSIGNED, "complex32"))
@pytest.mark.parametrize("other", OTHERS)
def test_casts_to_and_from_other_dtypes(name, other):
    torch = pytest.importorskip("torch")
    values = [0, 1, 2, 100, 255 if other not in ("int8",) else 100]

    def casts(library):
        there = library.tensor(values).to(getattr(library, other)).to(getattr(library, name))
        return bytes_of(there), there.to(getattr(library, other)).tolist()

    ours, theirs = both(torch, casts)
    assert ours == theirs


MADE = {
    "zeros": lambda torch, kind: torch.zeros(2, dtype=kind),
    "ones": lambda torch, kind: torch.ones(2, dtype=kind),
    "full": lambda torch, kind: torch.full((2,), 3, dtype=kind),
    "tensor": lambda torch, kind: torch.tensor([1, 2, 3], dtype=kind),
    "copy_": lambda torch, kind: torch.zeros(3, dtype=kind).copy_(torch.tensor([1.0, 2.0, 3.0])),
    "fill_": lambda torch, kind: torch.zeros(3, dtype=kind).fill_(2),
    "index": lambda torch, kind: torch.tensor([1, 2, 4], dtype=kind)[1:],
    "indices": lambda torch, kind: torch.tensor([1, 2, 4], dtype=kind)[torch.tensor([2, 0])],
    "mask": lambda torch, kind: torch.tensor([1, 2, 4], dtype=kind)[torch.tensor([True, False, True])],
    "cat": lambda torch, kind: torch.cat([torch.ones(1, dtype=kind)] * 2),
    "stack": lambda torch, kind: torch.stack([torch.ones(1, dtype=kind)] * 2),
    "transposed": lambda torch, kind: torch.ones(2, 3, dtype=kind).T.contiguous(),
    "repeat": lambda torch, kind: torch.ones(1, dtype=kind).repeat(3),
    "where": lambda torch, kind: torch.where(torch.tensor([True, False]), torch.ones(2, dtype=kind), torch.ones(2, dtype=kind)),
    "eq": lambda torch, kind: torch.ones(2, dtype=kind) == torch.ones(2, dtype=kind),
    "mul": lambda torch, kind: torch.full((2,), 2, dtype=kind) * torch.ones(2, dtype=kind),
    "clone": lambda torch, kind: torch.ones(2, dtype=kind).clone(),
    "deepcopy": lambda torch, kind: copy.deepcopy(torch.ones(2, dtype=kind)),
    "to_float": lambda torch, kind: torch.full((2,), 2, dtype=kind).to(torch.float32),
    "history": lambda torch, kind: torch.ones(2, requires_grad=True).to(kind),
    "meta": lambda torch, kind: torch.ones(2, dtype=kind, device="meta"),
    "dlpack": lambda torch, kind: torch.from_dlpack(torch.ones(2, dtype=kind)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("form", MADE)
def test_what_torch_supports(name, form):
    torch = pytest.importorskip("torch")
    if (name, form) == ("float8_e8m0fnu", "zeros"):
        pytest.skip("torch prints its smallest number as 0")
    ours, theirs = both(torch, lambda library: repr(MADE[form](library, getattr(library, name))))
    assert ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("form", ["add", "sub", "div", "exp", "sum", "sort", "cumsum", "max"])
def test_what_float8_cannot_do(name, form):
    torch = pytest.importorskip("torch")

    def compute(library):
        ones = library.ones(2, dtype=getattr(library, name))
        arguments = {"add": (ones,), "sub": (ones,), "div": (ones,), "cumsum": (0,)}.get(form, ())
        return getattr(ones, form)(*arguments).tolist()

    assert both(torch, compute) == (NotImplementedError, NotImplementedError)


def test_float8_promotes_with_nothing():
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and"):
        rl.ones(2, dtype=rl.float8_e4m3fn) + rl.ones(2)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_files_of_torch(name, writer):
    torch = pytest.importorskip("torch")
    source, target = (rl, torch) if writer == "ours" else (torch, rl)
    data = source.arange(16, dtype=source.uint8).view(getattr(source, name))
    file = io.BytesIO()
    source.save({"x": data[1:], "y": data}, file)
    file.seek(0)
    loaded = target.load(file, weights_only=True)
    assert loaded["x"].dtype is getattr(target, name) and bytes_of(loaded["y"]) == list(range(16))
    assert loaded["x"].untyped_storage().data_ptr() == loaded["y"].untyped_storage().data_ptr()


@pytest.mark.parametrize("name", (*UNSIGNED, "float8_e4m3fn", "float8_e5m2"))
def test_safetensors(name, tmp_path):
    data = rl.arange(16, dtype=rl.uint8).view(getattr(rl, name))
    rl.save_safetensors({"x": data}, tmp_path / "x.safetensors")
    loaded = rl.load_safetensors(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype is data.dtype and bytes_of(loaded) == list(range(16))


def test_numpy():
    for name in UNSIGNED:
        array = np.array([1, np.iinfo(name).max], name)
        made = rl.from_numpy(array)
        assert made.dtype is getattr(rl, name) and made.numpy() is not None and made.tolist() == array.tolist()
        assert rl.tensor(array).dtype is made.dtype and made.numpy().dtype == name
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        rl.ones(2, dtype=rl.complex32).numpy()


@pytest.mark.parametrize(("name", "value"), [("uint8", 256), ("int8", 128), ("uint16", 1 << 16), ("uint32", -(1 << 32))])
def test_integers_out_of_range(name, value):
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
        rl.tensor([value], dtype=getattr(rl, name))
    assert rl.tensor([-1], dtype=rl.uint16).tolist() == [65535]


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["add", "sub", "mul", "neg", "abs", "conj", "eq", "real"])
def test_complex_halves(form):
    torch = pytest.importorskip("torch")

    def compute(library):
        x = library.tensor([1 + 2j, -0.1j, 3.3]).chalf()
        y = library.view_as_complex(library.tensor([[0.1, 0.2], [1.0, 2.0], [-3.0, 0.5]]).half())
        made = getattr(x, form)
        made = made if form == "real" else made(*((y,) if form in ("add", "sub", "mul", "eq") else ()))
        return str(made.dtype), made.to(library.complex64).tolist()

    ours, theirs = both(torch, compute)
    assert ours == theirs


def test_gradients_pass_through_casts():
    for kind in (rl.float8_e4m3fn, rl.complex32):
        weight = rl.tensor([1.5, -2.25], requires_grad=True)
        (weight.to(kind).abs().to(rl.float32) * 2).sum().backward()
        assert weight.grad.tolist() == [2.0, -2.0]


def test_names_of_bits():
    for name in ("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "uint1", "uint7", "int1", "int7"):
        kind = getattr(rl, name)
        assert repr(kind) == f"torch.{name}" and pickle.loads(pickle.dumps(kind)) is kind
    with pytest.raises(NotImplementedError, match="not implemented for 'Bits8'"):
        rl.empty(2, dtype=rl.bits8).to(rl.int8)


@pytest.mark.parametrize("name", COMPUTED)
def test_compiled_and_scripted(name):
    kind = getattr(rl, name)
    x = rl.tensor([1.5, 2.25, 3.0])

    def function(x):
        y = x.to(kind)
        return y, (y * y).to(x.dtype) if not kind.is_complex else y.abs().to(x.dtype)

    wanted = function(x)
    for made in (rl.compile(function), rl.compile(function, backend="aot_eager"), rl.jit.trace(function, x)):
        for found, expected in zip(made(x), wanted, strict=True):
            assert found.dtype is expected.dtype and bytes_of(found) == bytes_of(expected)
