"""Primitives for special functions: gamma, error, Bessel and zeta functions, and orthogonal polynomials."""

from __future__ import annotations

from rushlight.ops.registry import define_inplace, define_primitives

WITH_INPLACE = """
erfc(Tensor self) -> Tensor
erfinv(Tensor self) -> Tensor
lgamma(Tensor self) -> Tensor
digamma(Tensor self) -> Tensor
i0(Tensor self) -> Tensor
igamma(Tensor self, Tensor other) -> Tensor
igammac(Tensor self, Tensor other) -> Tensor
xlogy.Tensor(Tensor self, Tensor other) -> Tensor
"""

UNARY = """
special_i0e(Tensor self) -> Tensor
special_i1(Tensor self) -> Tensor
special_i1e(Tensor self) -> Tensor
special_ndtri(Tensor self) -> Tensor
special_log_ndtr(Tensor self) -> Tensor
special_erfcx(Tensor self) -> Tensor
special_entr(Tensor self) -> Tensor
special_bessel_j0(Tensor self) -> Tensor
special_bessel_j1(Tensor self) -> Tensor
special_bessel_y0(Tensor self) -> Tensor
special_bessel_y1(Tensor self) -> Tensor
special_modified_bessel_i0(Tensor self) -> Tensor
special_modified_bessel_i1(Tensor self) -> Tensor
special_modified_bessel_k0(Tensor self) -> Tensor
special_modified_bessel_k1(Tensor self) -> Tensor
special_scaled_modified_bessel_k0(Tensor x) -> Tensor
special_scaled_modified_bessel_k1(Tensor x) -> Tensor
special_spherical_bessel_j0(Tensor x) -> Tensor
special_airy_ai(Tensor x) -> Tensor
polygamma(int n, Tensor self) -> Tensor
"""

BINARY = """
special_xlog1py(Tensor self, Tensor other) -> Tensor
special_zeta(Tensor self, Tensor other) -> Tensor
"""

POLYNOMIALS = """
special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor
special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor
special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor
special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor
special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor
special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor
"""

for _group in (WITH_INPLACE, UNARY, BINARY, POLYNOMIALS):
    define_primitives(_group)
define_inplace(line.partition("(")[0] for line in WITH_INPLACE.split("\n") if line)


def names_of(group: str) -> list[str]:
    """Return the operators of a group of schemas, which has one schema a line."""
    return [line.partition("(")[0] for line in group.split("\n") if line]
