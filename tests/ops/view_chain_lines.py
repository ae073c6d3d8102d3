"""The lines of random programs of views and writes: for each kind of line, a function that writes one for a given tensor.

In the text of a view, `?` stands for the name of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.strides import has_internal_overlap, is_non_overlapping_and_dense, may_overlap

Writer = Callable[..., str]


def view_of(chain, tensor) -> str:
    """The expression of a view of `tensor`, or of a copy."""
    if not tensor.dim() and chain.for_numpy:
        return chain.random.choice(("?.detach()", "?.unsqueeze(0)", "?.clone()"))
    names = _NUMPY_VIEWS if chain.for_numpy else _GRAD_VIEWS if chain.grad else list(VIEWS)
    return VIEWS[chain.random.choice(names)](chain, tensor)


def _plain(text: str) -> Writer:
    return lambda chain, tensor: text


def _two_dims(name: str) -> Writer:
    return lambda chain, tensor: f"?.{name}({chain.dim(tensor)}, {chain.dim(tensor)})"


def _parts(name: str) -> Writer:
    def write(chain, tensor) -> str:
        return f"?.{name}({chain.random.randint(1, 3)}, {chain.dim(tensor)})[{chain.random.choice((0, 0, -1, 1))}]"

    return write


def _select(chain, tensor) -> str:
    dim = chain.dim(tensor)
    return f"?.select({dim}, {chain.position(chain.size_at(tensor, dim))})"


def _index(chain, tensor) -> str:
    return f"?[{chain.basic_index(tensor)}]"


def _unbind(chain, tensor) -> str:
    dim = chain.dim(tensor)
    return f"?.unbind({dim})[{chain.random.choice((0, -1))}]" if chain.size_at(tensor, dim) else "?.view_as(?)"


def _unfold(chain, tensor) -> str:
    dim = chain.dim(tensor)
    size = chain.random.randint(0, max(chain.size_at(tensor, dim), 1))
    return f"?.unfold({dim}, {size}, {chain.random.randint(1, 2)})"


def _narrow(chain, tensor) -> str:
    dim = chain.dim(tensor)
    size = chain.size_at(tensor, dim)
    start = chain.random.randint(0, size)
    length = chain.random.randint(0, size - start) + chain.is_mistaken()
    return f"?.narrow({dim}, {start - size if chain.random.random() < 0.2 else start}, {length})"


def _permute(chain, tensor) -> str:
    dims = [dim - tensor.dim() if chain.random.random() < 0.3 else dim for dim in range(tensor.dim())]
    chain.random.shuffle(dims)
    return f"?.permute({dims})"


def _expand(chain, tensor) -> str:
    pick = chain.random
    sizes = [pick.choice((-1, size, pick.randint(1, 3))) if size == 1 else pick.choice((-1, size)) for size in tensor.shape]
    if tensor.dim() < 4 and pick.random() < 0.5:
        sizes.insert(0, pick.randint(1, 3))
    return f"?.expand({sizes})"


def _as_strided(chain, tensor) -> str:
    pick = chain.random
    sizes = [pick.randint(0, 3) for _ in range(pick.randint(0, 3))]
    strides = [pick.randint(0, 3) for _ in sizes]
    offset = f", {pick.randint(0, 4)}" if pick.random() < 0.5 else ""
    return f"?.as_strided({sizes}, {strides}{offset})"


def _split_sizes(chain, tensor) -> str:
    dim = chain.dim(tensor)
    size = chain.size_at(tensor, dim)
    cut = chain.random.randint(0, size)
    return f"?.split([{cut}, {size - cut + chain.is_mistaken()}], {dim})[{chain.random.randint(0, 1)}]"


def _unflatten(chain, tensor) -> str:
    dim = chain.dim(tensor)
    return f"?.unflatten({dim}, {chain.factors(chain.size_at(tensor, dim)) or [1]})"


def _diagonal(chain, tensor) -> str:
    return f"?.diagonal({chain.random.randint(-2, 2)}, {chain.dim(tensor)}, {chain.dim(tensor)})"


def _view_as_dtype(chain, tensor) -> str:
    if not tensor.numel() or any(value.is_complex() for value in chain.run.variables.values()):
        # The layout of empty tensors depends on strides that libraries choose freely; complex products differ in signs of
        # zeros.
        return "?.view_as(?)"
    if "bool" in str(tensor.dtype):
        return "?.view(torch.uint8)"
    return f"?.view(torch.{chain.random.choice(('int32', 'uint8', 'int64', 'int16', 'float32'))})"


def _real_part(chain, tensor) -> str:
    if "complex" not in str(tensor.dtype):
        return "?.real"
    return chain.random.choice(("?.real", "?.imag", "?.conj()", "torch.view_as_real(?.resolve_conj())"))


def _base(chain, tensor) -> str:
    return "?._base" if tensor._base is not None else "?.view_as(?)"


def _product(chain, tensor) -> str:
    alike = [name for name, value in chain.run.variables.items() if value.is_complex() == tensor.is_complex()]
    return f"? * {chain.random.choice(alike)}"


VIEWS: dict[str, Writer] = {
    "transpose": _two_dims("transpose"),
    "movedim": _two_dims("movedim"),
    "swapaxes": _two_dims("swapaxes"),
    "flatten": _two_dims("flatten"),
    "permute": _permute,
    "T": _plain("?.T"),
    "t": _plain("?.t()"),
    "mT": _plain("?.mT"),
    "index": _index,
    "slices": _index,
    "select": _select,
    "narrow": _narrow,
    "unsqueeze": lambda chain, tensor: f"?.unsqueeze({chain.dim(tensor, 1)})",
    "squeeze": _plain("?.squeeze()"),
    "squeeze_dim": lambda chain, tensor: f"?.squeeze({chain.dim(tensor)})",
    "squeeze_dims": lambda chain, tensor: f"?.squeeze(({chain.dim(tensor)}, {chain.dim(tensor)}))",
    "expand": _expand,
    "broadcast_to": lambda chain, tensor: f"?.broadcast_to({[2, *tensor.shape][-4:]})",
    "view": lambda chain, tensor: f"?.view({chain.factors(tensor.numel())})",
    "reshape": lambda chain, tensor: f"?.reshape({chain.factors(tensor.numel())})",
    "view_as": _plain("?.view_as(?)"),
    "ravel": _plain("?.ravel()"),
    "unflatten": _unflatten,
    "diagonal": _diagonal,
    "unfold": _unfold,
    "as_strided": _as_strided,
    "detach": _plain("?.detach()"),
    "data": _plain("?.data"),
    "unbind": _unbind,
    "split": _parts("split"),
    "chunk": _parts("chunk"),
    "unsafe_chunk": _parts("unsafe_chunk"),
    "tensor_split": _parts("tensor_split"),
    "split_sizes": _split_sizes,
    "hsplit": lambda chain, tensor: f"?.hsplit({chain.random.randint(1, 2)})[0]",
    "vsplit": lambda chain, tensor: f"?.vsplit({chain.random.randint(1, 2)})[-1]",
    "atleast_3d": _plain("torch.atleast_3d(?)"),
    "contiguous": _plain("?.contiguous()"),
    "base": _base,
    "dtype": _view_as_dtype,
    "real": _real_part,
    "clone": _plain("?.clone()"),
    "product": _product,
}
_GRAD_VIEWS = [name for name in VIEWS if name != "dtype"] + ["product", "base", "index", "view"]
_NUMPY_VIEWS = (
    "transpose movedim permute index slices select narrow unsqueeze squeeze expand view reshape ravel diagonal detach "
    "clone unfold"
).split()


def write_to(chain, name: str, tensor) -> str:
    """A line that writes to the tensor in place."""
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    if may_overlap(sizes, strides):
        # For elements that several indices address, the other writes have undefined results.
        names = ["fill", "zero", "add_number", "copy"] if has_internal_overlap(sizes, strides) else ["fill", "zero"]
        names = ["fill", "zero"] if chain.for_numpy else names
    else:
        rounded = chain.grad and not tensor.is_complex()
        names = _NUMPY_WRITES if chain.for_numpy else [*WRITES, *_ROUNDED] if rounded else list(WRITES)
    return {**WRITES, **_ROUNDED}[chain.random.choice(names)](chain, tensor, name)


def _operand(chain, tensor, name: str) -> str:
    """A tensor of the same shape (or one that broadcasts to it) that may be read while `tensor` is written."""
    pick, kind = chain.random, _kind(tensor)
    for other in pick.sample(list(chain.run.variables), len(chain.run.variables)):
        value = chain.run.variables[other]
        if tuple(value.shape) == tuple(tensor.shape) and _converts(value, tensor) and pick.random() < 0.8:
            return other if _may_be_read(chain, tensor, value) else f"{other}.clone()"
    sizes = [size if pick.random() < 0.7 else 1 for size in tensor.shape] + [2] * chain.is_mistaken()
    count = 1
    for size in sizes:
        count *= size
    return f"torch.arange({count}).remainder(5).to(torch.{kind}).reshape({sizes})"


def _kind(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _converts(value, tensor) -> bool:
    # Converting infinities and NaN to integers is undefined.
    exact = "int" in _kind(tensor)
    return not (exact and ("float" in _kind(value) or "complex" in _kind(value)))


def _may_be_read(chain, tensor, value) -> bool:
    if value.data_ptr() == 0 or value.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr():
        return True
    if chain.for_numpy:
        return False
    return all(is_non_overlapping_and_dense(tuple(t.shape), tuple(t.stride())) for t in (tensor, value))


def _with_operand(method: str) -> Writer:
    return lambda chain, tensor, name: f"{name}.{method}({_operand(chain, tensor, name)})"


def _with_number(method: str) -> Writer:
    return lambda chain, tensor, name: f"{name}.{method}({chain.number(tensor)})"


def _without(method: str) -> Writer:
    return lambda chain, tensor, name: f"{name}.{method}()"


def _set_number(chain, tensor, name: str) -> str:
    return f"{name}[{chain.basic_index(tensor)}] = {chain.number(tensor)}"


def _set_tensor(chain, tensor, name: str) -> str:
    if not tensor.dim() or not tensor.shape[0]:
        return f"{name}[...] = {_operand(chain, tensor, name)}"
    return f"{name}[{chain.position(tensor.shape[0])}] = {_operand(chain, tensor.detach()[0], name)}"


def _set_where(chain, tensor, name: str) -> str:
    return f"{name}[{name} != {chain.number(tensor)}] = {chain.number(tensor)}"


def _set_rows(chain, tensor, name: str) -> str:
    if not tensor.dim():
        return f"{name}[()] = {chain.number(tensor)}"
    rows = [chain.position(tensor.shape[0])]
    if 0 <= rows[0] < tensor.shape[0]:
        rows.append(chain.random.randrange(tensor.shape[0]))
    return f"{name}[{rows}] = {chain.number(tensor)}"


def _index_put(chain, tensor, name: str) -> str:
    if not tensor.dim():
        return f"{name}.zero_()"
    size = tensor.shape[0]
    rows = [chain.random.randrange(-size, size) for _ in range(min(size, 2))]
    if len({row % size for row in rows}) < len(rows):
        rows.pop()
    values = f"torch.ones({[len(rows), *tensor.shape[1:]]}, dtype=torch.{_kind(tensor)})"
    return f"{name}.index_put_((torch.tensor({rows}, dtype=torch.int64),), {values}, {chain.random.random() < 0.5})"


def _put(chain, tensor, name: str) -> str:
    count = tensor.numel()
    index = chain.random.sample(range(count), min(count, chain.random.randint(0, 2)))
    source = f"torch.ones({len(index)}, dtype=torch.{_kind(tensor)})"
    return f"{name}.put_(torch.tensor({index}, dtype=torch.int64), {source}, {chain.random.random() < 0.5})"


def _scatter(chain, tensor, name: str) -> str:
    dim = chain.random.randrange(tensor.dim()) if tensor.dim() else 0
    sizes = list(tensor.shape)
    if sizes:
        sizes[dim] = min(sizes[dim], 1)
    index = f"torch.zeros({sizes}, dtype=torch.int64)"
    if chain.random.random() < 0.5:
        return f"{name}.scatter_({dim}, {index}, {chain.number(tensor)})"
    return f"{name}.scatter_add_({dim}, {index}, torch.ones({sizes}, dtype=torch.{_kind(tensor)}))"


def _masked_fill(chain, tensor, name: str) -> str:
    return f"{name}.masked_fill_({name} == {chain.number(tensor)}, {chain.number(tensor)})"


def _index_of(chain, tensor) -> tuple[int, list[int]]:
    dim = chain.dim(tensor)
    size = chain.size_at(tensor, dim)
    if not tensor.dim() and chain.grad:
        return dim, [0]
    return dim, [chain.random.randrange(size) for _ in range(min(size, chain.random.randint(0, 2)))]


def _index_add(chain, tensor, name: str) -> str:
    dim, index = _index_of(chain, tensor)
    sizes = list(tensor.shape)
    if -tensor.dim() <= dim < tensor.dim():
        sizes[dim] = len(index)
    method = chain.random.choice(("index_add_", "index_copy_")) if len(set(index)) == len(index) else "index_add_"
    source = f"torch.ones({sizes}, dtype=torch.{_kind(tensor)})"
    return f"{name}.{method}({dim}, torch.tensor({index}, dtype=torch.int64), {source})"


def _index_fill(chain, tensor, name: str) -> str:
    dim, index = _index_of(chain, tensor)
    return f"{name}.index_fill_({dim}, torch.tensor({index}, dtype=torch.int64), {chain.number(tensor)})"


def _in_place_view(chain, tensor, name: str) -> str:
    base = tensor._base
    if chain.grad and (tensor.requires_grad if base is None else base.dtype != tensor.dtype):
        # The gradient of a leaf of changed shape depends on when its history began; torch replays views of other dtypes.
        return f"{name}.zero_()"
    dim = chain.dim(tensor)
    forms = ("t_()", f"transpose_({dim}, {chain.dim(tensor)})", f"unsqueeze_({chain.dim(tensor, 1)})", f"squeeze_({dim})")
    return f"{name}.{chain.random.choice(forms)}"


WRITES: dict[str, Writer] = {
    "fill": _with_number("fill_"),
    "zero": _without("zero_"),
    "add_number": _with_number("add_"),
    "mul_number": _with_number("mul_"),
    "add": _with_operand("add_"),
    "sub": _with_operand("sub_"),
    "mul": _with_operand("mul_"),
    "copy": _with_operand("copy_"),
    "neg": _without("neg_"),
    "set_number": _set_number,
    "set_slice": _set_number,
    "set_tensor": _set_tensor,
    "set_where": _set_where,
    "set_rows": _set_rows,
    "masked_fill": _masked_fill,
    "index_add": _index_add,
    "index_put": _index_put,
    "put": _put,
    "scatter": _scatter,
    "index_fill": _index_fill,
    "view": _in_place_view,
}
# Rounded results, whose bits must not be viewed.
_ROUNDED = {"sin": _without("sin_"), "sigmoid": _without("sigmoid_")}
_NUMPY_WRITES = "fill zero add_number mul_number add sub mul copy set_number set_tensor set_where masked_fill".split()
