"""One operator each: functions and methods of tensors with their defaults and keywords."""

import rushlight as torch


def abs(x: torch.Tensor):
    return torch.abs(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def neg(x: torch.Tensor):
    return torch.neg(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sign(x: torch.Tensor):
    return torch.sign(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def ceil(x: torch.Tensor):
    return torch.ceil(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def floor(x: torch.Tensor):
    return torch.floor(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def round(x: torch.Tensor):
    return torch.round(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def trunc(x: torch.Tensor):
    return torch.trunc(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def frac(x: torch.Tensor):
    return torch.frac(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def exp(x: torch.Tensor):
    return torch.exp(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def exp2(x: torch.Tensor):
    return torch.exp2(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def expm1(x: torch.Tensor):
    return torch.expm1(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sin(x: torch.Tensor):
    return torch.sin(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def cos(x: torch.Tensor):
    return torch.cos(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def tan(x: torch.Tensor):
    return torch.tan(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sinh(x: torch.Tensor):
    return torch.sinh(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def cosh(x: torch.Tensor):
    return torch.cosh(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def tanh(x: torch.Tensor):
    return torch.tanh(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def atan(x: torch.Tensor):
    return torch.atan(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def asinh(x: torch.Tensor):
    return torch.asinh(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sigmoid(x: torch.Tensor):
    return torch.sigmoid(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def erf(x: torch.Tensor):
    return torch.erf(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def erfc(x: torch.Tensor):
    return torch.erfc(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def square(x: torch.Tensor):
    return torch.square(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def reciprocal(x: torch.Tensor):
    return torch.reciprocal(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def relu(x: torch.Tensor):
    return torch.relu(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def isnan(x: torch.Tensor):
    return torch.isnan(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def isinf(x: torch.Tensor):
    return torch.isinf(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def isfinite(x: torch.Tensor):
    return torch.isfinite(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def deg2rad(x: torch.Tensor):
    return torch.deg2rad(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def rad2deg(x: torch.Tensor):
    return torch.rad2deg(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def positive(x: torch.Tensor):
    return torch.positive(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sgn(x: torch.Tensor):
    return torch.sgn(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sinc(x: torch.Tensor):
    return torch.sinc(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def selu(x: torch.Tensor):
    return torch.selu(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def nan_to_num(x: torch.Tensor):
    return torch.nan_to_num(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def signbit(x: torch.Tensor):
    return torch.signbit(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def log(x: torch.Tensor):
    return torch.log(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def log2(x: torch.Tensor):
    return torch.log2(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def log10(x: torch.Tensor):
    return torch.log10(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def log1p(x: torch.Tensor):
    return torch.log1p(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def sqrt(x: torch.Tensor):
    return torch.sqrt(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def rsqrt(x: torch.Tensor):
    return torch.rsqrt(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def lgamma(x: torch.Tensor):
    return torch.lgamma(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def digamma(x: torch.Tensor):
    return torch.digamma(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def binary_add(x: torch.Tensor, y: torch.Tensor):
    return torch.add(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_sub(x: torch.Tensor, y: torch.Tensor):
    return torch.sub(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_mul(x: torch.Tensor, y: torch.Tensor):
    return torch.mul(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_div(x: torch.Tensor, y: torch.Tensor):
    return torch.div(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_atan2(x: torch.Tensor, y: torch.Tensor):
    return torch.atan2(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_maximum(x: torch.Tensor, y: torch.Tensor):
    return torch.maximum(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_minimum(x: torch.Tensor, y: torch.Tensor):
    return torch.minimum(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_fmod(x: torch.Tensor, y: torch.Tensor):
    return torch.fmod(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_remainder(x: torch.Tensor, y: torch.Tensor):
    return torch.remainder(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_hypot(x: torch.Tensor, y: torch.Tensor):
    return torch.hypot(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_copysign(x: torch.Tensor, y: torch.Tensor):
    return torch.copysign(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_eq(x: torch.Tensor, y: torch.Tensor):
    return torch.eq(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_ne(x: torch.Tensor, y: torch.Tensor):
    return torch.ne(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_lt(x: torch.Tensor, y: torch.Tensor):
    return torch.lt(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_le(x: torch.Tensor, y: torch.Tensor):
    return torch.le(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_gt(x: torch.Tensor, y: torch.Tensor):
    return torch.gt(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_ge(x: torch.Tensor, y: torch.Tensor):
    return torch.ge(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_logaddexp(x: torch.Tensor, y: torch.Tensor):
    return torch.logaddexp(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_fmax(x: torch.Tensor, y: torch.Tensor):
    return torch.fmax(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_fmin(x: torch.Tensor, y: torch.Tensor):
    return torch.fmin(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_true_divide(x: torch.Tensor, y: torch.Tensor):
    return torch.true_divide(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def binary_floor_divide(x: torch.Tensor, y: torch.Tensor):
    return torch.floor_divide(x, y)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def logical_and(x: torch.Tensor, y: torch.Tensor):
    return torch.logical_and(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def logical_or(x: torch.Tensor, y: torch.Tensor):
    return torch.logical_or(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def logical_xor(x: torch.Tensor, y: torch.Tensor):
    return torch.logical_xor(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def bitwise_and(x: torch.Tensor, y: torch.Tensor):
    return torch.bitwise_and(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def bitwise_or(x: torch.Tensor, y: torch.Tensor):
    return torch.bitwise_or(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def bitwise_xor(x: torch.Tensor, y: torch.Tensor):
    return torch.bitwise_xor(x, y)
#: (torch.tensor([[True, False, True], [False, False, True]]), ~torch.tensor([[True, False, True], [False, False, True]]))


def reduce_sum(x: torch.Tensor):
    return torch.sum(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_mean(x: torch.Tensor):
    return torch.mean(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_prod(x: torch.Tensor):
    return torch.prod(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_amax(x: torch.Tensor):
    return torch.amax(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_amin(x: torch.Tensor):
    return torch.amin(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_argmax(x: torch.Tensor):
    return torch.argmax(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_argmin(x: torch.Tensor):
    return torch.argmin(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_std(x: torch.Tensor):
    return torch.std(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_var(x: torch.Tensor):
    return torch.var(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_logsumexp(x: torch.Tensor):
    return torch.logsumexp(x, dim=1)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_cumsum(x: torch.Tensor):
    return torch.cumsum(x, dim=1)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_cumprod(x: torch.Tensor):
    return torch.cumprod(x, dim=0)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_norm(x: torch.Tensor):
    return torch.norm(x, p=2)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_median(x: torch.Tensor):
    return torch.median(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_softmax(x: torch.Tensor):
    return torch.softmax(x, dim=1)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_log_softmax(x: torch.Tensor):
    return torch.log_softmax(x, dim=1)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_all(x: torch.Tensor):
    return torch.all(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_any(x: torch.Tensor):
    return torch.any(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_max(x: torch.Tensor):
    return torch.max(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_min(x: torch.Tensor):
    return torch.min(x)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_sum(x: torch.Tensor):
    return x.sum(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_mean(x: torch.Tensor):
    return x.mean(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_amax(x: torch.Tensor):
    return x.amax(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_amin(x: torch.Tensor):
    return x.amin(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_argmax(x: torch.Tensor):
    return x.argmax(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_argmin(x: torch.Tensor):
    return x.argmin(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_std(x: torch.Tensor):
    return x.std(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_var(x: torch.Tensor):
    return x.var(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_prod(x: torch.Tensor):
    return x.prod(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_all(x: torch.Tensor):
    return x.all(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def reduce_dim_any(x: torch.Tensor):
    return x.any(dim=1, keepdim=True)
#: (torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]),)


def alpha(x: torch.Tensor, y: torch.Tensor):
    return torch.add(x, y, alpha=2), x.sub(y, alpha=0.5)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def rounding(x: torch.Tensor, y: torch.Tensor):
    return torch.div(x, y, rounding_mode='floor'), torch.div(x, y, rounding_mode='trunc')
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def addcmul(x: torch.Tensor, y: torch.Tensor):
    return torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, x, y, value=2.0)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def lerp(x: torch.Tensor, y: torch.Tensor):
    return torch.lerp(x, y, 0.3)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def clamps(x: torch.Tensor):
    return x.clamp(min=0.0), x.clamp(max=1.0), torch.clamp(x, -1, 1), x.clamp_min(0.5)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def wheres(x: torch.Tensor, y: torch.Tensor):
    return torch.where(x > y, x, y), torch.where(x > 0, x, 0.0)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def powers(x: torch.Tensor, y: torch.Tensor):
    return x.pow(2), torch.pow(2, y), y.pow(y), y ** 0.5
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def triangles(x: torch.Tensor):
    return x.tril(), x.triu(1), torch.diag(x[0]), torch.diagonal(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def shapes(x: torch.Tensor):
    return x.flatten(), x.unflatten(1, [3, 1]), x.movedim(0, 1), x.swapaxes(0, 1), x.narrow(1, 0, 2), x.select(0, 1)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def stacks(x: torch.Tensor, y: torch.Tensor):
    return torch.hstack([x, y]), torch.vstack([x, y]), torch.dstack([x, y]), torch.stack([x, y], dim=-1)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]), torch.tensor([[0.5, 1.5, 2.0], [3.0, 0.25, 0.75]]))


def repeats(x: torch.Tensor):
    return x.repeat_interleave(2, dim=0), torch.tile(x, [2, 1]), x.expand(2, 2, 3)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def meshes(x: torch.Tensor):
    return torch.meshgrid([x[0], x[1]], indexing='ij')
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def selects(x: torch.Tensor):
    return x.index_select(1, torch.tensor([0, 2])), x.take(torch.tensor([0, 4])), x.masked_select(x > 0), torch.nonzero(x > 0)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def scatters(x: torch.Tensor):
    return x.scatter(1, torch.tensor([[0], [1]]), 9.0), x.index_fill(0, torch.tensor([0]), 1.0), x.index_add(0, torch.tensor([0]), x[1:])
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def sorts(x: torch.Tensor):
    return torch.sort(x, dim=1), x.argsort(descending=True), torch.topk(x, 2), x.kthvalue(2), x.mode()
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def uniques(x: torch.Tensor):
    return torch.unique(x)
#: (torch.tensor([[3, 1, 2], [0, 5, 4]]),)


def uniques_with_flags(x: torch.Tensor):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    rows, places = torch.unique(x, True, True, False, 0)
    return values, inverse, counts, rows, places, torch.unique(x, return_counts=True)
#: (torch.tensor([[3, 1, 2], [0, 5, 3]]),)


def uniques_in_runs(x: torch.Tensor):
    return torch.unique_consecutive(x), torch.unique_consecutive(x, return_counts=True), torch.unique_consecutive(x, True, True)
#: (torch.tensor([3, 3, 1, 1, 1, 3]),)


def searches(x: torch.Tensor):
    return torch.searchsorted(torch.tensor([1, 3, 5]), x), torch.bucketize(x, torch.tensor([1, 3, 5])), torch.bincount(x.flatten())
#: (torch.tensor([[3, 1, 2], [0, 5, 4]]),)


def linear_algebra(x: torch.Tensor):
    return x @ x.t(), torch.mv(x, x[0]), torch.dot(x[0], x[1]), torch.outer(x[0], x[1]), torch.trace(x @ x.t()), torch.kron(x, x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def decompositions(x: torch.Tensor):
    return torch.linalg.inv(x), torch.det(x), torch.linalg.solve(x, x)
#: (torch.tensor([[2.0, 1.0], [1.0, 3.0]]),)


def baddbmms(x: torch.Tensor):
    return torch.baddbmm(torch.zeros(1, 2, 2), x[None], x.t()[None], alpha=2.0), torch.addmv(x[:, 0], x, x[0])
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def rolls(x: torch.Tensor):
    return torch.roll(x, 1, 0), torch.flip(x, [0, 1]), torch.rot90(x), x.fliplr()
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def ints(x: torch.Tensor):
    return x // 2, x % 3, x & 1, x << 1, x.bitwise_not(), x.gcd(torch.tensor(2))
#: (torch.tensor([[3, 1, 2], [0, 5, 4]]),)


def casts(x: torch.Tensor):
    return x.to(torch.int32), x.to(dtype=torch.float64), x.to(torch.device('cpu')), x.to(x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def randoms(x: torch.Tensor):
    return torch.rand_like(x).shape, torch.randn(2, 3).size(), torch.randint(0, 5, [3]).dtype == torch.int64, torch.randperm(4).sum()
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def factories(n: int):
    return torch.arange(0, n, 2), torch.zeros([n], dtype=torch.int64), torch.full([2], n), torch.tensor(n), torch.logspace(0, 1, n), torch.tril_indices(2, 2)
#: (4,)


def in_places(x: torch.Tensor):
    return x.add_(1).mul_(2).clamp_(min=0).sub_(0.5), x.zero_(), x.fill_(3), x.copy_(torch.ones(2, 3))
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def norms(x: torch.Tensor):
    return torch.norm(x, 1), x.norm(p=2, dim=1), torch.linalg.norm(x), torch.nn.functional.normalize(x, dim=1), torch.cdist(x, x)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def counts(x: torch.Tensor):
    return torch.count_nonzero(x > 0), x.aminmax(), torch.histc(x, 3, -2.0, 3.0), torch.std_mean(x, dim=0)
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def complexes(x: torch.Tensor):
    return torch.complex(x, x).abs(), torch.view_as_complex(x[:, :2].contiguous()).real, torch.polar(x.abs(), x).imag
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)


def ffts(x: torch.Tensor):
    return torch.fft.rfft(x).abs(), torch.fft.ifft(torch.fft.fft(x)).real
#: (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),)
