"""Primitives of linear algebra: factorizations, eigenvalues, solvers, distances. Other such operators are composites."""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

FACTORIZATIONS = """
linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)
linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)
lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)
linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)
linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)
geqrf(Tensor self) -> (Tensor a, Tensor tau)
linalg_householder_product(Tensor input, Tensor tau) -> Tensor
"""

SPECTRA = """
_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)
linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)
_linalg_eigvals(Tensor self) -> Tensor
_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
"""

SOLVERS = """
linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)
linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor
cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor
linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor
linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)
linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)
linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor
linalg_det(Tensor A) -> Tensor
linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)
linalg_matrix_exp(Tensor self) -> Tensor
"""

DISTANCES = """
_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor
_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor
_pdist_forward(Tensor self, float p=2) -> Tensor
_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor
"""

for _group in (FACTORIZATIONS, SPECTRA, SOLVERS, DISTANCES):
    define_primitives(_group)
