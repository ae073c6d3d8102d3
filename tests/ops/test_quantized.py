"""Products with 8-bit integers: values in float64, errors, and the compiled forms."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch

FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def _operands(rows: int, depth: int, columns: int, kind) -> tuple:
    torch.manual_seed(rows + depth)
    weight = torch.randint(-128, 128, (columns, depth), dtype=torch.int8)
    return torch.randn(rows, depth).to(kind), weight, (torch.rand(columns) * 0.01).to(kind)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1, 64, 48), (5, 7, 3), (13, 33, 70), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_weight_int8pack_mm(kind, shape, compiled):
    a, weight, scales = _operands(*shape, kind)
    function = torch.compile(torch._weight_int8pack_mm) if compiled else torch._weight_int8pack_mm
    got = function(a, weight, scales)
    want = (a.double() @ weight.double().t()) * scales.double()
    assert got.dtype is kind and got.shape == want.shape
    step = {torch.float32: 1e-6, torch.bfloat16: 2**-8, torch.float16: 2**-11}[kind]
    bound = step * (a.double().abs() @ weight.double().t().abs() * scales.double()) + 1e-30
    assert ((got.double() - want).abs() <= bound).all()


def test_compiled_takes_a_weight_as_constant():
    weight = torch.nn.Buffer(torch.randint(-128, 128, (40, 24), dtype=torch.int8))

    class Quantized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight
            self.scales = torch.nn.Buffer(torch.rand(40))

        def forward(self, x):
            return torch.relu(torch._weight_int8pack_mm(x, self.weight, self.scales))

    model, x = Quantized().eval(), torch.randn(3, 24)
    with torch.no_grad():
        np.testing.assert_allclose(torch.compile(model)(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("shape", [(1, 64, 48), (5, 7, 3), (37, 131, 70), (1, 1, 1), (4, 0, 3)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_int_mm(shape, compiled, transposed):
    rows, depth, columns = shape
    a = torch.randint(-128, 128, (rows, depth), dtype=torch.int8)
    b = torch.randint(-128, 128, (columns, depth), dtype=torch.int8).t()
    b = b if transposed else b.contiguous()
    got = (torch.compile(torch._int_mm) if compiled else torch._int_mm)(a, b)
    assert got.dtype is torch.int32
    np.testing.assert_array_equal(got.numpy(), a.numpy().astype(np.int32) @ b.numpy().astype(np.int32))


def test_errors_name_what_was_given():
    a, weight, scales = _operands(2, 3, 4, torch.float32)
    with pytest.raises(RuntimeError, match="int8 tensor, got torch.int32"):
        torch._weight_int8pack_mm(a, weight.int(), scales)
    with pytest.raises(RuntimeError, match="16-bit float tensor, got torch.float64"):
        torch._weight_int8pack_mm(a.double(), weight, scales)
    with pytest.raises(RuntimeError, match="1d tensor with size 4"):
        torch._weight_int8pack_mm(a, weight, scales[:3])
    with pytest.raises(RuntimeError, match=r"B.size\(1\) == 3"):
        torch._weight_int8pack_mm(a, weight.t(), scales)
    with pytest.raises(RuntimeError, match="dtype of A"):
        torch._weight_int8pack_mm(a, weight, scales.double())
    with pytest.raises(RuntimeError, match="needs to match"):
        torch._int_mm(weight, weight)
    with pytest.raises(RuntimeError, match="int8 but got torch.float32"):
        torch._int_mm(a, weight)
