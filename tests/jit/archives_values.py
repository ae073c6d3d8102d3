"""Encodes values of the archive tests as JSON, so that an archive can carry the arguments and results of a call."""

from __future__ import annotations

import numpy as np

import rushlight


def encode(value: object) -> object:
    """A value of torch as plain data."""
    if hasattr(value, "detach"):
        return {"dtype": str(value.dtype).rpartition(".")[2], "shape": list(value.shape), "data": value.detach().flatten().tolist()}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return {"complex": [value.real, value.imag]} if isinstance(value, complex) else value


def decode(data: object) -> object:
    """The value, with tensors of rushlight."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(decode(item) for item in data["tuple"])
    if "dict" in data:
        return {decode(key): decode(item) for key, item in data["dict"]}
    if "complex" in data:
        return complex(*data["complex"])
    return rushlight.tensor(data["data"], dtype=getattr(rushlight, data["dtype"])).reshape(data["shape"])


def to_rushlight(value: object) -> object:
    """A value of torch converted to rushlight's tensors."""
    return decode(encode(value))


def assert_same(found: object, expected: object, where: str = "result") -> None:
    """Asserts that values with rushlight's tensors agree to float32's precision."""
    if isinstance(expected, rushlight.Tensor):
        assert found.dtype == expected.dtype and found.shape == expected.shape, where
        left, right = (each.detach().to(rushlight.float64).numpy() for each in (found, expected))
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5, err_msg=where)
    elif isinstance(expected, list | tuple):
        assert isinstance(found, type(expected)) and len(found) == len(expected), where
        for index, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_same(a, b, f"{where}[{index}]")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            assert_same(found[key], expected[key], f"{where}[{key!r}]")
    else:
        assert type(found) is type(expected) and (found == expected or found != found), (where, found, expected)
