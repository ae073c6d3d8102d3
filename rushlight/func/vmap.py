"""`vmap`: a function of one example as a function of a batch, each of whose operators works on all examples at once.

In: trees of tensors, and which dimension of each is the batch. The function sees tensors without it (`rushlight.ops.batching`).
Out: its results with that dimension put back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight._C import call_in_region
from rushlight.core.following import runs_as_it_is
from rushlight.core.generator import default_generator
from rushlight.core.pytree import LEAF, TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.batching.levels import Level, Mapping, add_batch_dim, is_mapped_by, remove_batch_dim

RANDOMNESS = ("error", "different", "same")
_LEFT = "it calls its function with tensors that stand for a batch, in eager"


@runs_as_it_is(_LEFT)
def vmap(
    func: Callable, in_dims: int | tuple = 0, out_dims: int | tuple | None = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable:  # fmt: skip
    """Return a function that maps `func` over a dimension of its arguments, like a loop that stacks the results.

    `in_dims` says which dimension, for all arguments or as a tree like theirs; None where all examples share an argument.
    `out_dims` says where it stands in the results. `randomness` is what random operators do: "error", "same" numbers for all
    examples, or "different" ones. `chunk_size` is how many examples run at once, all of them if it is None.

    ValueError where dimensions do not fit, RuntimeError for what depends on the values of one example (`.item()`, `if x > 0:`)
    and for writes of a batch into a tensor that is not one.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @runs_as_it_is(_LEFT)
    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(func, out_dims)
        leaves, spec = tree_flatten(args)
        dims = dims_of(func, in_dims, args, leaves, spec)
        size = batch_size(leaves, dims)

        def run(part: list, count: int) -> Any:
            return _run(func, part, dims, spec, kwargs, count, out_dims, randomness)

        if chunk_size is None or chunk_size >= size:
            return run(leaves, size)
        return _in_chunks(run, leaves, dims, size, chunk_size, out_dims, randomness)

    return mapped


def _run(
    func: Callable, leaves: list, dims: list, spec: TreeSpec, kwargs: dict, size: int, out_dims: Any, randomness: str
) -> Any:
    with Mapping(size, randomness) as level:
        pairs = zip(leaves, dims, strict=True)
        args = tree_unflatten([leaf if dim is None else add_batch_dim(leaf, dim, level) for leaf, dim in pairs], spec)
        # compiled code can't read batched tensors, so the function runs in eager
        result = call_in_region(None, func, args, kwargs)
        return _remove_level_from_results(func, result, out_dims, level)


def _in_chunks(
    run: Callable, leaves: list, dims: list, size: int, chunk_size: int, out_dims: Any, randomness: str
) -> Any:
    """Run `chunk_size` examples at a time, and concatenate the results."""
    results = []
    before = default_generator.get_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if before is not None:
            default_generator.set_state(before)
        count = min(chunk_size, size - start)
        pairs = zip(leaves, dims, strict=True)
        results.append(run([leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in pairs], count))
    flat, specs = zip(*map(tree_flatten, results), strict=True)
    result_dims = expand_dims_tree(out_dims, specs[0])
    columns = zip(zip(*flat, strict=True), result_dims, strict=True)
    return tree_unflatten([column[0] if dim is None else aten.cat.default(column, dim) for column, dim in columns], specs[0])


def _name_of(func: Callable) -> str:
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({_name_of(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


def _check_out_dims(func: Callable, out_dims: Any) -> None:
    if any(leaf is not None and not isinstance(leaf, int) for leaf in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )


def dims_of(func: Callable, in_dims: Any, args: tuple, leaves: list, spec: TreeSpec) -> list[int | None]:
    """Return the mapped dimension of each leaf of the arguments, or None."""
    head = f"vmap({_name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    dims = expand_dims_tree(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for leaf, dim in zip(leaves, dims, strict=True):
        _check_in_dim(head, leaf, dim)
    return dims


def _check_in_dim(head: str, leaf: object, dim: object) -> None:
    if dim is None:
        return
    if not isinstance(dim, int):
        raise ValueError(f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    if not -leaf.dim() <= dim < leaf.dim():
        raise ValueError(
            f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so expected "
            f"in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
        )


def batch_size(leaves: list, dims: list[int | None]) -> int:
    """Return the size of the mapped dimensions. ValueError if there is none, or if they differ."""
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0]


def expand_dims_tree(tree: Any, spec: TreeSpec) -> list | None:
    """Return a leaf of `tree` for each leaf of a tree of shape `spec`. One leaf of `tree` may stand for a subtree. None if the
    trees don't match."""
    if spec == LEAF:
        return None if isinstance(tree, tuple | list | dict) else [tree]
    if not isinstance(tree, tuple | list | dict):
        return [tree] * spec.num_leaves
    own = tree_flatten(tree)[1]
    if own.kind is not spec.kind or len(own.children) != len(spec.children) or set(own.keys or ()) != set(spec.keys or ()):
        return None
    parts = tree if spec.keys is None else [tree[key] for key in spec.keys]
    found = [expand_dims_tree(part, child) for part, child in zip(parts, spec.children, strict=True)]
    return None if any(part is None for part in found) else [leaf for part in found for leaf in part]


def _remove_level_from_results(func: Callable, result: Any, out_dims: Any, level: Level) -> Any:
    """Return the results of a function with the level's batch dimension made visible again, at `out_dims`."""
    leaves, spec = tree_flatten(result)
    if spec == LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = expand_dims_tree(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return tree_unflatten([_remove_level(func, leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)], spec)


def _remove_level(func: Callable, leaf: Any, dim: int | None, level: Level) -> Any:
    name = _name_of(func)
    if dim is None:
        if is_mapped_by(leaf, level):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return leaf
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    return remove_batch_dim(leaf, level, dim)
