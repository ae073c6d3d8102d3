"""Products with sparse matrices."""

import pytest

import rushlight as torch


def test_products_where_a_matrix_has_elements():
    pattern = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    one = torch.arange(4.0).view(2, 2).requires_grad_()
    other = torch.arange(6.0).view(2, 3)
    found = torch.sparse.sampled_addmm(pattern, one, other, beta=0.5, alpha=2.0)
    product = (one @ other).detach()
    expected = (product * 2 + pattern.to_dense() * 0.5) * (pattern.to_dense() != 0)
    assert torch.equal(found.to_dense().detach(), expected)
    found.values().sum().backward()
    assert one.grad.tolist() == [[4.0, 16.0], [2.0, 8.0]]
    with pytest.raises(RuntimeError, match="Expected self to be a CSR tensor"):
        torch.sparse.sampled_addmm(torch.eye(2), one, other)
    with pytest.raises(RuntimeError, match="must match mat2"):
        torch.sparse.sampled_addmm(pattern, one, one)
