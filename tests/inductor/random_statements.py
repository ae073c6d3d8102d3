"""The statements of random programs: makers `(generator) -> (expression, is_exact)`, with weights.

An expression that starts with "2:" gives two results. Where a small rounding error could change a result altogether (a
comparison, a rounding, an order) the operand must be exact.
"""

from __future__ import annotations

import math

EXACT_UNARY = ("neg", "abs", "relu", "sign", "floor", "ceil", "round", "trunc", "positive")
SMOOTH_UNARY = (
    "tanh", "sigmoid", "sin", "cos", "erf", "exp", "expm1", "log1p", "sqrt", "rsqrt", "reciprocal", "log", "log2", "square",
    "erfc", "sinh", "tan", "log10", "exp2",
)  # fmt: skip
STEEP = ("tan", "reciprocal", "rsqrt", "log", "log2", "log10", "log1p")  # their errors grow near poles
ACTIVATIONS = (
    "F.gelu({x})", "F.gelu({x}, approximate='tanh')", "F.silu({x})", "F.elu({x})", "F.leaky_relu({x}, 0.1)",
    "F.softplus({x})", "F.mish({x})", "F.hardtanh({x})", "F.selu({x})", "F.logsigmoid({x})", "F.hardswish({x})", "F.relu6({x})",
)  # fmt: skip
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
DTYPES = ("float32", "float64", "int64", "int32", "bool", "uint8", "int8", "bfloat16", "float16")


def _unary(g):
    x = g.pick("float", "integer")
    op = g.rng.choice(EXACT_UNARY)
    if op not in ("neg", "abs", "relu", "positive") and not x.exact:
        raise LookupError
    return f"torch.{op}({x.name})", x.exact


def _smooth(g):
    op = g.rng.choice(SMOOTH_UNARY)
    return f"torch.{op}({g.pick(exact=op in STEEP).name})", False


def _activation(g):
    return g.rng.choice(ACTIVATIONS).format(x=g.pick("float").name), False


def _binary(g):
    x = g.pick()
    op = g.rng.choice(("add", "sub", "mul", "maximum", "minimum"))
    other = g.broadcast_partner(x)
    if g.rng.random() < 0.25 and op in ("add", "sub", "mul"):
        other = repr(g.number())
    exact = x.exact and _exact(g, other)
    if op in ("add", "sub") and g.rng.random() < 0.2:
        return f"torch.{op}({x.name}, {other}, alpha={g.rng.choice([2, -1, 0.5])})", exact
    return f"torch.{op}({x.name}, {other})", exact


def _exact(g, name: str) -> bool:
    return all(variable.exact for variable in g.variables if variable.name == name)


def _division(g):
    x = g.pick()
    other = g.broadcast_partner(x) if g.rng.random() < 0.4 else repr(g.rng.choice([2, 4, 3.0, -5, 0.5, 7]))
    op = g.rng.choice(("div", "div", "trunc", "floor", "remainder", "fmod", "floor_divide"))
    if op == "div":
        return f"torch.div({x.name}, {other})", False
    _needs_exact(x.exact and _exact(g, other))
    if op in ("trunc", "floor"):
        return f"torch.div({x.name}, {other}, rounding_mode='{op}')", True
    return f"torch.{op}({x.name}, {other})", True


def _needs_exact(condition: bool) -> None:
    if not condition:
        raise LookupError


def _power(g):
    x = g.pick()
    exponent = g.rng.choice(["2", "3", "0.5", "-1", "2.5", "1", "0", g.broadcast_partner(x)])
    return (f"torch.pow({g.rng.choice([2, 0.5, 3])}, {x.name})" if g.rng.random() < 0.2 else f"torch.pow({x.name}, {exponent})",
            False)  # fmt: skip


def _comparison(g):
    x = g.pick(exact=True)
    other = g.broadcast_partner(x) if g.rng.random() < 0.6 else repr(g.number())
    _needs_exact(_exact(g, other))
    return f"torch.{g.rng.choice(COMPARISONS)}({x.name}, {other})", True


def _logical(g):
    x = g.pick(exact=True)
    if g.rng.random() < 0.3:
        return f"torch.{g.rng.choice(['logical_not', 'isnan', 'isinf', 'isfinite'])}({x.name})", True
    other = g.broadcast_partner(x)
    _needs_exact(_exact(g, other))
    return f"torch.logical_{g.rng.choice(['and', 'or', 'xor'])}({x.name}, {other})", True


def _bitwise(g):
    x = g.pick("integer", "bool")
    if g.rng.random() < 0.2:
        return f"torch.bitwise_not({x.name})", True
    return f"torch.{g.rng.choice(BITWISE)}({x.name}, {g.pick('integer', 'bool').name})", True


def _where(g):
    condition, x = g.pick("bool"), g.pick()
    other = g.broadcast_partner(x) if g.rng.random() < 0.7 else repr(g.number())
    form = g.rng.choice(("torch.where({c}, {x}, {y})", "{x}.masked_fill({c}, {n})", "torch.where({c}, {x}, {n})"))
    number = g.rng.choice(["0", "-1.5", "float('-inf')" if g.special else "2", "7"])
    return form.format(c=condition.name, x=x.name, y=other, n=number), x.exact and _exact(g, other)


def _clamp(g):
    x = g.pick("float", "integer")
    return f"torch.clamp({x.name}, {g.rng.choice(['min=-1', 'max=1', 'min=-0.5, max=2', '-2, 3'])})", x.exact


def _cast(g):
    x = g.pick()
    target = g.rng.choice(DTYPES)
    if target in ("bfloat16", "float16") and not g.half:
        raise LookupError
    lossy = target not in ("float32", "float64", "bfloat16", "float16")
    _needs_exact(x.exact or not lossy)
    if target == "uint8" and x.tensor.dtype.is_signed:
        return f"{x.name}.abs().to(torch.uint8)", x.exact
    return f"{x.name}.to(torch.{target})", x.exact


def _mixed(g):
    x = g.pick("float")
    form = g.rng.choice((
        "torch.lerp({x}, {y}, 0.25)", "torch.addcmul({x}, {x}, {y}, value=0.5)", "torch.logaddexp({x}, {y})",
        "F.mse_loss({x}, {y}, reduction='none')", "torch.addcdiv({x}, {x}, {y}.abs() + 1)",
    ))  # fmt: skip
    return form.format(x=x.name, y=g.broadcast_partner(x)), False


# Views and rearrangements

VIEWS = (
    "{x}.permute({order})", "{x}.transpose({d}, {e})", "{x}.unsqueeze({d})", "{x}.squeeze()", "{x}.squeeze({d})",
    "{x}.select({d}, {i})", "{x}[{slices}]", "{x}.narrow({d}, 0, {half})", "{x}.flatten()", "{x}.reshape({shape})",
    "{x}.expand({wide})", "{x}.contiguous()", "{x}.mT", "{x}.diagonal()", "{x}.unfold({d}, 2, 1)", "{x}.detach()",
    "{x}.movedim({d}, {e})", "{x}.view({shape})",
)  # fmt: skip
COPIES = (
    "torch.flip({x}, ({d},))", "torch.roll({x}, {i}, {d})", "torch.cat(({x}, {x}), {d})", "torch.stack(({x}, {x}), {d})",
    "F.pad({x}, ({pad}))", "F.pad({x}, ({pad}), value=1.5)", "{x}.repeat({twos})", "torch.tril({x})", "torch.triu({x}, 1)",
    "{x}.clone()", "torch.cat(({x}, {y}), {d})", "torch.stack(({x}, {y}), {d})", "torch.tile({x}, (2,))",
    "torch.split({x}, {half}, {d})[0]", "torch.chunk({x}, 2, {d})[-1]", "torch.unbind({x}, {d})[0]",
    "{x}.repeat_interleave(2, {d})", "torch.cat(({x}, {y}.to({x}.dtype), {x}), {d})",
)  # fmt: skip


def _fill(g, form: str, x) -> str:
    shape = tuple(x.tensor.shape)
    rank = len(shape)
    d, e = (g.rng.randrange(-rank, rank), g.rng.randrange(rank)) if rank else (0, 0)
    order = list(range(rank))
    g.rng.shuffle(order)
    extent = shape[d] if rank else 1
    return form.format(
        x=x.name, y=g.pick().name, d=d, e=e, i=g.rng.randrange(-extent, extent) if extent else 0, half=max(1, extent // 2),
        order=", ".join(map(str, order)), slices=", ".join(_slice(g, size) for size in shape) or "...",
        shape=", ".join(map(str, _reshaped(g, shape))) or "()", wide=", ".join(map(str, _widened(g, shape))) or "()",
        pad=", ".join(str(g.rng.randint(-1, 2)) for _ in range(2 * g.rng.randint(1, max(1, rank)))),
        twos=", ".join(str(g.rng.randint(1, 2)) for _ in range(max(1, rank))),
    )  # fmt: skip


def _slice(g, size: int) -> str:
    choice = g.rng.random()
    if choice < 0.4 or not size:
        return ":"
    if choice < 0.55:
        return str(g.rng.randrange(-size, size))
    if choice < 0.6:
        return "None, :"
    start = g.rng.randrange(size)
    return f"{start}:{g.rng.choice(['', str(size), '-1'])}:{g.rng.choice(['', '2', '3'])}"


def _reshaped(g, shape: tuple[int, ...]) -> list[int]:
    numel = math.prod(shape)
    if not numel:
        return list(shape[::-1])
    factors = [factor for factor in (1, 2, 3, 4, 5, 8, 9, 16, 17) if numel % factor == 0]
    first = g.rng.choice(factors)
    rest = [factor for factor in factors if (numel // first) % factor == 0]
    second = g.rng.choice(rest)
    return g.rng.choice(([first, numel // first], [first, second, -1], [numel // first, first], [-1]))


def _widened(g, shape: tuple[int, ...]) -> list[int]:
    wide = [g.size() if extent == 1 else extent for extent in shape]
    return [g.rng.choice((2, 3)), *wide] if g.rng.random() < 0.3 else wide


def _view(g):
    x = g.pick()
    return _fill(g, g.rng.choice(VIEWS), x), x.exact


def _copy(g):
    x = g.pick()
    return _fill(g, g.rng.choice(COPIES), x), all(variable.exact for variable in g.variables)


# Reductions and normalisation


def _dims(g, x) -> str:
    rank = x.tensor.dim()
    count = g.rng.randint(1, max(1, rank))
    return ", ".join(str(d) for d in g.rng.sample(range(rank), min(rank, count))) or ""


def _reduction(g):
    x = g.pick()
    keep = g.rng.choice((True, False))
    op = g.rng.choice(("sum", "mean", "amax", "amin", "any", "all", "sum", "var", "std", "logsumexp", "count_nonzero", "norm"))
    exact = x.exact and op in ("sum", "amax", "amin", "any", "all", "count_nonzero")
    _needs_exact(x.exact or op not in ("any", "all", "count_nonzero"))
    dims = _dims(g, x)
    if g.rng.random() < 0.15 or not dims:
        return f"torch.{op}({x.name})", exact
    if op == "count_nonzero":
        return f"torch.{op}({x.name}, ({dims},))", exact
    if op == "norm":
        return f"torch.norm({x.name}, 2, ({dims},), {keep})", exact
    if op == "sum" and g.rng.random() < 0.2:
        kind = g.rng.choice(["float64", "float32", "int64"])
        return f"torch.sum({x.name}, ({dims},), keepdim={keep}, dtype=torch.{kind})", exact
    return f"torch.{op}({x.name}, ({dims},), keepdim={keep})", exact


def _position(g):
    x = g.pick("float", "integer", exact=True)
    op = g.rng.choice(("argmax", "argmin", "prod", "2:max", "2:min", "cumsum"))
    prefix, op = ("2:", op[2:]) if op.startswith("2:") else ("", op)
    rank = x.tensor.dim()
    if rank and (g.rng.random() < 0.8 or prefix or op == "cumsum"):
        keep = "" if op == "cumsum" else f", keepdim={g.rng.choice((True, False))}"
        return f"{prefix}torch.{op}({x.name}, {g.rng.randrange(-rank, rank)}{keep})", True
    return f"torch.{op}({x.name})", True


def _ordering(g):
    x = g.pick("integer", "float", exact=True)
    dim = g.rng.randrange(max(1, x.tensor.dim()))
    return f"torch.{g.rng.choice(['sort({x}, {d})[0]', 'topk({x}, 1, {d})[0]'])}".format(x=x.name, d=dim), True


def _softmax(g):
    x = g.pick("float")
    rank = max(1, x.tensor.dim())
    return f"F.{g.rng.choice(['softmax', 'log_softmax'])}({x.name}, {g.rng.randrange(-rank, rank)})", False


def _normalisation(g):
    x = g.pick("float")
    shape, kind = tuple(x.tensor.shape), x.tensor.dtype.name
    if not shape:
        raise LookupError
    if g.rng.random() < 0.3 and len(shape) >= 2:
        parts = [g.constant((shape[1],), kind) for _ in range(3)]
        return f"F.batch_norm({x.name}, {parts[0]}, {parts[1]}.abs() + 1, {parts[2]}, None)", False
    tail = shape[g.rng.randrange(len(shape)) :]
    _needs_exact(x.exact or kind not in ("bfloat16", "float16"))  # few elements may differ by their rounding alone
    affine = f", {g.constant(tail, kind)}, {g.constant(tail, kind)}" if g.rng.random() < 0.6 else ""
    return f"F.layer_norm({x.name}, {list(tail)}{affine})", False


# Indexed reads and writes


def _indexed(g):
    x = g.pick()
    shape, rank = x.tensor.shape, x.tensor.dim()
    if not rank or 0 in shape:
        raise LookupError
    dim = g.rng.randrange(rank)
    count, size = g.size(), shape[dim]
    index = f"(torch.arange({count}) * {g.rng.randint(1, 5)}) % {size}"
    if g.rng.random() < 0.5:
        index = f"{g.new_input((count,), 'int64').name}.remainder({size})"
    full = f"({index}).reshape({', '.join(str(count) if d == dim else '1' for d in range(rank))})"
    wide = f"{full}.expand({', '.join(str(count) if d == dim else str(shape[d]) for d in range(rank))})"
    form = g.rng.choice((
        f"torch.index_select({x.name}, {dim}, {index})", f"torch.gather({x.name}, {dim}, {wide})",
        f"{x.name}[{':, ' * dim}{index}]", f"torch.take_along_dim({x.name}, {wide}, {dim})",
        f"torch.index_fill({x.name}, {dim}, {index}, 2)", f"torch.scatter_add({x.name}, {dim}, {wide}, {x.name})",
    ))  # fmt: skip
    return form, x.exact


def _embedding(g):
    size = g.size()
    table = g.constant((size, g.size())) if g.rng.random() < 0.7 else g.new_input((size, g.size()), "float32").name
    x = g.pick("integer")
    return f"F.embedding({x.name}.long().remainder({size}), {table})", True


def _in_place(g):
    x = g.pick()
    target = x.name
    if g.rng.random() < 0.4 and x.tensor.dim():
        target = f"{x.name}[{', '.join(_slice(g, size) for size in x.tensor.shape)}]"
    other = g.broadcast_partner(x)
    form = g.rng.choice((
        "{t}.add_({y})", "{t}.mul_({n})", "{t}.copy_({y})", "{t}.fill_({n})", "{t}.neg_()", "{t}.zero_()",
        "{t}.sub_({y}, alpha=2)", "{t}.clamp_(min=-1)", "{t}.masked_fill_({t} > 0, {n})", "{t}.relu_()", "{t}.sigmoid_()",
    ))  # fmt: skip
    exact = all(variable.exact for variable in g.variables)
    _needs_exact("masked" not in form or exact)
    return form.format(t=target, y=other, n=g.number()), exact


# Products


def _product(g):
    x = g.pick("float")
    shape, kind = tuple(x.tensor.shape), x.tensor.dtype.name
    if not shape:
        raise LookupError
    width = g.size()
    if g.rng.random() < 0.5:
        weight = g.constant((width, shape[-1]), kind)
        bias = f", {g.constant((width,), kind)}" if g.rng.random() < 0.6 else ""
        return f"F.linear({x.name}, {weight}{bias})", False
    other = g.new_input((*(shape[:-2] if g.rng.random() < 0.6 else ()), shape[-1], width), kind).name
    return f"torch.matmul({x.name}, {other})", False


def _addmm(g):
    x = g.pick("float", rank=2)
    rows, depth = x.tensor.shape
    kind, width = x.tensor.dtype.name, g.size()
    bias = g.new_input(g.rng.choice(((width,), (rows, width), (1, width), ())), kind).name
    extra = g.rng.choice(("", ", beta=0.5", ", alpha=2", ", beta=0, alpha=-1"))
    return f"torch.addmm({bias}, {x.name}, {g.constant((depth, width), kind)}{extra})", False


def _attention(g):
    batch, heads, rows, keys = g.rng.randint(1, 2), g.rng.randint(1, 3), g.size(), g.size()
    depth = g.rng.choice((4, 8, 16, 7))
    g.special = False  # eager multiplies masked values by 0, which NaN and infinities survive
    q = g.new_input((batch, heads, rows, depth), "float32").name
    k, v = (g.new_input((batch, heads, keys, depth), "float32").name for _ in range(2))
    kind = g.rng.choice(("", "causal", "float", "bool"))
    if kind in ("float", "bool"):
        shape = g.rng.choice(((rows, keys), (batch, 1, 1, keys), (batch, heads, rows, keys), (1, 1, rows, keys)))
        mask = g.new_input(shape, "float32" if kind == "float" else "bool").name
        extra = f", attn_mask={mask}"
    else:
        extra = ", is_causal=True" if kind == "causal" else ""
    return f"F.scaled_dot_product_attention({q}, {k}, {v}{extra})", False


def _convolution(g):
    groups = g.rng.choice((1, 1, 1, 2))
    channels, outputs = groups * g.rng.randint(1, 4), groups * g.rng.randint(1, 5)
    kernel = g.rng.choice((1, 2, 3))
    x = g.new_input((g.rng.randint(1, 2), channels, g.rng.randint(3, 12), g.rng.randint(3, 12)), "float32").name
    weight = g.constant((outputs, channels // groups, kernel, g.rng.choice((kernel, 1))))
    bias = g.constant((outputs,)) if g.rng.random() < 0.6 else "None"
    options = f"stride={g.rng.randint(1, 2)}, padding={g.rng.randint(0, 2)}, dilation={g.rng.randint(1, 2)}, groups={groups}"
    return f"F.conv2d({x}, {weight}, {bias}, {options})", False


def _pooling(g):
    x = g.pick("float", rank=g.rng.choice((3, 4)))
    kernel = g.rng.randint(1, 3)
    options = f"{kernel}, stride={g.rng.randint(1, 3)}, padding={g.rng.randint(0, kernel // 2)}"
    options += f", ceil_mode={g.rng.random() < 0.3}"
    op = g.rng.choice(("max_pool2d", "avg_pool2d"))
    if op == "avg_pool2d" and g.rng.random() < 0.4:
        options += ", count_include_pad=False"
    return f"F.{op}({x.name}, {options})", x.exact and op == "max_pool2d"


def _creation(g):
    size = g.size()
    return g.rng.choice((
        f"torch.arange({size})", f"torch.full(({size}, 3), 1.5)", f"torch.zeros({size}, dtype=torch.int32)",
        f"torch.ones(({size},))", f"torch.arange(0, {size}, 2, dtype=torch.float32)", f"torch.tensor([1.0, {size}])",
        f"torch.eye({min(size, 9)})", f"torch.linspace(0, 1, {size})", "torch.tensor(2)", f"torch.arange({size}) % 3 == 0",
    )), True  # fmt: skip


STATEMENTS = [
    (8, _unary), (8, _smooth), (3, _activation), (14, _binary), (4, _division), (2, _power), (6, _comparison), (3, _logical),
    (3, _bitwise), (6, _where), (3, _clamp), (5, _cast), (3, _mixed), (16, _view), (9, _copy), (12, _reduction), (4, _position),
    (1, _ordering), (5, _softmax), (5, _normalisation), (6, _indexed), (2, _embedding), (6, _in_place), (6, _product),
    (2, _addmm), (3, _attention), (3, _convolution), (3, _pooling), (4, _creation),
]  # fmt: skip


# Statements about sizes, for programs captured with dynamic ones

SIZED = (
    "{x}.reshape({x}.shape[{d}], -1)", "{x}.reshape(-1, {x}.shape[{d}]) * {x}.shape[{e}]", "{x}.flatten({e})",
    "{x}.reshape({x}.numel())", "{x} * {x}.shape[{d}] + {x}.numel()", "{x}.expand(2, *{x}.shape)", "{x}.unsqueeze({e}) + {x}.size({d})",
    "torch.arange({x}.shape[{d}])", "torch.arange({x}.shape[{d}]) % {x}.shape[{e}]", "torch.full(({x}.shape[{d}], 3), {x}.shape[{e}])",
    "torch.ones({x}.shape[{d}], {x}.shape[{e}])", "{x}.narrow({d}, 0, {x}.shape[{d}] // 2 + 1)", "{x}[{x}.shape[0] // 2 :]",
    "{x}[: {x}.shape[0] - 1]", "{x}[1:] - {x}[:-1]", "torch.zeros({x}.shape[{d}] + 1, 2)", "{x}.unflatten({d}, (-1, {x}.shape[{d}]))",
    "{x}.transpose({d}, {e}).reshape({x}.shape[{d}], -1)", "{x}.unsqueeze(0).expand({x}.shape[{d}], *{x}.shape)", "{x}.t() @ {x}",
    "torch.tril(torch.ones({x}.shape[{d}], {x}.shape[{d}]))", "{x}.sum({d}) / {x}.shape[{d}]", "{x}.repeat(2, *[1] * ({x}.dim() - 1))",
    "F.layer_norm({x}, {x}.shape[{e}:])", "F.pad({x}, (0, {x}.shape[-1]))", "torch.cat(({x}, {x}[1:]), 0)", "{x}.permute({order}) + 1",
    "{x}.permute({order}).contiguous().view({x}.shape[{d}], -1)", "{x}.view({x}.shape) * 2", "{x}.softmax({d})", "{x} @ {x}.mT",
)  # fmt: skip


def _sized(g):
    x = g.pick()
    if not x.tensor.dim():
        raise LookupError
    form = g.rng.choice(SIZED)
    return _fill(g, form, x), x.exact and not any(word in form for word in ("/ ", "softmax", "layer_norm", "@"))


OPEN_STATEMENTS = [(60, _sized)]
