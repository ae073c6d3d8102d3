"""Docstrings of operators of `torch.special`, by name."""

DOCSTRINGS: dict[str, str] = {
    "special_airy_ai": """Airy's function Ai. Integers give the default floating dtype.

Args:
    x (Tensor): the first operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.airy_ai(torch.tensor([0.5, 1.0]))
    tensor([0.2317, 0.1353])""",
    "special_bessel_j0": """The Bessel function of the first kind of order 0. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.bessel_j0(torch.tensor([0.5, 1.0]))
    tensor([0.9385, 0.7652])""",
    "special_bessel_j1": """The Bessel function of the first kind of order 1. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.bessel_j1(torch.tensor([0.5, 1.0]))
    tensor([0.2423, 0.4401])""",
    "special_bessel_y0": """The Bessel function of the second kind of order 0. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.bessel_y0(torch.tensor([0.5, 1.0]))
    tensor([-0.4445,  0.0883])""",
    "special_bessel_y1": """The Bessel function of the second kind of order 1. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.bessel_y1(torch.tensor([0.5, 1.0]))
    tensor([-1.4715, -0.7812])""",
    "special_digamma": """The derivative of the logarithm of the gamma function. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.digamma(torch.tensor([0.5, 1.0]))
    tensor([-1.9635, -0.5772])""",
    "special_psi": """Another name of `digamma`. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.psi(torch.tensor([0.5, 1.0]))
    tensor([-1.9635, -0.5772])""",
    "special_entr": """-x log x, 0 at 0 and minus infinity below. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.entr(torch.tensor([0.5, 1.0]))
    tensor([0.3466, -0.0000])""",
    "special_erf": """The error function. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.erf(torch.tensor([0.5, 1.0]))
    tensor([0.5205, 0.8427])""",
    "special_erfc": """1 - erf(x). Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.erfc(torch.tensor([0.5, 1.0]))
    tensor([0.4795, 0.1573])""",
    "special_erfcx": """e^(x^2) erfc(x), without underflow on the way. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.erfcx(torch.tensor([0.5, 1.0]))
    tensor([0.6157, 0.4276])""",
    "special_exp2": """2 to the power of each element. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.exp2(torch.tensor([0.5, 1.0]))
    tensor([1.4142, 2.0000])""",
    "special_expit": """Another name of `torch.sigmoid`. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.expit(torch.tensor([0.5, 1.0]))
    tensor([0.6225, 0.7311])""",
    "special_expm1": """e^x - 1. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.expm1(torch.tensor([0.5, 1.0]))
    tensor([0.6487, 1.7183])""",
    "special_gammaln": """The logarithm of the absolute value of the gamma function. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.gammaln(torch.tensor([0.5, 1.0]))
    tensor([0.5724, 0.0000])""",
    "special_i0": """The modified Bessel function of the first kind of order 0. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.i0(torch.tensor([0.5, 1.0]))
    tensor([1.0635, 1.2661])""",
    "special_i0e": """e^-|x| i0(x). Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.i0e(torch.tensor([0.5, 1.0]))
    tensor([0.6450, 0.4658])""",
    "special_i1": """The modified Bessel function of the first kind of order 1. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.i1(torch.tensor([0.5, 1.0]))
    tensor([0.2579, 0.5652])""",
    "special_i1e": """e^-|x| i1(x). Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.i1e(torch.tensor([0.5, 1.0]))
    tensor([0.1564, 0.2079])""",
    "special_log1p": """log(1 + x). Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.log1p(torch.tensor([0.5, 1.0]))
    tensor([0.4055, 0.6931])""",
    "special_log_ndtr": """The logarithm of the normal distribution function. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.log_ndtr(torch.tensor([0.5, 1.0]))
    tensor([-0.3689, -0.1728])""",
    "special_modified_bessel_i0": """The modified Bessel function of the first kind of order 0. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.modified_bessel_i0(torch.tensor([0.5, 1.0]))
    tensor([1.0635, 1.2661])""",
    "special_modified_bessel_i1": """The modified Bessel function of the first kind of order 1. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.modified_bessel_i1(torch.tensor([0.5, 1.0]))
    tensor([0.2579, 0.5652])""",
    "special_modified_bessel_k0": """The modified Bessel function of the second kind of order 0. Integers give the
default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.modified_bessel_k0(torch.tensor([0.5, 1.0]))
    tensor([0.9244, 0.4210])""",
    "special_modified_bessel_k1": """The modified Bessel function of the second kind of order 1. Integers give the
default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.modified_bessel_k1(torch.tensor([0.5, 1.0]))
    tensor([1.6564, 0.6019])""",
    "special_scaled_modified_bessel_k0": """e^x modified_bessel_k0(x). Integers give the default floating dtype.

Args:
    x (Tensor): the first operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.scaled_modified_bessel_k0(torch.tensor([0.5, 1.0]))
    tensor([1.5241, 1.1445])""",
    "special_scaled_modified_bessel_k1": """e^x modified_bessel_k1(x). Integers give the default floating dtype.

Args:
    x (Tensor): the first operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.scaled_modified_bessel_k1(torch.tensor([0.5, 1.0]))
    tensor([2.7310, 1.6362])""",
    "special_ndtr": """The normal distribution function: the integral of its density up to x. Integers give
the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.ndtr(torch.tensor([0.5, 1.0]))
    tensor([0.6915, 0.8413])""",
    "special_sinc": """sin(pi x) / (pi x), and 1 at 0. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.sinc(torch.tensor([0.5, 1.0]))
    tensor([ 6.3662e-01, -2.7828e-08])""",
    "special_spherical_bessel_j0": """sin(x) / x, and 1 at 0. Integers give the default floating dtype.

Args:
    x (Tensor): the first operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.spherical_bessel_j0(torch.tensor([0.5, 1.0]))
    tensor([0.9589, 0.8415])""",
    "special_round": """The nearest integer, ties to even. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    decimals (int): to how many decimal places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.round(torch.tensor([0.5, 1.0]))
    tensor([0., 1.])""",
    "special_erfinv": """The inverse of the error function.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.erfinv(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])""",
    "special_logit": """log(x / (1 - x)).

Args:
    input (Tensor): the operand.
    eps (float | None): a small number that keeps quotients finite.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.logit(torch.tensor([0.5]))
    tensor([0.])""",
    "special_ndtri": """The inverse of `ndtr`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.ndtri(torch.tensor([0.5]))
    tensor([0.])""",
    "special_chebyshev_polynomial_t": """Chebyshev's polynomial of the first kind of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-0.5000])""",
    "special_chebyshev_polynomial_u": """Chebyshev's polynomial of the second kind of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.chebyshev_polynomial_u(torch.tensor([0.5]), torch.tensor([2]))
    tensor([0.])""",
    "special_chebyshev_polynomial_v": """Chebyshev's polynomial of the third kind of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.chebyshev_polynomial_v(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_chebyshev_polynomial_w": """Chebyshev's polynomial of the fourth kind of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.chebyshev_polynomial_w(torch.tensor([0.5]), torch.tensor([2]))
    tensor([1.])""",
    "special_hermite_polynomial_h": """Hermite's polynomial, as physicists have it of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.hermite_polynomial_h(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_hermite_polynomial_he": """Hermite's polynomial, as probabilists have it of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.hermite_polynomial_he(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-0.7500])""",
    "special_laguerre_polynomial_l": """Laguerre's polynomial of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.laguerre_polynomial_l(torch.tensor([0.5]), torch.tensor([2]))
    tensor([0.1250])""",
    "special_legendre_polynomial_p": """Legendre's polynomial of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.legendre_polynomial_p(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-0.1250])""",
    "special_shifted_chebyshev_polynomial_t": """Chebyshev's polynomial of the first kind of 2 x - 1 of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_shifted_chebyshev_polynomial_u": """Chebyshev's polynomial of the second kind of 2 x - 1 of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_shifted_chebyshev_polynomial_v": """Chebyshev's polynomial of the third kind of 2 x - 1 of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_shifted_chebyshev_polynomial_w": """Chebyshev's polynomial of the fourth kind of 2 x - 1 of degree n.

Args:
    x (Tensor): the first operand.
    n (Tensor): the order, or the number of points.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])""",
    "special_gammainc": """The regularized lower incomplete gamma function.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.gammainc(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.6321])""",
    "special_gammaincc": """The regularized upper incomplete gamma function.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.gammaincc(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.3679])""",
    "special_softmax": """Another name of `torch.softmax`.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.softmax(torch.tensor([1.0, 2.0]), 0)
    tensor([0.2689, 0.7311])""",
    "special_log_softmax": """Another name of `torch.log_softmax`.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.log_softmax(torch.tensor([1.0, 2.0]), 0)
    tensor([-1.3133, -0.3133])""",
    "special_logsumexp": """Another name of `torch.logsumexp`.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.logsumexp(torch.tensor([0.0, 0.0]), 0)
    tensor(0.6931)""",
    "special_multigammaln": """The logarithm of the multivariate gamma function of dimension p.

Args:
    input (Tensor): the operand.
    p (int): the probability, or the exponent of the norm.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.multigammaln(torch.tensor([2.0]), 2)
    tensor([0.4516])""",
    "special_polygamma": """The n-th derivative of the digamma function.

Args:
    n (int): the order, or the number of points.
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])""",
    "special_xlog1py": """x log(1 + y), and 0 where x is 0.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])""",
    "special_xlogy": """x log y, and 0 where x is 0.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])""",
    "special_zeta": """Hurwitz's zeta function: the sum of 1 / (k + other)^input.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
    tensor([1.6449])""",
}
