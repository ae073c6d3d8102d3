"""Every primitive gives PyTorch's values, sizes, strides and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight import random
from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from tests.ops.samples import Sample, samples
from tests.ops.torch_oracle import array_of, to_torch, torch_operator

pytestmark = pytest.mark.oracle
UNINITIALISED = ("empty.memory_format", "empty_strided.default")
# PyTorch's own keeps another workspace, and has no float64; tests/nn compares LSTM layers.
OTHERWISE_IN_TORCH = (
    "mkldnn_rnn_layer.default", "mkldnn_rnn_layer_backward.default",
    # PyTorch reads past the end of matrices that are no multiple of its tiles, and may crash; see tests/ops/test_quantized.py.
    "_weight_int8pack_mm.default",
    # PyTorch orders packed weights by the processor; tests/ao/test_weights.py compares their products.
    "_convert_weight_to_int4pack_for_cpu.default", "_weight_int4pack_mm_for_cpu.default",
    # Their normal numbers and their gradients are less exact in PyTorch; see tests/distributions.
    "_standard_gamma.default", "_standard_gamma_grad.default", "_dirichlet_grad.default",
)  # fmt: skip


def _torch_takes(sample: Sample) -> bool:
    if sample.is_own:
        return False
    # PyTorch's fused attention wants masks of the query's dtype, and its backward misreads others.
    mask = sample.kwargs.get("attn_mask")
    return str(sample.op).removeprefix("aten.") not in (*UNINITIALISED, *OTHERWISE_IN_TORCH) and (mask is None or mask.is_floating_point())


SAMPLES = [sample for sample in samples() if _torch_takes(sample)]


def _torch_arguments(torch, sample: Sample) -> list:
    """The positional arguments for PyTorch, which has no numbers in the place of tensors at this level."""

    def carried(value, kind):
        number_for_tensor = isinstance(value, float) and kind.is_tensor
        return torch.tensor(value, dtype=torch.float64) if number_for_tensor else to_torch(torch, value)

    types = [argument.type for argument in sample.op._schema.arguments]
    return [carried(value, kind) for value, kind in zip(sample.args, types, strict=False)]


def _as_list(result: object) -> list:
    return list(result) if isinstance(result, tuple | list) else [result]


def _wanted(sample: Sample, results: list) -> list:
    # PyTorch leaves gradients that were not asked for undefined or unset.
    mask = sample.args[-1]
    if not isinstance(mask, list) or not sample.op._schema.name.endswith("backward"):
        return results
    return [value for value, wanted in zip(results, mask, strict=True) if wanted]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_primitive_agrees_with_torch(sample: Sample):
    torch = pytest.importorskip("torch")
    args, kwargs = _torch_arguments(torch, sample), {key: to_torch(torch, v) for key, v in sample.kwargs.items()}
    torch.manual_seed(7)
    random.manual_seed(7)
    expected = _wanted(sample, _as_list(torch_operator(torch, sample.op)(*args, **kwargs)))
    for got, want in zip(_wanted(sample, _as_list(sample.call())), expected, strict=True):
        if not isinstance(got, Tensor):
            assert got == want
            continue
        assert (tuple(got.shape), repr(got.dtype)) == (tuple(want.shape), repr(want.dtype))
        if want.numel():
            assert got.stride() == want.stride()
        tolerance = 1e-6 if got.dtype is float32 else 1e-9
        expected = array_of(want)
        # A small sum of large products carries their rounding errors.
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0) if expected.dtype.kind in "fc" else 1.0
        np.testing.assert_allclose(array_of(got), expected, rtol=tolerance, atol=tolerance * min(largest, 100.0))
