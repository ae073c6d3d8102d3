"""Further statements of random programs: scans, scatters, indexed and in-place writes through views, losses, rarer functions.

As in `random_statements`: makers `(generator) -> (expression, is_exact)`, with weights.
"""

from __future__ import annotations

from tests.inductor.random_statements import _dims, _exact, _fill, _needs_exact, _slice

BOUNDED_UNARY = ("asin", "acos", "atanh")  # inputs must be between -1 and 1
SMOOTH_UNARY = ("atan", "asinh", "cosh", "lgamma", "sgn", "deg2rad", "sinc", "digamma", "erfinv", "nan_to_num", "frac")
SIGNED_PAIRS = ("fmax", "fmin", "copysign", "heaviside", "nextafter")
SMOOTH_PAIRS = ("atan2", "hypot", "logaddexp2", "xlogy", "float_power")
SCANS = ("cumsum", "cumsum", "cumprod", "logcumsumexp", "2:cummax", "2:cummin")
REDUCED = ("sum", "prod", "amax", "amin", "mean")


def _rare(g):
    x = g.pick("float")
    op = g.rng.choice((*BOUNDED_UNARY, *SMOOTH_UNARY))
    if op in BOUNDED_UNARY:
        return f"torch.{op}({x.name}.clamp(-0.9, 0.9))", False
    if op == "erfinv":
        return f"torch.erfinv({x.name}.clamp(-0.9, 0.9))", False
    _needs_exact(x.exact or op in ("atan", "asinh", "cosh", "deg2rad"))
    return f"torch.{op}({x.name.strip()}{'.abs() + 0.5' if op in ('lgamma', 'digamma') else ''})", False


def _pair(g):
    x = g.pick("float")
    other = g.broadcast_partner(x)
    _needs_exact(x.exact and _exact(g, other))
    op = g.rng.choice((*SIGNED_PAIRS, *SMOOTH_PAIRS))
    if op == "float_power":
        return f"torch.float_power({x.name}.abs() + 0.5, {other})", False
    if op in ("heaviside", "copysign", "nextafter", "xlogy", "logaddexp2", "atan2", "hypot"):
        return f"torch.{op}({x.name}, {other}.to({x.name}.dtype))", op in ("heaviside", "copysign")
    return f"torch.{op}({x.name}, {other})", True


def _shift(g):
    x = g.pick("integer")
    return f"torch.bitwise_{g.rng.choice(('left', 'right'))}_shift({x.name}, {g.rng.randint(0, 3)})", True


def _scan(g):
    x = g.pick("float", "integer", "bool")
    rank = x.tensor.dim()
    op = g.rng.choice(SCANS)
    prefix, op = ("2:", op[2:]) if op.startswith("2:") else ("", op)
    _needs_exact(x.exact or op in ("cumsum", "logcumsumexp"))
    kind = f", dtype=torch.{g.rng.choice(['float64', 'float32', 'int64'])}" if op == "cumsum" and g.rng.random() < 0.2 else ""
    return f"{prefix}torch.{op}({x.name}, {g.rng.randrange(-max(1, rank), max(1, rank))}{kind})", x.exact and op != "logcumsumexp"


def _positions(g, size: int, count: int, distinct: bool) -> str:
    """Positions below `size`, from the program or from an input; some are negative."""
    if distinct:
        return f"(torch.arange({count}) * {g.rng.choice((1, size - 1 if size > 1 else 1))}) % {size}"
    if g.rng.random() < 0.5:
        return f"(torch.arange({count}) * {g.rng.randint(1, 5)}) % {size}"
    return f"{g.new_input((count,), 'int64').name}.remainder({size})"


def _scatter(g):
    """Writes at positions along one dimension. If several coincide, the combination must be exact in any order."""
    x = g.pick("float", "integer")
    shape, rank = x.tensor.shape, x.tensor.dim()
    if not rank or 0 in shape:
        raise LookupError
    dim, kind = g.rng.randrange(rank), x.tensor.dtype.name
    op = g.rng.choice(("scatter", "scatter_value", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill",
                       "index_reduce"))  # fmt: skip
    distinct = op in ("scatter", "index_copy")
    count = g.rng.randint(1, shape[dim]) if distinct else g.size()
    index = _positions(g, shape[dim], count, distinct)
    wide = [count if d == dim else shape[d] for d in range(rank)]
    full = f"({index}).reshape({', '.join(str(n) if d == dim else '1' for d, n in enumerate(wide))}).expand({', '.join(map(str, wide))})"
    source = g.new_input(tuple(wide), kind)
    _needs_exact((x.exact and source.exact) or distinct or op in ("scatter_value", "index_fill"))
    reduced, own = g.rng.choice(REDUCED), g.rng.choice((True, False))
    _needs_exact(kind not in ("bfloat16", "float16") or reduced in ("amax", "amin") or "reduce" not in op)
    form = {
        "scatter": f"torch.scatter({x.name}, {dim}, {full}, {source.name})",
        "scatter_value": f"torch.scatter({x.name}, {dim}, {full}, 2)",
        "scatter_add": f"torch.scatter_add({x.name}, {dim}, {full}, {source.name})",
        "scatter_reduce": f"torch.scatter_reduce({x.name}, {dim}, {full}, {source.name}, '{reduced}', include_self={own})",
        "index_add": f"torch.index_add({x.name}, {dim}, {index}, {source.name}, alpha={g.rng.choice((1, 2))})",
        "index_copy": f"torch.index_copy({x.name}, {dim}, {index}, {source.name})",
        "index_fill": f"torch.index_fill({x.name}, {dim}, {index}, 3)",
        "index_reduce": f"torch.index_reduce({x.name}, {dim}, {index}, {source.name}, "
        f"'{reduced if reduced != 'sum' else 'mean'}', include_self={own})",
    }[op]
    return form, x.exact and source.exact and reduced != "mean"


def _indexed_write(g):
    """x[...] = y with indices, masks and slices, as an in-place operation that gives x."""
    x = g.pick()
    shape, rank = x.tensor.shape, x.tensor.dim()
    if not rank or 0 in shape:
        raise LookupError
    exact = all(variable.exact for variable in g.variables)
    _needs_exact(exact)
    kind, size, count = x.tensor.dtype.name, shape[0], g.size()
    index, value = _positions(g, size, count, distinct=False), g.rng.choice((0, 1, 2, 3))
    mask = f"{g.new_input(tuple(shape[: g.rng.randint(1, rank)]), 'bool').name}"
    form = g.rng.choice((
        f"{x.name}.index_put_(({index},), torch.tensor({value}).to({x.name}.dtype))",
        f"{x.name}.index_put_(({mask},), torch.tensor({value}).to({x.name}.dtype))",
        f"{x.name}.index_put_(({index},), {g.new_input((count, *shape[1:]), kind).name}, accumulate=True)",
        f"{x.name}.clone().index_add_(0, {index}, {g.new_input((count, *shape[1:]), kind).name})",
        f"{x.name}.index_fill_(0, {index}, {value})", f"{x.name}.masked_fill_({mask}.reshape({mask}.shape + (1,) * "
        f"({rank} - {mask}.dim())), {value})", f"torch.index_put({x.name}, ({mask},), torch.tensor({value}).to({x.name}.dtype))",
        f"{x.name}[{index}]", f"{x.name}.take(({index}) % {x.tensor.numel()})",
    ))  # fmt: skip
    _needs_exact(kind not in ("bool", "uint8") or "accumulate" not in form)
    return form, True


TARGETS = (
    "{x}.transpose({d}, {e})", "{x}.select({d}, {i})", "{x}.narrow({d}, 0, {half})", "{x}[{slices}]", "{x}.unsqueeze({d})",
    "{x}.diagonal()", "{x}.permute({order})", "{x}.flatten()", "{x}.view({shape})", "{x}.detach()", "{x}.unfold({d}, 1, 2)",
    "{x}.squeeze()", "torch.chunk({x}, 2, {d})[-1]", "torch.unbind({x}, {d})[0]",
)  # fmt: skip
WRITES = (
    ".add_({n})", ".mul_({n})", ".copy_({y})", ".zero_()", ".neg_()", ".add_({y})", ".div_(2)", ".fill_({n})", ".abs_()",
    ".clamp_(-1, 2)", ".tril_()", ".exp_()", ".sub_({y})", ".masked_fill_({c}, 1)", ".addcmul_({y}, {y})", ".lerp_({y}, 0.5)",
    ".floor_()", ".pow_(2)", ".sqrt_()", ".tanh_()", ".cumsum_(0)",
)  # fmt: skip


def _write_through_view(g):
    """An in-place operation on a view of a view."""
    x = g.pick()
    exact = all(variable.exact for variable in g.variables)
    first = _fill(g, g.rng.choice(TARGETS), x)
    target = first
    if g.rng.random() < 0.5:
        target = f"{first}[{_slice(g, 1)}]" if g.rng.random() < 0.5 else f"{first}.t()"
    write = g.rng.choice(WRITES).format(y=g.pick().name, n=g.rng.choice((1, 2, -1, 0.5)), c=g.pick().name)
    _needs_exact(exact or not any(word in write for word in ("floor", "div", "sqrt", "masked")))
    inexact = any(word in write for word in ("exp", "sqrt", "tanh", "lerp", "div"))
    return f"{target}{write}", exact and not inexact


def _statistics(g):
    x = g.pick("float", "integer", exact=True)
    dims = _dims(g, x) or "0"
    rank = max(1, x.tensor.dim())
    dim = g.rng.randrange(-rank, rank)
    return g.rng.choice((
        f"torch.nansum({x.name}, ({dims},))", f"torch.prod({x.name}, {dim})", f"torch.aminmax({x.name}, dim={dim})[0]",
        f"torch.argsort({x.name}, dim={dim}, stable=True)", f"torch.sort({x.name}, {dim}, descending=True, stable=True)[1]",
        f"torch.diff({x.name}, dim={dim})", f"torch.bucketize({x.name}, torch.tensor([-1.0, 0.25, 2.0]))",
        f"torch.kthvalue({x.name}, 1, {dim})[0]", f"torch.median({x.name}, {dim})[0]", f"torch.trace({x.name})",
        f"torch.searchsorted(torch.arange(5).to({x.name}.dtype), {x.name})", f"torch.isin({x.name}, torch.tensor([1, 2]))",
        f"torch.flip({x.name}, ({dim},))", f"F.one_hot({x.name}.long().remainder(5), 5)", f"{x.name}.clone().t_()",
        f"torch.rot90({x.name}, 1, (0, 1))", f"torch.where({x.name} > 0)[0]", f"torch.outer({x.name}, {x.name})",
    )), True  # fmt: skip


def _loss(g):
    x = g.pick("float", rank=2)
    rows, classes = x.tensor.shape
    target = f"{g.new_input((rows,), 'int64').name}.remainder({max(1, classes)})"
    reduction = g.rng.choice(("mean", "sum", "none"))
    return g.rng.choice((
        f"F.cross_entropy({x.name}, {target}, reduction='{reduction}')",
        f"F.cross_entropy({x.name}, {target}, ignore_index=1, label_smoothing=0.1, reduction='{reduction}')",
        f"F.nll_loss(F.log_softmax({x.name}, 1), {target}, reduction='{reduction}')", f"F.normalize({x.name}, dim=1)",
        f"F.smooth_l1_loss({x.name}, {g.new_input((rows, classes), 'float32').name}, reduction='{reduction}')",
        f"F.binary_cross_entropy_with_logits({x.name}, torch.ones_like({x.name}), reduction='{reduction}')",
        f"F.rms_norm({x.name}, ({classes},))", f"torch.cdist({x.name}, {x.name}, p=1.0)",
    )), False  # fmt: skip


def _batched(g):
    x = g.pick("float", rank=3)
    batch, rows, depth = x.tensor.shape
    kind, width = x.tensor.dtype.name, g.size()
    other = g.new_input((batch, depth, width), kind).name
    return g.rng.choice((
        f"torch.bmm({x.name}, {other})", f"torch.baddbmm({g.new_input((batch, rows, width), kind).name}, {x.name}, {other}, alpha=2)",
        f"torch.einsum('bij,bjk->bki', {x.name}, {other})", f"torch.einsum('bij,bkj->bik', {x.name}, {x.name})",
        f"{x.name}.mT @ {x.name}", f"torch.matmul({x.name}.select(0, 0), {other})", f"F.group_norm({x.name}, 1)",
        f"F.max_pool1d({x.name}, 2)", f"F.avg_pool1d({x.name}, 2)", f"F.conv1d({x.name}, {g.constant((3, rows, 2), kind)}, padding=1)",
        f"F.interpolate({x.name}, scale_factor=2, mode='nearest')", f"F.adaptive_avg_pool1d({x.name}, 1)",
        f"F.glu({x.name}, -1)", f"F.pixel_shuffle({x.name}.unsqueeze(0), 1)",
    )), False  # fmt: skip


FURTHER_STATEMENTS = [
    (4, _rare), (4, _pair), (1, _shift), (7, _scan), (9, _scatter), (7, _indexed_write), (10, _write_through_view),
    (6, _statistics), (3, _loss), (5, _batched),
]  # fmt: skip
