"""Composite special functions, and aliases of operators that `special` publishes under other names."""

from __future__ import annotations

import math

from rushlight.ops.composite.pointwise import source_of_write, with_inplace
from rushlight.ops.meta.special import special_type
from rushlight.ops.numbers import as_real_operand
from rushlight.ops.packet import namespaces
from rushlight.ops.primitives.special import POLYNOMIALS, names_of
from rushlight.ops.registry import check_castable, composite

aten = namespaces.namespace("aten")

ALIASES = {
    "digamma": "digamma", "psi": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "gammaln": "lgamma", "i0": "i0", "log1p": "log1p", "sinc": "sinc",
}  # fmt: skip


def _define_alias(alias: str, name: str) -> None:
    @composite(f"special_{alias}(Tensor self) -> Tensor")
    def function(self):
        return getattr(aten, name).default(self)


for _alias, _name in ALIASES.items():
    _define_alias(_alias, _name)


@composite("special_gammainc(Tensor self, Tensor other) -> Tensor")
def gammainc(self, other):
    return aten.igamma.default(self, other)


@composite("special_gammaincc(Tensor self, Tensor other) -> Tensor")
def gammaincc(self, other):
    return aten.igammac.default(self, other)


@composite("special_logit(Tensor self, float? eps=None) -> Tensor")
def logit(self, eps=None):
    return aten.logit.default(self, eps)


@composite("special_polygamma(int n, Tensor self) -> Tensor")
def polygamma(n, self):
    return aten.polygamma.default(n, self)


@composite("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)")
def polygamma_(self, n):
    result = aten.polygamma.default(n, source_of_write(self, ()))
    check_castable("polygamma_", result.dtype, self.dtype)
    return aten.copy_.default(self, result)


@composite("special_round(Tensor self, *, int decimals=0) -> Tensor")
def round_(self, *, decimals=0):
    return aten.round.decimals(self, decimals=decimals) if decimals else aten.round.default(self)


@composite("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def softmax(self, dim, dtype=None):
    return aten.softmax.int(self, dim, dtype)


@composite("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
def log_softmax(self, dim, *, dtype=None):
    return aten.log_softmax.int(self, dim, dtype)


@composite("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
def logsumexp(self, dim, keepdim=False):
    return aten.logsumexp(self, dim, keepdim)


@composite("special_ndtr(Tensor self) -> Tensor")
def ndtr(self):
    return aten.erfc.default(self * -math.sqrt(0.5)) * 0.5


# mvlgamma has at most this many terms, each of which is a tensor
_MAX_TERMS = 1 << 16


@with_inplace("mvlgamma(Tensor self, int p) -> Tensor")
def mvlgamma(self, p):
    special_type("mvlgamma", self)
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, but got {p}")
    if p > _MAX_TERMS:
        raise RuntimeError(f"mvlgamma: p={p} asks for as many terms; at most {_MAX_TERMS} are summed")
    terms = [aten.lgamma.default(self - index / 2) for index in range(p)]
    return sum(terms[1:], terms[0]) + p * (p - 1) / 4 * math.log(math.pi)


@composite("special_multigammaln(Tensor self, int p) -> Tensor")
def multigammaln(self, p):
    return aten.mvlgamma.default(self, p)


# Overloads with a number for one operand


@with_inplace("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor")
def xlogy_of_number(self, other):
    return aten.xlogy.Tensor(self, as_real_operand(other, self))


@composite("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor")
def xlogy_times_number(self, other):
    return aten.xlogy.Tensor(as_real_operand(self, other), other)


@composite("special_xlogy(Tensor self, Tensor other) -> Tensor")
def special_xlogy(self, other):
    return aten.xlogy.Tensor(self, other)


def _define_with_numbers(name: str) -> None:
    @composite(f"{name}.other_scalar(Tensor self, Scalar other) -> Tensor")
    def other_scalar(self, other):
        return getattr(aten, name).default(self, as_real_operand(other, self))

    @composite(f"{name}.self_scalar(Scalar self, Tensor other) -> Tensor")
    def self_scalar(self, other):
        return getattr(aten, name).default(as_real_operand(self, other), other)


for _name in ("special_xlogy", "special_xlog1py", "special_zeta"):
    _define_with_numbers(_name)


def _define_polynomial_of_numbers(name: str) -> None:
    @composite(f"{name}.n_scalar(Tensor x, Scalar n) -> Tensor")
    def n_scalar(x, n):
        return getattr(aten, name).default(x, as_real_operand(n, x))

    @composite(f"{name}.x_scalar(Scalar x, Tensor n) -> Tensor")
    def x_scalar(x, n):
        return getattr(aten, name).default(as_real_operand(x, n), n)


for _name in names_of(POLYNOMIALS):
    _define_polynomial_of_numbers(_name)
