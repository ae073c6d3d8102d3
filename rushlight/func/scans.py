"""Functions applied along a dimension: `map`, `scan` and `associative_scan`.

They are written with tensor operations, which captures trace, so that a compiled graph holds each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.func.control_flow import check_same
from rushlight.func.vmap import vmap
from rushlight.ops.registry import aten as op

COMBINE_MODES = ("pointwise", "generic")


def map(f: Callable, xs: Any, *args: Any) -> Any:  # noqa: A001 - torch's name
    """Apply `f(x, *args)` to each `x` along dimension 0 of the tensors of `xs`; stack the results along dimension 0.

    RuntimeError for an `xs` without tensors, with other leaves, or of lengths that differ or are 0.
    """
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [leaf.shape for leaf in leaves]
    if any(leaf.dim() == 0 or leaf.shape[0] == 0 for leaf in leaves):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    results = [f(tree_unflatten([leaf[index] for leaf in leaves], spec), *args) for index in range(shapes[0][0])]
    return _stack_trees(results, 0)


def _stack_trees(results: list, dim: int) -> Any:
    """Return one tree whose tensors are those of several trees, stacked."""
    flat = [tree_flatten(result)[0] for result in results]
    spec = tree_flatten(results[0])[1]
    return tree_unflatten([op("stack")(list(column), dim) for column in zip(*flat, strict=True)], spec)


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """Run `carry, y = combine_fn(carry, x)` for each `x` along `dim` of `xs`, starting with the carry `init`; return the last
    carry, and all y stacked along `dim`. With `reverse`, the loop starts at the end of `xs`.

    RuntimeError where `init` or `xs` have other leaves than tensors, lengths differ or are 0, or a carry differs from `init` in
    form, size or dtype. IndexError for a `dim` that is not there.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    _check_leaves(tree_flatten(init)[0], "init")
    leaves, spec = tree_flatten(xs)
    _check_leaves(leaves, "xs")
    dim, length = _dim_and_length(leaves, dim)
    carry, results = init, []
    for index in range(length - 1, -1, -1) if reverse else range(length):
        found = combine_fn(carry, tree_unflatten([leaf.select(dim, index) for leaf in leaves], spec))
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(f"Expect combine_fn to return a tuple of (carry, y), but got {type(found).__name__}.")
        check_same(carry, found[0], "carry", "init")
        carry = found[0]
        results.append(found[1])
    return carry, _stack_trees(results[::-1] if reverse else results, dim)


def _check_leaves(leaves: list, name: str) -> None:
    if not leaves:
        raise RuntimeError(f"scan() operator requires {name} leaves.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"All {name} leaves must be a Tensor but got {leaf}")


def _dim_and_length(leaves: list[Tensor], dim: int) -> tuple[int, int]:
    """Return the dimension, counted from the first one, and the length along it."""
    count = leaves[0].dim()
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    dim %= count
    if any(leaf.dim() <= dim or leaf.shape[dim] == 0 for leaf in leaves):
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise RuntimeError("All xs leaves must have the same number of elements along the scanned dimension")
    return dim, length


def associative_scan(
    combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return all partial results, along `dim`, of joining the elements by `combine_fn(one, other)`, which must be associative.

    A logarithmic number of steps joins pairs of elements at once. The two modes are one here: `combine_fn` sees single
    elements, without the dimension. ValueError for another mode, or for an `xs` without tensors; IndexError for a `dim` that is
    not there.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in COMBINE_MODES:
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("Expected at least 1 xs leaf, and all of them to be tensors")
    dim, _ = _dim_and_length(leaves, dim)
    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    moved = [leaf.flip([0]) for leaf in moved] if reverse else moved

    def combine(one: list, other: list) -> list:
        mapped = vmap(lambda a, b: tree_flatten(combine_fn(tree_unflatten(a, spec), tree_unflatten(b, spec)))[0])
        return mapped(one, other)

    found = _prefixes(combine, moved)
    found = [leaf.flip([0]) for leaf in found] if reverse else found
    return tree_unflatten([leaf.movedim(0, dim) for leaf in found], spec)


def _prefixes(combine: Callable, leaves: list[Tensor]) -> list[Tensor]:
    """Return the partial results along dimension 0: combine pairs, compute the partial results of the pairs, then those in
    between."""
    length = leaves[0].shape[0]
    if length < 2:
        return leaves
    pairs = combine([leaf[0:-1:2] for leaf in leaves], [leaf[1::2] for leaf in leaves])
    odd = _prefixes(combine, pairs)
    if length == 2:
        even = [leaf[:1] for leaf in leaves]
    else:
        before = [leaf[: (length - 1) // 2] for leaf in odd]
        between = combine(before, [leaf[2::2] for leaf in leaves])
        even = [op("cat")([leaf[:1], rest], 0) for leaf, rest in zip(leaves, between, strict=True)]
    return [_interleave(one, other) for one, other in zip(even, odd, strict=True)]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    count = odd.shape[0]
    made = op("stack")([even[:count], odd], 1).reshape([2 * count, *odd.shape[1:]])
    return made if even.shape[0] == count else op("cat")([made, even[count:]], 0)
