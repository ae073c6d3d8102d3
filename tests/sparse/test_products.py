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


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("sum", [[11.0, 14.0], [0.0, 0.0], [9.0, 12.0]]),
        ("mean", [[5.5, 7.0], [0.0, 0.0], [9.0, 12.0]]),
        ("amax", [[10.0, 12.0], [0.0, 0.0], [9.0, 12.0]]),
        ("amin", [[1.0, 2.0], [0.0, 0.0], [9.0, 12.0]]),
    ],
)
def test_products_of_a_rows_elements_are_reduced(reduce, expected):
    matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, -3.0, 0.0]]).to_sparse_csr()
    dense = torch.tensor([[1.0, 2.0], [-3.0, -4.0], [5.0, 6.0]])
    assert torch.sparse.mm(matrix, dense, reduce).tolist() == expected


def test_gradients_of_a_reduced_product_reach_the_chosen_elements():
    matrix = torch.tensor([[1.0, 2.0], [0.0, -3.0]]).to_sparse_csr().requires_grad_()
    dense = torch.tensor([[1.0], [4.0]], requires_grad=True)
    torch.sparse.mm(matrix, dense, "amax").sum().backward()
    assert matrix.grad.values().tolist() == [0.0, 4.0, 4.0]
    assert dense.grad.tolist() == [[0.0], [-1.0]]


def test_a_reduced_product_names_what_it_can_not_take():
    matrix = torch.eye(2)
    with pytest.raises(RuntimeError, match="layout SparseCsr and one of layout Strided, got Strided and Strided"):
        torch.sparse.mm(matrix, matrix, "sum")
    with pytest.raises(RuntimeError, match="got prod"):
        torch.sparse.mm(matrix.to_sparse_csr(), matrix, "prod")
