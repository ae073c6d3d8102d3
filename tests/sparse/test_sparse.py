"""Sparse COO tensors: their parts share memory, arithmetic agrees with dense tensors, gradients are sparse, printing is torch's."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl


def example(**options) -> rl.Tensor:
    return rl.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), **options)


DENSE = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]


def random_sparse(seed: int) -> rl.Tensor:
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 5, 2))
    count = int(generator.integers(0, 8))
    indices = np.stack([generator.integers(0, size, count) for size in shape])
    return rl.sparse_coo_tensor(rl.from_numpy(indices), rl.from_numpy(generator.normal(size=count)), shape)


def test_a_sparse_tensor_is_described_by_its_parts():
    s = example()
    assert s.is_sparse and s.layout is rl.sparse_coo and s.shape == (2, 3) and s.dtype is rl.float32
    assert (s.sparse_dim(), s.dense_dim(), s._nnz(), s.is_coalesced()) == (2, 0, 3, False)
    assert s.to_dense().tolist() == DENSE and not s.to_dense().is_sparse and s.to_dense().layout is rl.strided
    hybrid = rl.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [3.0, 4.0]])
    assert hybrid.shape == (2, 2) and hybrid.dense_dim() == 1 and hybrid.to_dense().tolist() == [[0, 0], [4, 6]]
    empty = rl.sparse_coo_tensor(size=(2, 3), dtype=rl.float64)
    assert empty._nnz() == 0 and empty.is_coalesced() and empty.to_dense().tolist() == [[0] * 3] * 2
    dense = rl.zeros(2, 3)
    assert dense.to_dense() is dense and (dense.sparse_dim(), dense.dense_dim()) == (0, 2)


def test_values_and_indices_are_views():
    s = rl.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).coalesce()
    assert s.is_coalesced() and s.coalesce() is s
    assert s.indices().tolist() == [[0, 1], [0, 2]] and s.values().tolist() == [4, 8]
    values = s.values()
    assert values._is_view() and values._base is s and values.untyped_storage() == s._values().untyped_storage()
    values.mul_(2)
    assert s.to_dense().tolist() == [[8, 0, 0], [0, 0, 16]] and s._version == values._version == 1
    assert s.detach()._indices().untyped_storage() == s.indices().untyped_storage()
    given = rl.tensor([1.0, 2.0])
    assert rl.sparse_coo_tensor([[0, 1]], given)._values().untyped_storage() == given.untyped_storage()


@pytest.mark.parametrize("seed", range(20))
def test_arithmetic_agrees_with_dense_tensors(seed):
    s, dense = random_sparse(seed), random_sparse(seed).to_dense()
    other = random_sparse(seed)
    other._values().mul_(-3)
    right = rl.arange(float(dense.size(1) * 2), dtype=rl.float64).view(dense.size(1), 2)
    for got, expected in [
        (s.coalesce(), dense), (s + other, dense - 3 * dense), (s - other, 4 * dense), (s * 2, dense * 2), (2 * s, dense * 2),
        (s / 4, dense / 4), (-s, -dense), (s * dense, dense * dense), (s * other, -3 * dense * dense), (s.t(), dense.t()),
        (dense.to_sparse(), dense), (dense.to_sparse(1), dense), (rl.sparse.sum(s, 0), dense.sum(0)),
        (rl.sparse.sum(s, (1,)), dense.sum(1)), (s[0], dense[0]), (s.to(rl.float32), dense.float()), (s.clone(), dense),
    ]:  # fmt: skip
        np.testing.assert_allclose(got.to_dense().numpy(), expected.numpy(), rtol=1e-6, atol=1e-12)
        assert got.is_sparse
    for got, expected in [
        (s @ right, dense @ right), (rl.sparse.mm(s, right), dense @ right), (dense + s, 2 * dense),
        (rl.sparse.sum(s), dense.sum()), (rl.sparse.addmm(rl.ones(dense.size(0), 2), s, right), dense @ right + 1),
    ]:  # fmt: skip
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)
        assert not got.is_sparse


def test_writes_in_place():
    s = example()
    same = s.detach()
    s.mul_(2)
    assert same.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]] and s._version == 1
    s.add_(example())
    assert s.to_dense()[1].tolist() == [12, 0, 15]
    dense = rl.ones(2, 3)
    dense.add_(example(), alpha=2)
    assert dense[0].tolist() == [1, 1, 7]
    s.zero_()
    assert s._nnz() == 0


def test_gradients_of_sparse_tensors_are_sparse():
    s, w = example(requires_grad=True), rl.ones(3, 2, requires_grad=True)
    rl.sparse.mm(s, w).sum().backward()
    assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0, 0, 2], [2, 0, 2]]
    assert w.grad.tolist() == [[4, 4], [0, 0], [8, 8]]
    values = rl.tensor([3.0, 4.0], requires_grad=True)
    made = rl.sparse_coo_tensor([[0, 1], [2, 0]], values, (2, 3))
    (made.to_dense() * rl.arange(6.0).view(2, 3)).sum().backward()
    assert values.grad.tolist() == [2, 3]
    dense = rl.tensor(DENSE, requires_grad=True)
    (dense.to_sparse() * 3).coalesce().values().sum().backward()
    assert dense.grad.tolist() == [[0, 0, 3], [3, 0, 3]]


def test_embeddings_with_sparse_gradients():
    weight = rl.ones(4, 2, requires_grad=True)
    index = rl.tensor([1, 1, 3])

    def loss(**options):
        return rl.nn.functional.embedding(index, weight, sparse=True, **options).sum()

    loss().backward()
    assert weight.grad.is_sparse and not weight.grad.is_coalesced() and weight.grad._indices().tolist() == [[1, 1, 3]]
    loss(padding_idx=1).backward()
    assert weight.grad.is_sparse and weight.grad.to_dense()[:, 0].tolist() == [0, 2, 0, 2]
    (loss() + weight.sum()).backward()
    assert not weight.grad.is_sparse and weight.grad[:, 0].tolist() == [1, 5, 1, 4]
    weight.grad = None
    loss().backward()
    rl.optim.SGD([weight], lr=0.5).step()
    assert weight[:, 0].tolist() == [1, 0, 1, 0.5]


def test_softmax_over_the_given_elements():
    s = rl.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 2.0, 3.0], (2, 3))
    got = rl.sparse.softmax(s, 1).to_dense()
    assert got[1].tolist() == [0, 1, 0] and got[0, 1] == 0
    np.testing.assert_allclose(got[0, [0, 2]].numpy(), [1 / (1 + np.e), np.e / (1 + np.e)], rtol=1e-6)


def test_printing():
    assert repr(example()) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )
    assert repr(rl.sparse_coo_tensor(size=(2, 3))) == (
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=torch.sparse_coo)"
    )
    assert repr(example(dtype=rl.float64, requires_grad=True)).endswith(
        "nnz=3, dtype=torch.float64, layout=torch.sparse_coo,\n       requires_grad=True)"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: example().indices(), RuntimeError, "Cannot get indices on an uncoalesced tensor"),
        (lambda: example().values(), RuntimeError, "Cannot get values on an uncoalesced tensor"),
        (lambda: example().numpy(), TypeError, "can't convert Sparse layout tensor to numpy"),
        (lambda: example().view(6), NotImplementedError, r"use to_dense\(\) first"),
        (lambda: example().exp(), NotImplementedError, "Could not run 'aten::exp' with arguments from the 'SparseCPU' backend"),
        (lambda: example() + 1, RuntimeError, "can be added to a tensor only"),
        (lambda: example() + rl.ones(3, 2), RuntimeError, "expected sizes"),
        (lambda: example().fill_(1), NotImplementedError, "with 0 only"),
        (lambda: example().copy_(rl.ones(2, 3)), RuntimeError, "between dense and sparse"),
        (lambda: rl.ones(2).coalesce(), RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"),
        (lambda: rl.ones(2, 2).to_sparse(3), RuntimeError, "sparse_dim argument must be in >0 and <=2"),
        (lambda: rl.sparse_coo_tensor([[0, 5], [2, 0]], [3.0, 4.0], (2, 3)), RuntimeError, "size is 2 but found index 5"),
        (lambda: rl.sparse_coo_tensor([[0, -1]], [3.0, 4.0]), RuntimeError, "found negative index -1 for dim 0"),
        (lambda: rl.sparse_coo_tensor([[0, 1]], [3.0, 4.0, 5.0]), RuntimeError, "must have same nnz"),
        (lambda: rl.sparse_coo_tensor([[0, 1]], [3.0, 4.0], (2, 3)), RuntimeError, r"sparse_dim \(1\) \+ dense_dim \(0\)"),
        (lambda: rl.sparse_coo_tensor([0, 1], [3.0, 4.0]), RuntimeError, "indices must be sparse_dim x nnz"),
        (lambda: rl.sparse_coo_tensor([[0, 1]], [3.0, 4.0], pin_memory=True), RuntimeError, "pin_memory"),
        (lambda: rl.sparse_csc_tensor([0, 1], [0], [3.0], pin_memory=True), RuntimeError, "pin_memory"),
        (lambda: rl.sparse.mm(example(), rl.ones(2, 2)), RuntimeError, "inner sizes"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_and_stack_join_sparse_tensors(dim):
    first, second = example(), example(dtype=rl.float64)
    joined = rl.cat([first, second], dim)
    assert joined.is_sparse and joined.dtype is rl.float64
    assert joined.to_dense().tolist() == rl.cat([first.to_dense(), second.to_dense()], dim).tolist()
    assert rl.stack([first, first], dim).to_dense().tolist() == rl.stack([first.to_dense()] * 2, dim).tolist()


@pytest.mark.parametrize("dim", [0, 1])
def test_cat_joins_sparse_and_dense_dimensions(dim):
    hybrid = rl.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    joined = rl.cat([hybrid, hybrid * 2], dim)
    assert (joined.sparse_dim(), joined.dense_dim()) == (1, 1)
    assert joined.to_dense().tolist() == rl.cat([hybrid.to_dense(), hybrid.to_dense() * 2], dim).tolist()
    assert hybrid.unsqueeze(-1).shape == (3, 2, 1) and hybrid.unsqueeze(0).sparse_dim() == 2


def test_cat_refuses_what_it_cannot_join():
    with pytest.raises(RuntimeError, match="layout torch.strided was found at position 1"):
        rl.cat([example(), rl.ones(2, 3)])
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        rl.cat([example(), rl.sparse_coo_tensor([[0], [0]], [1.0], (2, 4))])
    with pytest.raises(RuntimeError, match="same: sparse_dim and dense_dim"):
        rl.cat([example(), rl.sparse_coo_tensor([[0]], [[1.0, 2.0, 3.0]], (2, 3))])


@pytest.mark.parametrize("function", [rl.minimum, rl.atan2, rl.cdist])
def test_operators_without_a_sparse_kernel_refuse_sparse_operands_beside_dense_ones(function):
    with pytest.raises(NotImplementedError, match="'SparseCPU' backend"):
        function(rl.ones(2, 3), example())
