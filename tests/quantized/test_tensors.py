"""Quantized tensors: values, views, printing, copies, refusals. Without torch."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rushlight as torch
from rushlight.core.dispatch_key import DispatchKey, DispatchKeySet


@pytest.fixture
def q():
    return torch.quantize_per_tensor(torch.tensor([[-1.0, 0.05, 0.15], [0.25, 2.0, 99.0]]), 0.1, 11, torch.quint8)


@pytest.fixture
def by_rows():
    scales, zero_points = torch.tensor([0.5, 0.25]), torch.tensor([1, -2])
    return torch.quantize_per_channel(torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), scales, zero_points, 0, torch.qint8)


def test_integers_round_half_to_even_with_the_zero_point(q):
    # 0.05 and 0.15 are 0.5 and 1.5 quanta: with the zero point 11.5 and 12.5, both nearest to the even 12; -1 is 1
    assert q.int_repr().tolist() == [[1, 12, 12], [14, 31, 255]]
    assert q.int_repr().dtype is torch.uint8
    np.testing.assert_allclose(q.dequantize().numpy(), [[-1.0, 0.1, 0.1], [0.3, 2.0, 24.4]], rtol=1e-6)


def test_facts_of_a_tensor(q, by_rows):
    assert q.is_quantized and not q.dequantize().is_quantized and q.dtype is torch.quint8 and q.element_size() == 1
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.1, 11, torch.per_tensor_affine)
    assert by_rows.qscheme() is torch.per_channel_affine and by_rows.q_per_channel_axis() == 0
    assert by_rows.q_per_channel_scales().tolist() == [0.5, 0.25] and by_rows.q_per_channel_zero_points().tolist() == [1, -2]
    assert by_rows.int_repr().tolist() == [[3, 5, 7], [2, 6, 10]]
    assert DispatchKeySet(q._impl.key_set).has(DispatchKey.QuantizedCPU)
    assert not DispatchKeySet(q._impl.key_set).has(DispatchKey.CPU)


def test_dtypes_have_names_sizes_and_no_promotion():
    assert [str(each) for each in (torch.quint8, torch.qint8, torch.qint32)] == ["torch.quint8", "torch.qint8", "torch.qint32"]
    assert [each.itemsize for each in (torch.quint8, torch.qint8, torch.qint32)] == [1, 1, 4]
    assert pickle.loads(pickle.dumps(torch.qint8)) is torch.qint8
    assert pickle.loads(pickle.dumps(torch.per_channel_affine)) is torch.per_channel_affine
    assert torch.promote_types(torch.quint8, torch.quint8) is torch.quint8
    with pytest.raises(RuntimeError, match="promoteTypes with quantized numbers"):
        torch.promote_types(torch.quint8, torch.float32)


def test_prints_as_torch_does(q, by_rows):
    assert repr(q[:, :2]) == (
        "tensor([[-1.0000,  0.1000],\n        [ 0.3000,  2.0000]], size=(2, 2), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=11)"
    )
    assert repr(by_rows) == (
        "tensor([[1., 2., 3.],\n        [1., 2., 3.]], size=(2, 3), dtype=torch.qint8,\n"
        "       quantization_scheme=torch.per_channel_affine,\n"
        "       scale=tensor([0.5000, 0.2500], dtype=torch.float64),\n       zero_point=tensor([ 1, -2]), axis=0)"
    )


def test_views_share_memory_and_quantizer(q):
    view = q.t()[1:].reshape(2, 2)
    assert view.q_scale() == 0.1 and view.int_repr().tolist() == [[12, 31], [12, 255]]
    row = q[0]
    row.fill_(0.4)
    assert q.int_repr()[0].tolist() == [15, 15, 15]
    q[1] = torch.tensor([0.0, 0.1, 0.2])
    assert q.int_repr()[1].tolist() == [11, 12, 13]


def test_views_with_a_scale_per_channel_keep_the_channels(by_rows):
    assert by_rows[1].qscheme() is torch.per_tensor_affine and by_rows[1].q_scale() == 0.25
    assert by_rows[:, 1].q_per_channel_axis() == 0 and by_rows[:, 1].dequantize().tolist() == [2.0, 2.0]
    assert by_rows.unsqueeze(0).q_per_channel_axis() == 1 and by_rows.unsqueeze(0).squeeze(0).q_per_channel_axis() == 0
    assert by_rows[1:].q_per_channel_scales().tolist() == [0.25]
    assert by_rows.index_select(0, torch.tensor([1, 0])).dequantize().tolist() == by_rows.dequantize().flip(0).tolist()
    for mixed in (lambda: by_rows.t(), lambda: by_rows.view(6), lambda: by_rows.expand(2, 2, 3)):
        with pytest.raises(RuntimeError):
            mixed()


@pytest.mark.parametrize("name", ["add", "mul", "matmul", "where", "sum", "exp", "softmax", "argmax", "cumsum", "neg"])
def test_operators_without_a_kernel_refuse(q, name):
    calls = {
        "add": lambda: q + q, "mul": lambda: q * 2, "matmul": lambda: q @ q.t(), "where": lambda: torch.where(q > 0, q, q),
        "softmax": lambda: torch.softmax(q, 0),
    }  # fmt: skip
    with pytest.raises(NotImplementedError, match="quantized|QuantizedCPU"):
        calls.get(name, lambda: getattr(torch, name)(*((q, 0) if name == "cumsum" else (q,))))()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8), RuntimeError, "above upper bound"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, -1, torch.quint8), RuntimeError, "below lower bound"),
        (lambda x: torch.quantize_per_tensor(x.double(), 0.1, 0, torch.quint8), RuntimeError, "Quantize only works on Float"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.uint8), RuntimeError, "not supported in new_qtensor"),
        (lambda x: torch.quantize_per_channel(x, torch.ones(3), torch.zeros(2), 0, torch.qint8), RuntimeError, "must match"),
        (lambda x: torch.quantize_per_channel(x, torch.ones(3), torch.zeros(3), 0, torch.qint8), RuntimeError, "equal to channel"),
        (lambda x: torch.quantize_per_channel(x, torch.ones(2), torch.zeros(2), 5, torch.qint8), RuntimeError, "out of range"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).numpy(), TypeError, "unsupported ScalarType QUInt8"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).float(), RuntimeError, "requires quantized dtype"),
        (lambda x: x.q_scale(), NotImplementedError, "q_scale"),
        (lambda x: x.int_repr(), NotImplementedError, "int_repr"),
        (lambda x: torch.zeros(2, dtype=torch.quint8), RuntimeError, "scale and a zero point"),
        (lambda x: torch.tensor([1.0], dtype=torch.qint8), RuntimeError, "quantize_per_tensor"),
        (lambda x: x.copy_(torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)), RuntimeError, "use dequantize"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).requires_grad_(), RuntimeError, "floating point"),
    ],
)  # fmt: skip
def test_bad_calls_say_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.ones(2, 2))


def test_copies_and_pickles(q, by_rows):
    for tensor in (q, by_rows, q.t()):
        for again in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.clone(), tensor.contiguous()):
            assert again.equal(tensor) and repr(again) == repr(tensor)
            assert again.data_ptr() != tensor.data_ptr() or again is tensor
    file = io.BytesIO()
    torch.save({"q": q, "by_rows": by_rows}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["q"].equal(q) and loaded["by_rows"].equal(by_rows)


def test_elements_of_four_bits_are_packed_in_files():
    values = torch.arange(10.0).reshape(2, 5)
    q = torch.quantize_per_channel(values, torch.tensor([1.0, 1.0]), torch.tensor([0.0, 3.5]), 0, torch.quint4x2)
    assert q.int_repr().tolist() == [[0, 1, 2, 3, 4], [8, 10, 10, 12, 12]]
    file = io.BytesIO()
    torch.save(q, file)
    file.seek(0)
    assert torch.load(file).equal(q)
    assert b"QUInt4x2Storage" in file.getvalue()


def test_comparisons_look_at_numbers(q):
    other = torch.quantize_per_tensor(q.dequantize(), 0.1, 100, torch.quint8)
    assert (q == other)[0].all() and not q.equal(other)
    assert (q > 0.2).tolist() == [[False, False, False], [True, True, True]]


def test_extremes_are_quantized_to_the_limits():
    x = torch.tensor([float("inf"), -float("inf"), 1e30, -1e30])
    assert torch.quantize_per_tensor(x, 0.1, 3, torch.qint8).int_repr().tolist() == [127, -128, 127, -128]
    assert torch.quantize_per_tensor(x, 0.1, 3, torch.qint32).int_repr().tolist() == [2**31 - 1, -(2**31)] * 2
    assert torch.quantize_per_tensor(torch.empty(0, 3), 0.1, 3, torch.quint8).dequantize().shape == (0, 3)
    assert torch.quantize_per_tensor(torch.tensor(0.26), 0.1, 3, torch.quint8).item() == pytest.approx(0.3)


def test_compiled_and_traced_functions_use_them():
    def f(x):
        return torch.relu(torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)).dequantize() + 1

    x = torch.randn(4, 5)
    expected = f(x).tolist()
    assert torch.compile(f)(x).tolist() == expected
    traced = torch.jit.trace(f, (x,))
    assert traced(x).tolist() == expected and "aten::quantize_per_tensor" in str(traced.graph)


def test_gradients_stop_where_there_is_no_derivative():
    x = torch.randn(2, 3, requires_grad=True)
    packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8), None)
    assert not torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize().requires_grad
    with pytest.raises(RuntimeError, match="derivative for quantized::linear_dynamic is not implemented"):
        torch.ops.quantized.linear_dynamic(x, packed).sum().backward()


def test_importing_the_library_leaves_the_operators_out():
    program = "import sys, rushlight; assert 'rushlight.quantized.operators' not in sys.modules; rushlight.quantize_per_tensor"
    program += "; assert 'rushlight.quantized.operators' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_share_packed_weights():
    packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.randn(8, 4000), 0.01, 0, torch.qint8), None)
    q = torch.quantize_per_tensor(torch.randn(3, 4000), 0.02, 120, torch.quint8)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: torch.ops.quantized.linear(q, packed, 0.5, 10).int_repr().tolist(), range(8)))
    assert all(each == found[0] for each in found)


def test_assert_close_compares_the_numbers(q):
    torch.testing.assert_close(q, torch.quantize_per_tensor(q.dequantize(), 0.1, 0, torch.quint8).clone(), atol=1.2, rtol=0)
    with pytest.raises(AssertionError, match="attribute 'is_quantized' do not match"):
        torch.testing.assert_close(q, q.dequantize())
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(q, q.clone().fill_(1.0))


def test_filled_tensors_keep_scale_and_layout():
    wide = torch.quantize_per_tensor(torch.randn(2, 4, 3, 4), 0.05, 3, torch.quint8)
    for source in (wide, wide[..., ::2], wide.contiguous(memory_format=torch.channels_last)):
        for made, integer in ((torch.zeros_like(source), 3), (torch.ones_like(source), 23), (torch.full_like(source, 0.3), 9)):
            assert made.is_quantized and made.q_scale() == 0.05 and made.shape == source.shape
            assert made.int_repr().unique().tolist() == [integer]


def test_masked_fill_in_place(q):
    made = q.masked_fill_(torch.tensor([[True, False, False], [False, False, True]]), 0.3)
    assert made is q and q.int_repr().tolist() == [[14, 12, 12], [14, 31, 14]]


def test_a_part_does_not_take_another_scale(q):
    other = torch.quantize_per_tensor(torch.ones(3), 0.2, 1, torch.quint8)
    with pytest.raises(RuntimeError, match="another scale"):
        q[0] = other
    q[0] = other.dequantize()
    assert q.q_scale() == 0.1 and q.int_repr()[0].tolist() == [21, 21, 21]
    assert q.copy_(torch.stack([other, other])).q_scale() == 0.2


def test_empty_tensors_have_strides():
    empty = torch.quantize_per_tensor(torch.zeros(0, 4, 5), 0.1, 3, torch.quint8)
    assert empty.stride() == empty.relu().stride() == empty.dequantize().stride() == (20, 5, 1)


def test_ranges_that_are_not_numbers():
    weight = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.ones(1, 2), 0.1, 0, torch.qint8), None)
    with pytest.raises(RuntimeError, match="min should be less than or equal to max"):
        torch.ops.quantized.linear_dynamic(torch.tensor([[float("nan"), 1.0]]), weight, False)
    assert torch.ops.quantized.linear_dynamic(torch.tensor([[1.0, float("inf")]]), weight, False).tolist() == [[float("inf")]]
    with pytest.raises(RuntimeError, match="below lower bound"):
        torch.quantize_per_tensor_dynamic(torch.tensor([1.0, float("inf")]), torch.quint8, False)


def test_factors_of_products_are_rounded_at_each_step():
    # 0.05 * 0.05 / 0.1 is a little more than 1/40 in float32: 60 products make 1.5 quanta, which round to 2.
    made = torch.ops.quantized.mul(*(torch._make_per_tensor_quantized_tensor(torch.tensor([n], dtype=torch.uint8), 0.05, 0)
                                     for n in (10, 6)), 0.1, 0)  # fmt: skip
    assert made.int_repr().item() == 2
