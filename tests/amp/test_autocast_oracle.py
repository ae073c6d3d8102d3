"""In an autocast region every operator of torch's lists gives torch's dtype."""

from __future__ import annotations

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

MODULES = {
    "LayerNorm": ((4,), (2, 4)),
    "BatchNorm1d": ((4,), (2, 4)),
    "Conv1d": ((3, 3, 3), (1, 3, 5)),
    "Conv2d": ((3, 3, 3), (1, 3, 5, 5)),
    "ConvTranspose2d": ((3, 3, 3), (1, 3, 5, 5)),
    "LSTM": ((4, 4), (2, 3, 4)),
    "GRU": ((4, 4), (2, 3, 4)),
    "LSTMCell": ((4, 4), (3, 4)),
    "TransformerEncoderLayer": ((4, 2, 8), (3, 2, 4)),
    "PReLU": ((), (3,)),
    "Softmax": ((0,), (3,)),
    "MaxPool3d": ((2,), (1, 2, 4, 4, 4)),
}
FUNCTIONS = {
    "mm": lambda t, a, b: t.mm(a, b),
    "matmul": lambda t, a, b: a @ b,
    "bmm": lambda t, a, b: t.bmm(a[None], b[None]),
    "addmm": lambda t, a, b: t.addmm(a, a, b),
    "baddbmm": lambda t, a, b: t.baddbmm(a[None], a[None], b[None]),
    "einsum": lambda t, a, b: t.einsum("ij,jk->ik", a, b),
    "cat": lambda t, a, b: t.cat([a, b]),
    "stack": lambda t, a, b: t.stack([a, b]),
    "mse_loss": lambda t, a, b: t.nn.functional.mse_loss(a, b),
    "huber_loss": lambda t, a, b: t.nn.functional.huber_loss(a, b),
    "cross_entropy": lambda t, a, b: t.nn.functional.cross_entropy(a, b.softmax(1)),
    "prod": lambda t, a, b: a.prod(),
    "sum": lambda t, a, b: a.sum(),
    "softmax": lambda t, a, b: a.softmax(0),
    "exp": lambda t, a, b: a.exp(),
    "add": lambda t, a, b: a + b,
    "pow": lambda t, a, b: a**2.5,
    "cumsum": lambda t, a, b: a.cumsum(0),
    "linalg.inv": lambda t, a, b: t.linalg.inv(a + t.eye(3)),
    "attention": lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a[None], a[None], a[None]),
    "mv": lambda t, a, b: t.mv(a, a[0]),
}  # fmt: skip


def dtype_of(result) -> str:
    while isinstance(result, tuple):
        result = result[0]
    return str(result.dtype)


@pytest.mark.parametrize("given", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, given):
    arguments, shape = MODULES[name]
    found = []
    for library in (rushlight, torch):
        module = getattr(library.nn, name)(*arguments)
        with library.autocast("cpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(dtype_of(module(library.ones(shape).to(getattr(library, given)))))
            except RuntimeError as error:
                if library is torch and "could not create a primitive" in str(error):
                    pytest.skip("torch has no such kernel for this processor")
                raise
    assert found[0] == found[1]


@pytest.mark.parametrize("given", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, given):
    found = []
    for library in (rushlight, torch):
        kind = getattr(library, given)
        a, b = library.ones(3, 3).to(kind), library.ones(3, 3).to(kind if given == "float64" else library.float32)
        with library.autocast("cpu"):
            found.append(dtype_of(FUNCTIONS[name](library, a, b)))
    assert found[0] == found[1]
