

@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "matrix_rank", "cond"])
def test_what_needs_singular_values_refuses_matrices_that_are_not_finite(name, value):
    matrix = torch.tensor([[0.0, -1.9575, 0.0], [value, 1.0466, 1.6062], [1.2634, 0.4136, -1.1589]], dtype=torch.float64)
    with pytest.raises(torch.linalg.LinAlgError, match="non-finite values"):
        getattr(torch.linalg, name)(matrix)
    with pytest.raises(torch.linalg.LinAlgError, match="non-finite values"):
        torch.linalg.lstsq(matrix, torch.ones(3, 1, dtype=torch.float64))
