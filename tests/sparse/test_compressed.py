"""Compressed sparse tensors: parts, conversions, products and gradients agree with dense tensors, and with torch."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as rl

DENSE = [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]


def example(**options) -> rl.Tensor:
    return rl.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), **options)


def random_dense(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 6, 2))
    return (generator.normal(size=shape) * (generator.random(shape) < 0.5)).astype(np.float32)


def test_a_compressed_tensor_is_described_by_its_parts():
    s = example()
    assert s.layout is rl.sparse_csr and s.is_sparse_csr and not s.is_sparse
    assert (s.sparse_dim(), s.dense_dim(), s._nnz(), tuple(s.shape)) == (2, 0, 3, (2, 3))
    assert s.crow_indices().tolist() == [0, 2, 3] and s.col_indices().tolist() == [0, 2, 1]
    assert s.values().tolist() == [1, 2, 3] and s.to_dense().tolist() == DENSE
    transposed = s.t()
    assert transposed.layout is rl.sparse_csc and not transposed.is_sparse_csr
    assert transposed.ccol_indices().tolist() == [0, 2, 3] and transposed.row_indices().tolist() == [0, 2, 1]
    assert rl.sparse_csr_tensor([0, 1], [1], [2.0]).shape == (1, 2)


@pytest.mark.parametrize("seed", range(8))
def test_conversions_keep_the_elements(seed):
    whole = rl.from_numpy(random_dense(seed))
    for made in (whole.to_sparse_csr(), whole.to_sparse_csc(), whole.to_sparse().to_sparse_csr(), whole.to_sparse_csr()):
        for other in (made, made.to_sparse_coo(), made.to_sparse_csr(), made.to_sparse_csc(), made.clone(), made.t().t()):
            assert other.to_dense().equal(whole)
    assert whole.to_sparse_csc().to_sparse().is_coalesced()
    assert whole.to_sparse(layout=rl.sparse_csc).layout is rl.sparse_csc


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["to_sparse_csr", "to_sparse_csc", "to_sparse_coo"])
def test_products_agree_with_dense_ones(seed, method):
    whole = rl.from_numpy(random_dense(seed))
    sparse, other = getattr(whole, method)(), rl.randn(whole.shape[1], 3)
    expected = whole @ other
    for found in (sparse @ other, rl.mm(sparse, other), rl.sparse.mm(sparse, other), sparse.matmul(other), (other.t() @ sparse.t()).t()):
        assert rl.allclose(found, expected, atol=1e-5)
    assert rl.allclose(sparse.mv(other[:, 0]), expected[:, 0], atol=1e-5)
    added = rl.ones(whole.shape[0], 3)
    assert rl.allclose(rl.addmm(added, sparse, other, beta=2, alpha=3), added * 2 + expected * 3, atol=1e-5)
    assert (sparse * 2).to_dense().equal(whole * 2) and (sparse + sparse).to_dense().equal(whole * 2)
    assert (sparse + whole).equal(whole * 2) and (-sparse / 2).to_dense().equal(-whole / 2)


def test_gradients_reach_values_and_the_dense_factor():
    values = rl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = rl.arange(6.0).reshape(3, 2).requires_grad_()
    (rl.sparse_csr_tensor(rl.tensor([0, 2, 3]), rl.tensor([0, 2, 1]), values, (2, 3)) @ other).sum().backward()
    assert values.grad.tolist() == [1, 9, 5] and other.grad.tolist() == [[1, 1], [3, 3], [2, 2]]
    leaf = example(requires_grad=True)
    leaf.values().sum().backward()
    assert leaf.grad.layout is rl.sparse_csr and leaf.grad.values().tolist() == [1, 1, 1]


def test_copies_and_checkpoints():
    tensors = [example(), example().t(), example().to_sparse()]
    stream = io.BytesIO()
    rl.save(tensors, stream)
    stream.seek(0)
    for made in (copy.deepcopy(tensors), pickle.loads(pickle.dumps(tensors)), rl.load(stream)):
        assert [each.layout for each in made] == [each.layout for each in tensors]
        assert all(a.to_dense().equal(b.to_dense()) for a, b in zip(made, tensors, strict=True))
        made[0].values().fill_(0)
        assert tensors[0].to_dense().tolist() == DENSE
    for kind in (rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.jagged):
        assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize(
    ("compressed", "plain", "values", "message"),
    [
        ([0, 2, 3], [0, 7, 1], [1.0, 2.0, 3.0], "0 <= col_indices < ncols"),
        ([0, 2, 3], [0, -1, 1], [1.0, 2.0, 3.0], "0 <= col_indices < ncols"),
        ([0, 2], [0, 2, 1], [1.0, 2.0, 3.0], "number of rows plus one"),
        ([1, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], r"crow_indices\[..., 0\] == 0"),
        ([0, 4, 3], [0, 2, 1], [1.0, 2.0, 3.0], "<= ncols"),
        ([0, 2, 9], [0, 2, 1], [1.0, 2.0, 3.0], "== nnz"),
        ([0, 2, 3], [0, 2, 1], [1.0, 2.0], "must be equal to nnz"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(compressed, plain, values, message):
    with pytest.raises(RuntimeError, match=message):
        rl.sparse_csr_tensor(compressed, plain, values, (2, 3))


def test_order_is_checked_where_it_is_asked_for():
    parts = ([0, 2, 3], [2, 0, 1], [1.0, 2.0, 3.0], (2, 3))
    assert rl.sparse_csr_tensor(*parts).to_dense().tolist() == [[2, 0, 1], [0, 3, 0]]
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        rl.sparse_csr_tensor(*parts, check_invariants=True)
    with rl.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="sorted and distinct"):
        rl.sparse_csr_tensor(*parts)
    assert not rl.sparse.check_sparse_tensor_invariants.is_enabled()


def test_what_a_layout_lacks_is_refused():
    for call in (rl.ones(2).crow_indices, example().ccol_indices, example().coalesce, example().indices, rl.ones(2).values):
        with pytest.raises(RuntimeError, match="layout"):
            call()
    with pytest.raises(NotImplementedError):
        example().view(3, 2)
    with pytest.raises(NotImplementedError):
        rl.sparse_compressed_tensor([0, 1], [0], [[[1.0]]], layout=rl.sparse_bsr)
    with pytest.raises(TypeError, match="SparseCsr"):
        example().numpy()


def test_transposition_in_place():
    whole = rl.sparse_coo_tensor([[0], [2]], [1.0], (2, 3))
    assert whole.t_().to_dense().tolist() == [[0, 0], [0, 0], [1, 0]]
    kept = example()
    with pytest.raises(RuntimeError, match="in-place transposition"):
        kept.t_()
    assert kept.to_dense().tolist() == DENSE


def test_legacy_constructors():
    made = rl.sparse.FloatTensor(rl.tensor([[0, 1], [1, 0]]), rl.ones(2), rl.Size([2, 2]))
    assert isinstance(made, rl.sparse.FloatTensor) and made.to_dense().tolist() == [[0, 1], [1, 0]]
    assert rl.sparse.DoubleTensor(2, 3).dtype is rl.float64 and not isinstance(rl.ones(2), rl.sparse.FloatTensor)


@pytest.mark.oracle
class TestOracle:
    def test_printing(self):
        torch = pytest.importorskip("torch")
        for dtype in ("float32", "float64", "int64"):
            shown = []
            for library in (rl, torch):
                arguments = ([0, 2, 3], [0, 2, 1], [1, 2, 3], (2, 3))
                made = library.sparse_csr_tensor(*arguments, dtype=getattr(library, dtype))
                empty = library.sparse_csc_tensor([0, 0, 0], [], library.tensor([], dtype=getattr(library, dtype)), (4, 2))
                shown.append([repr(made), repr(made.t()), repr(empty)])
            assert shown[0] == shown[1]

    def test_index_conversions(self):
        torch = pytest.importorskip("torch")
        for library in (rl, torch):
            rows = library._convert_indices_from_coo_to_csr(library.tensor([0, 0, 2]), 4, out_int32=True)
            assert rows.tolist() == [0, 2, 2, 3, 3] and rows.dtype is library.int32
            found = library._convert_indices_from_csr_to_coo(rows, library.tensor([1, 2, 0], dtype=library.int32), transpose=True)
            assert found.tolist() == [[1, 2, 0], [0, 0, 2]] and found.dtype is library.int64

    def test_spdiags_and_softmax(self):
        torch = pytest.importorskip("torch")
        results = []
        for library in (rl, torch):
            arguments = (library.arange(12.0).reshape(3, 4), library.tensor([0, -1, 2]), (3, 5))
            made = library.sparse.spdiags(*arguments) if library is rl else torch.sparse.spdiags(*arguments)
            soft = library.sparse.log_softmax(library.tensor(DENSE).to_sparse(), 1)
            results.append((made.to_dense().tolist(), np.asarray(soft.to_dense().tolist())))
        assert results[0][0] == results[1][0]
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-6)

    def test_checkpoints(self):
        torch = pytest.importorskip("torch")
        whole = torch.tensor(DENSE)
        stream = io.BytesIO()
        torch.save([whole.to_sparse(), whole.to_sparse_csr(), whole.to_sparse_csc()], stream)
        for weights_only in (True, False):
            stream.seek(0)
            assert all(each.to_dense().tolist() == DENSE for each in rl.load(stream, weights_only=weights_only))
        stream = io.BytesIO()
        rl.save([example(), example().to_sparse(), example().to_sparse_csc()], stream)
        stream.seek(0)
        assert all(each.to_dense().tolist() == DENSE for each in torch.load(stream))

    def test_products_with_sparse_results(self):
        torch = pytest.importorskip("torch")
        for name in ("dsmm", "spmm", "smm", "hspmm", "hsmm", "sspaddmm"):
            shown = []
            for library in (rl, torch):
                matrix = library.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).to_sparse()
                first = (library.eye(3).to_sparse(),) if name == "sspaddmm" else ()
                found = getattr(library, name)(*first, matrix, library.arange(9.0).reshape(3, 3))
                shown.append(repr(found.coalesce() if found.is_sparse else found))
            assert shown[0] == shown[1]
