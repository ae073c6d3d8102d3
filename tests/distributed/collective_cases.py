"""Every collective with every dtype and reduction, on contiguous and strided tensors: the same program for both libraries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
REDUCTIONS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG")
SHAPES = {
    "float32": ((5, 3), (1,), (0,), (700, 130)), "bfloat16": ((5, 3), (700, 130)), "complex64": ((5, 3), (700, 130)),
}  # fmt: skip
"""The largest are large enough for a ring of messages. Other dtypes have the first shape alone."""
REFUSED = "refused"
FLOATING = ("float16", "bfloat16", "float32", "float64")


def reduces(dtype: str, reduction: str) -> bool:
    """Return whether PyTorch reduces a dtype so."""
    if dtype.startswith("complex"):
        return reduction in ("SUM", "AVG")
    return (reduction == "AVG" or not reduction.startswith("B")) if dtype in FLOATING else reduction != "AVG"


class Maker:
    """Makes tensors that differ by rank, as both libraries can hold them."""

    def __init__(self, torch, rank: int) -> None:
        self.torch, self.rank = torch, rank

    def make(self, dtype: str, shape: tuple[int, ...], seed: int = 0, rank: int | None = None, strided: bool = False):
        random = np.random.default_rng([seed, self.rank if rank is None else rank, *shape])
        values = random.integers(0, 4, shape) + 0.5 * dtype.startswith("float") - 1 * dtype.startswith(("float", "int", "bf"))
        if dtype == "bool":
            values = random.integers(0, 2, shape)
        tensor = self.torch.from_numpy(np.asarray(values, np.complex128 if "complex" in dtype else np.float64))
        if "complex" in dtype:
            tensor = tensor * (1 - 2j)
        tensor = tensor.to(getattr(self.torch, dtype))
        return self.strided(tensor) if strided else tensor

    def strided(self, tensor):
        """Return a tensor with gaps; PyTorch's stays as it is, because gloo reads and writes the gaps as if they were elements."""
        if "rushlight" not in self.torch.__name__:
            return tensor
        wide = self.torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
        wide[..., 1] = tensor
        return wide[..., 1]


def plain(torch, value):
    """Return tensors, also in lists, as NumPy arrays of float64, int64 or complex128."""
    if isinstance(value, list | tuple):
        return [plain(torch, each) for each in value]
    if not isinstance(value, torch.Tensor):
        return value
    kind = torch.complex128 if value.is_complex() else torch.float64 if value.is_floating_point() else torch.int64
    return value.to(kind).numpy()


def main(torch, dist) -> dict:
    """Run all cases; return the values of the outputs by the case's name."""
    rank, size = dist.get_rank(), dist.get_world_size()
    found: dict = {}
    for dtype in DTYPES:
        for shape in SHAPES.get(dtype, ((5, 3),)):
            for strided in (False, True):
                maker = Maker(torch, rank)
                for name, case in cases(dist, maker, dtype, shape, strided, size, rank):
                    found[f"{name} {dtype} {list(shape)}{' strided' if strided else ''}"] = outcome(torch, case)
    return found


def outcome(torch, case: Callable):
    """Return a case's values; REFUSED where the library does not have the dtype, on all ranks alike."""
    try:
        return plain(torch, case())
    except RuntimeError as error:
        if "Invalid scalar type" not in str(error):
            raise
        return REFUSED


def cases(dist, maker: Maker, dtype: str, shape: tuple, strided: bool, size: int, rank: int):
    """Yield the name of each case and a function that runs it."""

    def make(seed: int = 0, shape: tuple = shape):
        return maker.make(dtype, shape, seed, strided=strided)

    yield "broadcast", lambda: _in_place(make(), lambda x: dist.broadcast(x, size - 1))
    yield "all_gather", lambda: _into([make(9) for _ in range(size)], lambda out: dist.all_gather(out, make()))
    yield "gather", lambda: _gather(dist, make, size, rank)
    yield "scatter", lambda: _scatter(dist, make, size, rank)
    if not strided:
        whole = (size * shape[0], *shape[1:])
        yield "all_gather_into_tensor", lambda: _into(make(9, whole), lambda out: dist.all_gather_into_tensor(out, make()))
        yield "all_to_all_single", lambda: _into(make(9, whole), lambda out: dist.all_to_all_single(out, make(1, whole)))
        yield "all_to_all", lambda: _into(
            [make(9) for _ in range(size)], lambda out: dist.all_to_all(out, [make(seed) for seed in range(size)])
        )
    for reduction in REDUCTIONS:
        if reduces(dtype, reduction):
            yield from _reductions(dist, make, reduction, size, rank, shape, strided)


def _reductions(dist, make: Callable, reduction: str, size: int, rank: int, shape: tuple, strided: bool):
    op = getattr(dist.ReduceOp, reduction)
    yield f"all_reduce {reduction}", lambda: _in_place(make(), lambda x: dist.all_reduce(x, op))
    if reduction == "SUM":
        yield "all_reduce SUM async", lambda: _in_place(make(), lambda x: dist.all_reduce(x, op, async_op=True).wait())
    if reduction != "AVG":
        yield f"reduce {reduction}", lambda: _reduce(dist, make(), op, rank)
    if not strided and reduction != "AVG":
        whole = (size * shape[0], *shape[1:])
        yield f"reduce_scatter_tensor {reduction}", lambda: _into(
            make(9), lambda out: dist.reduce_scatter_tensor(out, make(1, whole), op)
        )
        yield f"reduce_scatter {reduction}", lambda: _into(
            make(9), lambda out: dist.reduce_scatter(out, [make(seed) for seed in range(size)], op)
        )


def _in_place(tensor, run: Callable):
    run(tensor)
    return tensor


def _into(outputs, run: Callable):
    run(outputs)
    return outputs


def _reduce(dist, tensor, op, rank: int):
    dist.reduce(tensor, 0, op)
    return tensor if rank == 0 else None


def _gather(dist, make: Callable, size: int, rank: int):
    places = [make(9) for _ in range(size)] if rank == 0 else None
    dist.gather(make(), places, 0)
    return places


def _scatter(dist, make: Callable, size: int, rank: int):
    output = make(9)
    dist.scatter(output, [make(seed) for seed in range(size)] if rank == 1 else None, 1)
    return output
