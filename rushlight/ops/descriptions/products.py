"""Docstrings of operators that multiply matrices, and their older relatives, by name."""

DOCSTRINGS: dict[str, str] = {
    "matmul": """The matrix product of the last two dimensions, the others broadcast; a vector counts
as a row on the left, as a column on the right.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])""",
    "mm": """The product of two matrices.

Args:
    input (Tensor): the operand.
    mat2 (Tensor): the second matrix.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.mm(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.eye(2))
    tensor([[1., 2.],
            [3., 4.]])""",
    "bmm": """The products of two batches of matrices.

Args:
    input (Tensor): the operand.
    mat2 (Tensor): the second matrix.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bmm(torch.ones(1, 1, 2), torch.ones(1, 2, 1))
    tensor([[[2.]]])""",
    "mv": """The product of a matrix and a vector.

Args:
    input (Tensor): the operand.
    vec (Tensor): a vector.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.mv(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])""",
    "dot": """The sum of products of two vectors of the same length.

Args:
    input (Tensor): the operand.
    tensor (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)""",
    "vdot": """`dot` with the first vector conjugated.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)""",
    "inner": """The sums of products over the last dimensions of two tensors.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)""",
    "outer": """The products of each element of one vector with each of another.

Args:
    input (Tensor): the operand.
    vec2 (Tensor): the second vector.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])""",
    "ger": """Another name of `outer`.

Args:
    input (Tensor): the operand.
    vec2 (Tensor): the second vector.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ger(torch.tensor([1.0]), torch.tensor([3.0]))
    tensor([[3.]])""",
    "kron": """Kronecker's product: each element of one matrix times the other matrix.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.kron(torch.eye(2), torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2., 0., 0.],
            [0., 0., 1., 2.]])""",
    "addmm": """beta * input + alpha * mat1 @ mat2.

Args:
    input (Tensor): the operand.
    mat1 (Tensor): the first matrix.
    mat2 (Tensor): the second matrix.
    beta (Number): a factor for the input, or the curvature.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addmm(torch.ones(2, 2), torch.eye(2), torch.eye(2), beta=2)
    tensor([[3., 2.],
            [2., 3.]])""",
    "addmv": """beta * input + alpha * mat @ vec.

Args:
    input (Tensor): the operand.
    mat (Tensor): a matrix.
    vec (Tensor): a vector.
    beta (Number): a factor for the input, or the curvature.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addmv(torch.ones(2), torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([2., 3.])""",
    "addr": """beta * input + alpha * outer(vec1, vec2).

Args:
    input (Tensor): the operand.
    vec1 (Tensor): the first vector.
    vec2 (Tensor): the second vector.
    beta (Number): a factor for the input, or the curvature.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])""",
    "addbmm": """beta * input + alpha times the sum of the products of two batches.

Args:
    input (Tensor): the operand.
    batch1 (Tensor): the first batch of matrices.
    batch2 (Tensor): the second batch of matrices.
    beta (Number): a factor for the input, or the curvature.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addbmm(torch.zeros(1, 1), torch.ones(3, 1, 2), torch.ones(3, 2, 1))
    tensor([[6.]])""",
    "baddbmm": """beta * input + alpha * batch1 @ batch2.

Args:
    input (Tensor): the operand.
    batch1 (Tensor): the first batch of matrices.
    batch2 (Tensor): the second batch of matrices.
    beta (Number): a factor for the input, or the curvature.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.baddbmm(torch.ones(1, 1, 1), torch.ones(1, 1, 2), torch.ones(1, 2, 1))
    tensor([[[3.]]])""",
    "cross": """The vector product along a dimension of size 3.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])""",
    "matrix_power": """The n-th power of square matrices, of the inverse for negative n.

Args:
    input (Tensor): the operand.
    n (int): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])""",
    "matrix_exp": """The exponential series of square matrices.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])""",
    "trace": """The sum of the diagonal.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)""",
    "det": """The determinants of square matrices.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)""",
    "logdet": """The logarithm of determinants; NaN where one is negative.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logdet(torch.eye(2) * 2)
    tensor(1.3863)""",
    "slogdet": """The sign of determinants and the logarithm of their magnitude.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    torch.return_types.slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.6931))""",
    "inverse": """The inverse of square matrices. torch.linalg.LinAlgError for a singular one.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.inverse(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[-2.0000,  1.0000],
            [ 1.5000, -0.5000]])""",
    "pinverse": """The Moore-Penrose inverse.

Args:
    input (Tensor): the operand.
    rcond (float): singular values below this share of the largest count as zero.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pinverse(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])""",
    "cholesky": """L (or U) of positive definite matrices: A = L L^H. The older form of
`linalg.cholesky`.

Args:
    input (Tensor): the operand.
    upper (bool): whether the upper triangle is meant, not the lower.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cholesky(torch.eye(2) * 4)
    tensor([[2., 0.],
            [0., 2.]])""",
    "cholesky_inverse": """The inverse of a matrix, given its Cholesky factor.

Args:
    input (Tensor): the operand.
    upper (bool): whether the upper triangle is meant, not the lower.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cholesky_inverse(torch.eye(2) * 2)
    tensor([[0.2500, 0.0000],
            [0.0000, 0.2500]])""",
    "cholesky_solve": """The solution X of A X = input, given the Cholesky factor of A.

Args:
    input (Tensor): the operand.
    input2 (Tensor): the second operand.
    upper (bool): whether the upper triangle is meant, not the lower.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cholesky_solve(torch.ones(2, 1), torch.eye(2) * 2)
    tensor([[0.2500],
            [0.2500]])""",
    "lu_solve": """The solution of A X = input, given the LU factors of A.

Args:
    input (Tensor): the operand.
    LU_data (Tensor): the factors in one matrix.
    LU_pivots (Tensor): which rows were exchanged, counted from 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.lu_solve(torch.ones(2, 1), *torch.linalg.lu_factor(torch.eye(2) * 2))
    tensor([[0.5000],
            [0.5000]])""",
    "lu_unpack": """P, L and U of factors in one matrix.

Args:
    LU_data (Tensor): the factors in one matrix.
    LU_pivots (Tensor): which rows were exchanged, counted from 1.
    unpack_data (bool): whether L and U are wanted.
    unpack_pivots (bool): whether P is wanted.

Example:
    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.eye(2))).U
    tensor([[1., 0.],
            [0., 1.]])""",
    "qr": """Q and R with A = Q R. The older form of `linalg.qr`.

Args:
    input (Tensor): the operand.
    some (bool): whether only the columns that are needed are made.

Example:
    >>> torch.qr(torch.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]])""",
    "svd": """U, S and V with A = U diag(S) V^H. The older form of `linalg.svd`.

Args:
    input (Tensor): the operand.
    some (bool): whether only the columns that are needed are made.
    compute_uv (bool): whether U and V are wanted.

Example:
    >>> torch.svd(torch.diag(torch.tensor([3.0, 2.0]))).S
    tensor([3., 2.])""",
    "geqrf": """What LAPACK's geqrf gives: R above, reflections below the diagonal, and their
factors.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.geqrf(torch.eye(2)).a.shape
    torch.Size([2, 2])""",
    "orgqr": """Q of the reflections that `geqrf` gives.

Args:
    input (Tensor): the operand.
    input2 (Tensor): the second operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.orgqr(*torch.geqrf(torch.eye(2))).abs()
    tensor([[1., 0.],
            [0., 1.]])""",
    "ormqr": """The product of Q of `geqrf` and a matrix.

Args:
    input (Tensor): the operand.
    input2 (Tensor): the second operand.
    input3 (Tensor): the other factor.
    left (bool): whether the matrix stands on the left of the unknowns.
    transpose (bool): whether the matrix is taken transposed.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ormqr(*torch.geqrf(torch.eye(2)), torch.eye(2)).abs()
    tensor([[1., 0.],
            [0., 1.]])""",
    "triangular_solve": """The solution of a triangular system, and the matrix. The older form of
`linalg.solve_triangular`.

Args:
    input (Tensor): the operand.
    A (Tensor): a matrix, or a batch of them: `(..., m, n)`.
    upper (bool): whether the upper triangle is meant, not the lower.
    transpose (bool): whether the matrix is taken transposed.
    unitriangular (bool): whether the diagonal counts as ones.

Example:
    >>> torch.triangular_solve(torch.ones(2, 1), torch.eye(2) * 2).solution
    tensor([[0.5000],
            [0.5000]])""",
    "vander": """Powers of the elements of a vector as columns, descending by default.

Args:
    x (Tensor): the first operand.
    N (int | None): the number of columns or points.
    increasing (bool): whether powers ascend.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])""",
    "pdist": """The p-norm distances of all pairs of rows.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([5.])""",
    "pairwise_distance": """The p-norm of x1 - x2 + eps along the last dimension.

Args:
    x1 (Tensor): the first operand.
    x2 (Tensor): the second operand.
    p (float): the probability, or the exponent of the norm.
    eps (float): a small number that keeps quotients finite.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])""",
    "cosine_similarity": """The cosine of the angle between vectors along a dimension.

Args:
    x1 (Tensor): the first operand.
    x2 (Tensor): the second operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    eps (float): a small number that keeps quotients finite.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)""",
    "bilinear": """x1^T W x2 + b for each pair of rows.

Args:
    input1 (Tensor): the first operand.
    input2 (Tensor): the second operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bilinear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2))
    tensor([[4.]])""",
}
