"""Network, product and indexing primitives give PyTorch's values in float32 and in bfloat16, within rounding."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.core.dtype import from_name
from rushlight.core.tensor import Tensor
from tests.ops.samples import Sample, map_tensors, samples
from tests.ops.torch_oracle import array_of, to_torch, torch_operator

pytestmark = pytest.mark.oracle
CHECKED = """_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data cumsum sort topk
convolution convolution_backward _scaled_dot_product_flash_attention_for_cpu cat index index_put index_select
gather scatter scatter_add embedding embedding_dense_backward constant_pad_nd native_layer_norm
native_batch_norm native_batch_norm_backward max_pool2d_with_indices max_pool2d_with_indices_backward
avg_pool2d avg_pool2d_backward nll_loss_forward nll_loss_backward""".split()
# float16 takes the same way as bfloat16: it is computed in float32.
TOLERANCE = {"float32": 1e-4, "bfloat16": 8e-2}


def _taken(sample: Sample) -> bool:
    mask = sample.kwargs.get("attn_mask")
    return sample.op._schema.name in CHECKED and (mask is None or mask.is_floating_point())


def _cast(value: object, kind) -> object:
    """`value` with floating tensors and dtypes turned to `kind`, strides kept."""

    def change(tensor: Tensor) -> Tensor:
        return tensor.to(kind) if tensor.is_floating_point() else tensor

    return kind if isinstance(value, type(kind)) else map_tensors(value, change)


def _results(result: object) -> list:
    return list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("name", TOLERANCE)
@pytest.mark.parametrize("sample", [sample for sample in samples() if _taken(sample)], ids=str)
def test_lower_precision_agrees_with_torch(sample: Sample, name: str):
    torch = pytest.importorskip("torch")
    kind, tolerance = from_name(name), TOLERANCE[name]
    args, kwargs = _cast(sample.args, kind), {key: _cast(value, kind) for key, value in sample.kwargs.items()}
    args = [kind if value is rl.float64 else value for value in args]
    theirs = {key: to_torch(torch, value) for key, value in kwargs.items()}
    expected = _results(torch_operator(torch, sample.op)(*to_torch(torch, args), **theirs))
    for got, want in zip(_results(sample.op(*args, **kwargs)), expected, strict=True):
        if got is None:
            continue
        assert (tuple(got.shape), repr(got.dtype)) == (tuple(want.shape), repr(want.dtype))
        scale = max(1.0, float(np.abs(array_of(want)).max(initial=0)))
        np.testing.assert_allclose(array_of(got), array_of(want), rtol=tolerance, atol=tolerance * scale)


MIXED = {
    "mul": lambda a, b: a * b, "add": lambda a, b: a + b, "sub": lambda a, b: b - a, "div": lambda a, b: a / (b + 1),
    "power": lambda a, b: a ** (b * 0.1), "multiple": lambda a, b: b.add(a, alpha=2), "in place": lambda a, b: b.clone().mul_(a),
    "equal": lambda a, b: a == a.to(b.dtype), "element": lambda a, b: b * a[777], "of half": lambda a, b: a * b[3],
}  # fmt: skip


@pytest.mark.parametrize("function", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_integers_are_rounded_to_the_half_beside_them(function, kind):
    torch = pytest.importorskip("torch")
    found, expected = [
        function(library.arange(1000) * 7, ((library.arange(1000) % 37 + 1) / 8).to(getattr(library, kind)))
        for library in (rl, torch)
    ]
    assert str(found.dtype).endswith(str(expected.dtype).removeprefix("torch.")) and found.tolist() == expected.tolist()
