"""Sample calls of the primitives that choose, order, search, scatter into reductions or draw numbers."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from rushlight.ops.registry import aten
from tests.ops.samples import group, index, integers, mask, positive, real


@group
def _cumulative():
    for value in (real(3, 4), real(4, 3).permute(1, 0), real(3, 1).expand(3, 2), real(5)):
        for dim in range(value.dim()):
            yield "cumprod", value, dim
            yield "logcumsumexp", value, dim
            if 0 not in value.stride():
                yield "cummax", value, dim
                yield "cummin", value, -1
    with_zeros = real(2, 4) * integers(2, 2, 4)
    yield "cumprod", with_zeros, 1
    yield "cumprod", integers(4, 3, 2), 0
    yield "cummax", integers(3, 6), 0
    for name in ("cumprod", "logcumsumexp", "cummax", "cummin"):
        yield name, real(), 0


@group
def _order_statistics():
    for value in (real(3, 5), real(5, 3).permute(1, 0), real(6), real()):
        yield "median", value
        yield "nanmedian", value
    missing = rl.from_numpy(np.array([1.0, np.nan, 3.0, -2.0]))
    yield "nanmedian", missing
    for keepdim in (False, True):
        yield "mode", real(3, 4), 1, keepdim
        yield "mode", integers(3, 4, 5), 0, keepdim
        for value in (real(3, 4), integers(3, 4, 5)):
            yield "hash_tensor", value, [1], {"keepdim": keepdim}
    yield "hash_tensor", real(5, 3).permute(1, 0)


@group
def _checks():
    for value in (real(3, 4), real(5, 3).permute(1, 0), integers(2, 3)):
        yield "_checked", value, value == value, "RuntimeError", "{} is no number"


@group
def _searching():
    sequence = rl.from_numpy(np.sort(np.random.default_rng(1).standard_normal((2, 6)), axis=1))
    for right in (False, True):
        yield "searchsorted.Tensor", sequence, real(2, 3), {"right": right}
        yield "searchsorted.Tensor", sequence.select(0, 0), real(2, 3), {"side": "right" if right else "left"}
    order = index(2, 0, 1)
    yield "searchsorted.Tensor", rl.from_numpy(np.array([2.0, 3.0, 1.0])), real(4), {"sorter": order, "out_int32": True}
    for value in (integers(3, 4, 2), integers(3, 7)):
        yield "_unique2", value, True, True, True, "data"
        yield "unique_dim", value, 0, True, True, True, "data"
        yield "unique_consecutive", value, True, True, "data"
        yield "unique_consecutive", value, True, True, 0, "data"


@group
def _scatter_reduce():
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            options = {"include_self": include_self}
            yield "scatter_reduce.two", real(3, 5), 1, integers(5, 3, 4), real(3, 4), reduce, options
            yield "scatter_reduce.two", real(3, 5), 0, integers(3, 2, 4), real(2, 4), reduce, options
        yield "scatter_reduce.two", integers(9, 4, low=1), 0, integers(4, 6), integers(9, 6, low=1), reduce


def _ctc_arguments():
    log_probs = real(6, 2, 4).log_softmax(-1)
    lengths = ([6, 6], [3, 3])
    yield log_probs, index(1, 2, 2, 3, 1, 1), *lengths, 0
    yield log_probs, rl.from_numpy(np.array([[1, 2, 1], [3, 1, 1]])), *lengths, 0
    yield log_probs, rl.from_numpy(np.array([[1, 3, 1], [3, 0, 1]])), [6, 6], [3, 3], 2


@group
def _ctc():
    for arguments in _ctc_arguments():
        yield "_ctc_loss", *arguments
        loss, alpha = aten("_ctc_loss")(*arguments)
        if bool(loss.isinf().any()):
            continue
        *arguments, blank = arguments
        yield "_ctc_loss_backward", positive(2), *arguments, loss, alpha, blank


@group
def _draws():
    for value in (real(3, 4), real(20), real(4, 3).permute(1, 0)):
        yield "cauchy_", value.clone(), 1.0, 2.0
        yield "exponential_", value.clone(), 2.0
        yield "geometric_", value.clone(), 0.3
        yield "log_normal_", value.clone(), 0.5, 0.25
        yield "random_", value.clone()
        yield "poisson", positive(*value.shape) * 8
        yield "binomial", positive(*value.shape).floor() * 9, positive(*value.shape) / 3
    for value in (real(3, 4), real(4, 3).permute(1, 0)):
        yield "bernoulli_.Tensor", value, positive(3, 4) / 3
    yield "bernoulli_.Tensor", mask(3, 4), positive(3, 1) / 3
    for replacement in (False, True):
        yield "multinomial", positive(5), 3, replacement
        yield "multinomial", positive(2, 5), 1, replacement
