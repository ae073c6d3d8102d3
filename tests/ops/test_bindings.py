"""The public surface: overload choice, keywords, `out`, named results, and messages for wrong arguments."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import rushlight as rl
from rushlight.ops.packet import namespaces

aten = namespaces.aten


def test_overloads_are_chosen_by_arguments():
    x = rl.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert rl.max(x).item() == 4
    assert rl.max(x, 1).indices.tolist() == [0, 1]
    assert rl.max(x, rl.zeros(2, 2) + 2).tolist() == [[3, 2], [2, 4]]
    assert rl.pow(2, rl.tensor([3.0])).item() == 8 and rl.pow(x, 2)[0, 0].item() == 9
    assert rl.split(x, 1)[1].tolist() == [[2, 4]] and [part.shape for part in x.split([1, 1], 1)] == [(2, 1)] * 2
    assert [index.tolist() for index in rl.where(x > 2)] == [[0, 1], [0, 1]]


def test_the_choice_does_not_depend_on_earlier_calls():
    x = rl.ones(3)
    for number in (2, 2.0, rl.tensor(2.0), rl.tensor(2), np.float32(2), True):
        assert rl.mul(x, number).dtype is rl.float32
    assert x.sum(0).item() == x.sum([0]).item() == x.sum((0,)).item() == x.sum().item() == 3
    assert rl.zeros([2, 3]).shape == rl.zeros(2, 3).shape == rl.zeros((2, 3)).shape == rl.zeros(size=(2, 3)).shape


def test_zero_dim_tensors_stand_for_floats():
    low, high = rl.tensor(2.0), rl.tensor(3)
    assert 2 <= rl.empty(1).uniform_(low, high).item() <= 3
    assert rl.empty(1).normal_(rl.tensor(5), rl.tensor(0.0)).item() == 5
    for wrong in (rl.tensor([2.0]), rl.tensor(2.0, requires_grad=True), rl.tensor(1j)):
        with pytest.raises(TypeError, match="must be float, not Tensor"):
            rl.empty(1).uniform_(wrong, 3.0)
    rl.manual_seed(0)
    drawn = rl.normal(rl.zeros(2), rl.tensor(1.0))  # a tensor of deviations rather than a number
    rl.manual_seed(0)
    assert drawn.tolist() == rl.normal(rl.zeros(2), rl.ones(2)).tolist()


def test_an_asserted_tensor():
    rl._assert_async(rl.tensor(True))
    with pytest.raises(RuntimeError, match="told"):
        rl._assert_async(rl.tensor(0), "told")
    with pytest.raises(RuntimeError, match="nonzero value, but got zero"):
        rl._assert_async(rl.tensor([False]))


def test_zero_dim_tensors_stand_for_numbers():
    x = rl.arange(6)
    assert x[rl.tensor(2) :].tolist() == [2, 3, 4, 5]
    assert x.view(rl.tensor(2), 3).shape == x.view([rl.tensor(2), 3]).shape == (2, 3)
    assert rl.full((2,), rl.tensor(7)).tolist() == [7, 7]
    assert rl.zeros(np.int64(2), 3).shape == (2, 3)
    assert x.narrow(0, rl.tensor(1), 2).tolist() == [1, 2]


def test_keywords_have_torchs_and_numpys_names():
    x = rl.arange(6.0).view(2, 3)
    assert rl.sum(input=x, axis=0).tolist() == x.sum(dim=0).tolist() == [3, 5, 7]
    assert rl.sum(x, dim=1, keepdims=True).shape == (2, 1)
    assert rl.split(tensor=x, split_size_or_sections=1, dim=0)[0].shape == (1, 3)
    assert rl.zeros(2, dtype=float).dtype is rl.float64 and x.sum(dtype=int).dtype is rl.int64
    assert rl.ones(2, requires_grad=True).requires_grad and not rl.ones(2, requires_grad=False).requires_grad


def test_out_takes_the_result():
    x, out = rl.arange(3.0), rl.empty(3)
    assert rl.add(x, 1, out=out) is out and out.tolist() == [1, 2, 3]
    assert rl.add(x, 1, out=rl.empty(0)).tolist() == [1, 2, 3]
    assert rl.mul(x, 2, out=rl.empty(3, dtype=rl.float64)).dtype is rl.float64
    values, indices = rl.empty(0), rl.empty(0, dtype=rl.int64)
    rl.sort(x, descending=True, out=(values, indices))
    assert values.tolist() == [2, 1, 0] and indices.tolist() == [2, 1, 0]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        rl.add(x, 1, out=rl.empty(3, dtype=rl.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        rl.add(rl.ones(3, requires_grad=True), 1, out=out)
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not list"):
        rl.add(x, 1, out=[1])


def test_several_results_have_names():
    result = rl.max(rl.tensor([[1.0, 5.0]]), 1)
    assert isinstance(result, rl.return_types.max) and isinstance(result, tuple)
    assert result.values.tolist() == [5] and result.indices.tolist() == [1] and result[0] is result.values
    values, indices = rl.topk(rl.arange(4), 2)
    assert values.tolist() == [3, 2] and indices.tolist() == [3, 2]
    assert repr(rl.sort(rl.tensor([1]))) == "torch.return_types.sort(\nvalues=tensor([1]),\nindices=tensor([0]))"
    assert type(rl.var_mean(rl.ones(3))) is tuple
    assert rl.ones(2).min(0).values.item() == 1 and rl.ones(2).sort().indices.shape == (2,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.add("a"), TypeError, r"add\(\): argument 'other' \(position 2\) must be Tensor, not str"),
        (lambda x: rl.add(x), TypeError, r'add\(\) missing 1 required positional arguments: "other"'),
        (lambda x: x.neg(1), TypeError, r"neg\(\) takes 1 positional arguments but 2 were given"),
        (lambda x: x.neg(out=1, bad=2), TypeError, "got an unexpected keyword argument 'bad'"),
        (lambda x: rl.max(x, "a"), TypeError, r"received an invalid combination of arguments - got \(Tensor, str\)"),
        (lambda x: rl.max(x, y=1), TypeError, r"got \(Tensor, y=int\), but expected one of"),
        (lambda x: rl.add(x, x, requires_grad=True), TypeError, "unexpected keyword argument 'requires_grad'"),
        (lambda x: rl.maximum(1, 2), TypeError, "must be Tensor, not int"),
        (lambda x: rl.pow(2, 3), TypeError, "invalid combination of arguments"),
        (lambda x: rl.maximum(x, 2), TypeError, r"argument 'other' \(position 2\) must be Tensor, not int"),
        (lambda x: x.view("a"), TypeError, "argument|invalid combination"),
        (lambda x: x.sum(1.5), TypeError, "invalid combination of arguments"),
        (lambda x: x.nothing(), AttributeError, "'Tensor' object has no attribute 'nothing'"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(rl.ones(2))


def test_functions_say_what_they_are():
    assert rl.add.__name__ == "add" and rl.add.__doc__.startswith("input + alpha * other")
    assert list(inspect.signature(rl.add).parameters) == ["input", "other", "alpha", "out"]
    assert aten.add.Tensor.__doc__ == "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>" and str(aten.add) == "aten.add"
    assert aten.max.overloads() == list(aten.max) and set(aten.max.overloads()) == {"default", "dim", "other"}


def test_numbers_as_first_operands():
    x = rl.tensor([2, -5], dtype=rl.int8)
    assert rl.add(1, x, alpha=2).tolist() == [5, -9] and rl.sub(1, x).tolist() == rl.subtract(1, x).tolist() == [-1, 6]
    assert rl.mul(3, x).dtype is rl.multiply(3, x).dtype is rl.int8 and rl.mul(0.5, x).tolist() == [1, -2.5]
    assert rl.div(1, x).tolist() == rl.true_divide(1, x).tolist() == rl.divide(input=1, other=x).tolist() == [0.5, rl.tensor(-0.2)]
    assert rl.floor_divide(7, x).tolist() == rl.div(7, x, rounding_mode="floor").tolist() == [3, -2]
    assert rl.remainder(7, x).tolist() == [1, -3] and rl.bitwise_xor(3, x).tolist() == (3 ^ x).tolist()
    compiled = rl.compile(lambda x: (rl.sub(1, x), rl.div(1, x), rl.remainder(7, x)), fullgraph=True)
    assert [part.tolist() for part in compiled(x)] == [rl.sub(1, x).tolist(), rl.div(1, x).tolist(), [1, -3]]
    with pytest.raises(TypeError):
        rl.maximum(2, x)


def test_bounds_that_are_tensors_are_not_turned_into_numbers():
    x, low, high = rl.tensor([1, 5, 9]), rl.tensor(2.5), rl.tensor(6)
    for call in (lambda x, low, high: x.clamp(low, high), lambda x, low, high: rl.clip(x, min=low, max=high)):
        found = rl.compile(call, fullgraph=True)(x, low, high)
        assert found.tolist() == call(x, low, high).tolist() == [2.5, 5, 6] and found.dtype is rl.float32


@pytest.mark.parametrize("low, high", [(0.5, [2.0, 3.0, 4.0]), ([0.0, 1.0, 2.0], 3)])
def test_bounds_are_numbers_or_tensors(low, high):
    low, high = (rl.tensor(bound) if isinstance(bound, list) else bound for bound in (low, high))
    x = rl.tensor([1.0, 5.0, 9.0])
    for call in (x.clamp, x.clip, x.clone().clamp_):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            call(low, high)
    assert x.clamp(rl.tensor(2.0), 6).tolist() == x.clamp(2, rl.tensor(6.0)).tolist() == [2, 5, 6]


def test_einsum_with_lists_of_subscripts():
    x, y = rl.arange(6.0).view(2, 3), rl.arange(12.0).view(3, 4)
    assert rl.einsum(x, [0, 1], y, [1, 2], [2, 0]).tolist() == rl.einsum("ab,bc->ca", x, y).tolist()
    assert rl.einsum(x, [27, 1]).tolist() == rl.einsum("bB", x).tolist() == x.t().tolist()
    assert rl.einsum(x, [..., 0], [0, ...]).tolist() == x.t().tolist() and rl.einsum(x, [0, 1], []).item() == 15
    assert rl.compile(lambda x, y: rl.einsum(x, [0, 1], y, [1, 2]), fullgraph=True)(x, y).tolist() == (x @ y).tolist()


@pytest.mark.parametrize("call, error, message", [
    (lambda x: rl.einsum(x), ValueError, "must specify the equation string and at least one operand"),
    (lambda x: rl.einsum(x, [52, 0]), ValueError, r"not within the valid range \[0, 52\)"),
    (lambda x: rl.einsum("ij->k", x), RuntimeError, "output subscript k does not appear"),
    (lambda x: rl.einsum("ij->ii", x), RuntimeError, "output subscript i appears more than once"),
])  # fmt: skip
def test_equations_that_einsum_does_not_take(call, error, message):
    with pytest.raises(error, match=message):
        call(rl.ones(2, 2))


def test_functions_with_signatures_of_their_own():
    x = rl.ones(2, 3)
    assert rl.einsum("ij,kj->ik", x, x).tolist() == rl.einsum("ij,kj->ik", [x, x]).tolist() == [[3, 3], [3, 3]]
    assert [t.shape for t in rl.broadcast_tensors(rl.ones(3), x)] == [(2, 3)] * 2
    assert rl.broadcast_shapes((2, 1), (3,), 1) == rl.Size([2, 3])
    assert rl.norm(x).item() == x.norm().item() == pytest.approx(6**0.5) and x.norm(1, dim=1).tolist() == [3, 3]
    assert [part.tolist() for part in rl.nonzero(rl.tensor([0, 2]), as_tuple=True)] == [[1]]
    assert rl.is_tensor(x) and not rl.is_tensor(1) and rl.numel(x) == 6 and rl.is_floating_point(x)
    assert not rl.is_complex(x) and rl.is_nonzero(rl.tensor(2)) and rl.is_storage(x.untyped_storage())
    assert rl.typename(x) == "torch.FloatTensor" and rl.typename(1) == "int"
    assert rl.norm(x, "nuc").item() == pytest.approx(6**0.5)
    with pytest.raises(RuntimeError, match="Order x not supported"):
        rl.norm(x, "x")


def test_named_results_are_made_of_a_sequence():
    made = rl.return_types.max((1, 2))
    assert made == rl.return_types.max(range(1, 3)) and made.indices == 2
    with pytest.raises(TypeError, match="max\\(\\) takes a 2-sequence \\(3-sequence given\\)"):
        rl.return_types.max((1, 2, 3))
