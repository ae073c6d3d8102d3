"""Rules of reductions: what is cut along a reduced dimension becomes partial, other cuts remain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.strides import wrap_dim
from rushlight.distributed.tensor.placement_types import Partial, Placement, Shard
from rushlight.distributed.tensor.rules.strategies import Call, P, R, Strategy, everywhere, rule, same, shards


def _reduced_dims(call: Call) -> list[int]:
    ndim = len(call.specs[0].shape)
    dims = call.argument(1)
    if dims is None or (isinstance(dims, Sequence) and not len(dims)) or not isinstance(dims, int | Sequence):
        return list(range(ndim))
    return [wrap_dim(dim, ndim) for dim in ([dims] if isinstance(dims, int) else dims)]


def _kept(call: Call, dims: list[int]) -> list[Strategy]:
    """Return the strategies that cut a dimension that is not reduced."""
    ndim = len(call.specs[0].shape)
    keeps = len(call.outputs[0]) == ndim
    found = []
    for dim in range(ndim):
        if dim not in dims:
            output = Shard(dim if keeps else dim - sum(other < dim for other in dims))
            found.append(Strategy((Shard(dim),), (output,) * len(call.outputs)))
    return found


def _even(call: Call, dims: list[int]) -> list[int]:
    """Return those dimensions of which all ranks have equal parts, so that none is empty."""
    shape, ranks = call.specs[0].shape, math.prod(call.specs[0].mesh.shape)
    return [dim for dim in dims if shape[dim] % ranks == 0]


def _reduction(call: Call, result: Placement | None, linear: bool = False) -> list[Strategy]:
    dims = _reduced_dims(call)
    found = [everywhere(call), *_kept(call, dims)]
    if result is not None:
        found += [Strategy((Shard(dim),), (result,)) for dim in (dims if result is P else _even(call, dims))]
    return [*found, same(call, P)] if linear else found


@rule("sum")
def sums(call: Call) -> list[Strategy]:
    """Sums of parts are summed."""
    return _reduction(call, P, linear=True)


@rule("mean")
def mean(call: Call) -> list[Strategy]:
    """Averages of parts are averaged where all parts have the same length."""
    found = _reduction(call, None, linear=True)
    return found + [Strategy((Shard(dim),), (Partial("avg"),)) for dim in _even(call, _reduced_dims(call))]


@rule("amax", "max", "any")
def maximum(call: Call) -> list[Strategy]:
    """Maxima of parts; with their places only along dimensions that are whole."""
    alone = len(call.outputs) == 1 and call.op._opname != "any"
    return _reduction(call, Partial("max") if alone else None)


@rule("amin", "min", "all")
def minimum(call: Call) -> list[Strategy]:
    """Minima of parts; with their places only along dimensions that are whole."""
    alone = len(call.outputs) == 1 and call.op._opname != "all"
    return _reduction(call, Partial("min") if alone else None)


@rule("argmax", "argmin", "prod", "var", "std", "var_mean", "logsumexp", "cumsum")
def along_whole_dims(call: Call) -> list[Strategy]:
    """Functions of whole rows."""
    return _reduction(call, None)


@rule("linalg_vector_norm")
def vector_norm(call: Call) -> list[Strategy]:
    """Norms of whole rows. That of all elements is made of the parts' norms, by the operator's own way on parts (`special`)."""
    ndim, dims = len(call.specs[0].shape), call.argument(2)
    if dims is None:
        return [everywhere(call), *(Strategy((cut,), (R,)) for cut in shards(ndim))]
    whole = [wrap_dim(dim, ndim) for dim in ([dims] if isinstance(dims, int) else dims)]
    return [everywhere(call), *_kept(call, whole)]


@rule("_local_scalar_dense", "equal", "is_same_size", "nonzero")
def whole(call: Call) -> list[Strategy]:
    """What every rank must know."""
    return [Strategy((R,) * len(call.specs), (R,) * len(call.outputs))]


@rule(
    "_linalg_eigh", "_linalg_svd", "_linalg_det", "_linalg_slogdet", "linalg_qr", "linalg_inv_ex", "linalg_cholesky_ex",
    "linalg_lu_factor_ex", "_linalg_solve_ex", "linalg_lstsq", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_bilinear2d", "upsample_linear1d", "upsample_bicubic2d", "histc", "index_put", "index_put_",
)  # fmt: skip
def all_work_everywhere(call: Call) -> list[Strategy]:
    """Functions of the whole tensor, whose inputs are gathered."""
    return [everywhere(call)]


@rule("topk", "sort", "kthvalue", "mode", "median")
def order(call: Call) -> list[Strategy]:
    """Values in order along one dimension, which must be whole."""
    ndim = len(call.specs[0].shape)
    place = {"topk": 2, "kthvalue": 2}.get(call.op._opname, 1)
    dim = call.argument(place, call.kwargs.get("dim", -1))
    if not isinstance(dim, int) or not call.outputs[0]:  # the median of all elements has no dimension
        return [everywhere(call)]
    return [everywhere(call), *(same(call, cut) for cut in shards(ndim, [wrap_dim(dim, ndim)]))]
