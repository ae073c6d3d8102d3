"""Docstrings of operators of `torch.linalg`, by name."""

DOCSTRINGS: dict[str, str] = {
    "linalg_cholesky": """The lower triangular L with A = L L^H, of Hermitian positive definite matrices.
LinAlgError for others.

Args:
    input (Tensor): the operand.
    upper (bool): whether the upper triangle is meant, not the lower.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.cholesky(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([[1.4142, 0.0000],
            [0.7071, 1.2247]])""",
    "linalg_cholesky_ex": """`cholesky` with an info of 0 where it succeeded, instead of errors.

Args:
    input (Tensor): the operand.
    upper (bool): whether the upper triangle is meant, not the lower.
    check_errors (bool): whether to raise an error where a matrix does not admit the factorization.

Example:
    >>> torch.linalg.cholesky_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).info
    tensor(0, dtype=torch.int32)""",
    "linalg_cond": """The condition number: the norm of A times that of its inverse, by default the ratio
of singular values.

Args:
    input (Tensor): the operand.
    p (Number | None): the probability, or the exponent of the norm.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.cond(torch.diag(torch.tensor([4.0, 2.0])))
    tensor(2.)""",
    "linalg_cross": """The vector product along a dimension of size 3.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])""",
    "linalg_det": """The determinants of square matrices.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.det(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor(3.)""",
    "linalg_diagonal": """A view of the diagonals of matrices.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    offset (int): which diagonal: above the main one if positive.
    dim1 (int): the first of two dimensions.
    dim2 (int): the second of two dimensions.

Example:
    >>> torch.linalg.diagonal(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([2., 2.])""",
    "linalg_eig": """Eigenvalues and eigenvectors of square matrices, complex, in no order (LAPACK's
geev).

Args:
    input (Tensor): the operand.

Example:
    >>> torch.linalg.eig(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.real.sort().values
    tensor([1., 3.])""",
    "linalg_eigh": """Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.

Args:
    input (Tensor): the operand.
    UPLO (str): which triangle is read: "L" or "U".

Example:
    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])""",
    "linalg_eigvals": """The eigenvalues of square matrices, complex.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.eigvals(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).real.sort().values
    tensor([1., 3.])""",
    "linalg_eigvalsh": """The eigenvalues of Hermitian matrices, ascending.

Args:
    input (Tensor): the operand.
    UPLO (str): which triangle is read: "L" or "U".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])""",
    "linalg_householder_product": """The first columns of a product of Householder reflections.

Args:
    input (Tensor): the operand.
    tau (Tensor): the factors of the reflections.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.householder_product(*torch.geqrf(torch.eye(2))).abs()
    tensor([[1., 0.],
            [0., 1.]])""",
    "linalg_inv": """The inverse of square matrices. LinAlgError for a singular one.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.inv(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([[ 0.6667, -0.3333],
            [-0.3333,  0.6667]])""",
    "linalg_inv_ex": """`inv` with an info of 0 where it succeeded, instead of errors.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    check_errors (bool): whether to raise an error where a matrix does not admit the factorization.

Example:
    >>> torch.linalg.inv_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).info
    tensor(0, dtype=torch.int32)""",
    "linalg_ldl_factor": """The factors of A = L D L^H of Hermitian matrices, indefinite ones too (Bunch and
Kaufman).

Args:
    input (Tensor): the operand.
    hermitian (bool): whether the matrices are symmetric or Hermitian.

Example:
    >>> torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).LD.shape
    torch.Size([2, 2])""",
    "linalg_ldl_factor_ex": """`ldl_factor` with an info instead of errors.

Args:
    input (Tensor): the operand.
    hermitian (bool): whether the matrices are symmetric or Hermitian.
    check_errors (bool): whether to raise an error where a matrix does not admit the factorization.

Example:
    >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).info
    tensor(0, dtype=torch.int32)""",
    "linalg_ldl_solve": """The solution of A X = B, given the factors of `ldl_factor`. RuntimeError for pivots
out of range.

Args:
    LD (Tensor): the factors in one matrix.
    pivots (Tensor): which rows were exchanged, counted from 1.
    B (Tensor): the right side: a matrix, or a batch of them.
    hermitian (bool): whether the matrices are symmetric or Hermitian.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]])), torch.ones(2, 1))
    tensor([[0.3333],
            [0.3333]])""",
    "linalg_lstsq": """X with the least ||A X - B||, residuals, rank and singular values.

Args:
    input (Tensor): the operand.
    b (Tensor): the right side.
    rcond (float | None): singular values below this share of the largest count as zero.
    driver (str | None): the LAPACK routine: "gelsy", "gelsd", "gels" or "gelss" for least squares; otherwise
        None.

Example:
    >>> torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [3.0]])).solution
    tensor([[2.]])""",
    "linalg_lu": """P, L and U with A = P L U.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    pivot (bool): whether rows are exchanged: always, on this device.

Example:
    >>> torch.linalg.lu(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).U
    tensor([[2.0000, 1.0000],
            [0.0000, 1.5000]])""",
    "linalg_lu_factor": """L and U in one matrix, and which rows were exchanged.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    pivot (bool): whether rows are exchanged: always, on this device.

Example:
    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    torch.return_types.linalg_lu_factor(
    LU=tensor([[2.0000, 1.0000],
            [0.5000, 1.5000]]),
    pivots=tensor([1, 2], dtype=torch.int32))""",
    "linalg_lu_factor_ex": """`lu_factor` with an info instead of errors.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    pivot (bool): whether rows are exchanged: always, on this device.
    check_errors (bool): whether to raise an error where a matrix does not admit the factorization.

Example:
    >>> torch.linalg.lu_factor_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).info
    tensor(0, dtype=torch.int32)""",
    "linalg_lu_solve": """The solution of A X = B (or X A = B), given the factors of `lu_factor`.

Args:
    LU (Tensor): the factors in one matrix.
    pivots (Tensor): which rows were exchanged, counted from 1.
    B (Tensor): the right side: a matrix, or a batch of them.
    left (bool): whether the matrix stands on the left of the unknowns.
    adjoint (bool): whether the adjoint system is solved.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]])), torch.ones(2, 1))
    tensor([[0.3333],
            [0.3333]])""",
    "linalg_matmul": """Another name of `torch.matmul`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.matmul(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.ones(2))
    tensor([3., 3.])""",
    "linalg_matrix_exp": """The exponential series of square matrices.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])""",
    "linalg_matrix_norm": """A norm of matrices: "fro", "nuc", inf, 1, 2 or their negatives.

Args:
    input (Tensor): the operand.
    ord (Number): which norm.
    dim (Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.matrix_norm(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor(3.1623)""",
    "linalg_matrix_power": """The n-th power of square matrices.

Args:
    input (Tensor): the operand.
    n (int): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.matrix_power(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 2)
    tensor([[5., 4.],
            [4., 5.]])""",
    "linalg_matrix_rank": """How many singular values are larger than a tolerance.

Args:
    input (Tensor): the operand.
    atol (Tensor | None): the absolute tolerance.
    rtol (Tensor | None): the relative tolerance.
    hermitian (bool): whether the matrices are symmetric or Hermitian.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.matrix_rank(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor(2)""",
    "linalg_multi_dot": """The product of several matrices, in the order that takes the fewest multiplications.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
    tensor([[6.]])""",
    "linalg_norm": """A norm of vectors or matrices, which `dim` tells apart.

Args:
    input (Tensor): the operand.
    ord (Number | None): which norm.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)""",
    "linalg_pinv": """The Moore-Penrose inverse, by singular values.

Args:
    input (Tensor): the operand.
    atol (Tensor | None): the absolute tolerance.
    rtol (Tensor | None): the relative tolerance.
    hermitian (bool): whether the matrices are symmetric or Hermitian.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.pinv(torch.diag(torch.tensor([2.0, 0.0])))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])""",
    "linalg_qr": """Orthonormal Q and upper triangular R with A = Q R.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    mode (str): a name that says how.

Example:
    >>> torch.linalg.qr(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).R.abs()
    tensor([[2.2361, 1.7889],
            [0.0000, 1.3416]])""",
    "linalg_slogdet": """The sign of determinants and the logarithm of their magnitude.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.

Example:
    >>> torch.linalg.slogdet(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    torch.return_types.linalg_slogdet(
    sign=tensor(1.),
    logabsdet=tensor(1.0986))""",
    "linalg_solve": """The solution X of A X = B (or X A = B). LinAlgError for a singular matrix.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    B (Tensor): the right side: a matrix, or a batch of them.
    left (bool): whether the matrix stands on the left of the unknowns.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.solve(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.tensor([3.0, 3.0]))
    tensor([1., 1.])""",
    "linalg_solve_ex": """`solve` with an info instead of errors.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    B (Tensor): the right side: a matrix, or a batch of them.
    left (bool): whether the matrix stands on the left of the unknowns.
    check_errors (bool): whether to raise an error where a matrix does not admit the factorization.

Example:
    >>> torch.linalg.solve_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.tensor([3.0, 3.0])).info
    tensor(0, dtype=torch.int32)""",
    "linalg_solve_triangular": """The solution of a triangular system.

Args:
    input (Tensor): the operand.
    B (Tensor): the right side: a matrix, or a batch of them.
    upper (bool): whether the upper triangle is meant, not the lower.
    left (bool): whether the matrix stands on the left of the unknowns.
    unitriangular (bool): whether the diagonal counts as ones.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.solve_triangular(torch.eye(2) * 2, torch.ones(2, 1), upper=True)
    tensor([[0.5000],
            [0.5000]])""",
    "linalg_svd": """U, singular values S, descending, and V^H with A = U diag(S) V^H.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    full_matrices (bool): whether U and V are square.
    driver (str | None): the LAPACK routine: "gelsy", "gelsd", "gels" or "gelss" for least squares; otherwise
        None.

Example:
    >>> torch.linalg.svd(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).S
    tensor([3., 1.])""",
    "linalg_svdvals": """The singular values, descending.

Args:
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    driver (str | None): the LAPACK routine: "gelsy", "gelsd", "gels" or "gelss" for least squares; otherwise
        None.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.svdvals(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([3., 1.])""",
    "linalg_tensorinv": """The inverse with respect to `tensordot`.

Args:
    input (Tensor): the operand.
    ind (int): how many dimensions the result's inverse has in front.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape
    torch.Size([4, 2, 2])""",
    "linalg_tensorsolve": """X with tensordot(A, X) = B.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    dims (Sequence[int] | None): the dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
    tensor([1., 1., 1., 1.])""",
    "linalg_vander": """Powers 0 to N - 1 of the elements, as columns.

Args:
    x (Tensor): the first operand.
    N (int | None): the number of columns or points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])""",
    "linalg_vecdot": """The sums of products along a dimension, the first operand conjugated.

Args:
    x (Tensor): the first operand.
    y (Tensor): the second operand, or the values of a function.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)""",
    "linalg_vector_norm": """The p-norm of vectors: (sum of |x|^p)^(1/p), the largest |x| for inf, the number of
x not 0 for 0.

Args:
    input (Tensor): the operand.
    ord (Number): which norm.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)""",
}
