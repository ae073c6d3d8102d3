"""Transforms of functions of tensors, or of trees of tensors, that give derivatives.

Each level of a transform makes new leaves of the tape ("points") from its arguments, connected to the points of the outer
level. It keeps the graph only if an outer level needs it, because the outer level differentiates an argument, or another tensor
that the function reads.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from rushlight._C import count_edges
from rushlight.autograd import enable_grad
from rushlight.autograd import grad as gradients_of
from rushlight.autograd.duals import Level, Running
from rushlight.autograd.forward_ad import check_dual, detach_keeping_tangents, dual_at, tangent_at
from rushlight.autograd.node import AccumulateGrad
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.following import runs_as_it_is
from rushlight.core.pytree import tree_flatten, tree_map, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.ops import aten
from rushlight.ops.batching.layout import all_levels, levels_of, value_of
from rushlight.ops.batching.levels import Mapping, add_batch_dim, in_all_levels, is_mapped_by, remove_batch_dim

# The points of all levels, numbered in the order in which they were made, so those of inner levels have greater numbers.
_numbers: weakref.WeakKeyDictionary[TensorImpl, int] = weakref.WeakKeyDictionary()
_next_number = itertools.count()
_differentiates = runs_as_it_is("it differentiates what its function does, in eager")


@_differentiates
def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of `func`, whose output is one number, with respect to arguments `argnums`.

    With `has_aux`, `func` returns (output, more), and the result is (gradient, more).
    """

    @_differentiates
    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return gradient


@_differentiates
def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes (gradient, output) of `func`; with `has_aux`, (gradient, (output, aux))."""

    @_differentiates
    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        positions = _argument_positions(argnums, args)
        outer, points = _make_points(tuple(args[position] for position in positions))
        with enable_grad():
            result = func(*_replace_arguments(args, positions, points), **kwargs)
        output, more = _split(result, has_aux, "grad_and_value(f)(*args)")
        if not isinstance(output, Tensor) or output.dim():
            shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise RuntimeError(f"Expected the function given to grad to return a scalar tensor, got {shape}")
        leaves, spec = tree_flatten(points)
        outer = outer or state.grad_enabled and _reaches_outer_tensors((output,), leaves)
        found = _fill_with_zeros(_gradients((output,), leaves, (None,), outer), leaves)
        gradients = tree_unflatten([_detach_unless_outer(value, outer) for value in found], spec)
        value = _detach_unless_outer(output, outer)
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        return gradient, ((value, _detach_tree_unless_outer(more, outer)) if has_aux else value)

    return both


@_differentiates
def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Return the outputs of `func`, and a function from their cotangents to those of `primals`; with `has_aux`, also aux."""
    is_connected, points = _make_connected_points(primals)
    outer = state.grad_enabled and is_connected
    with enable_grad():
        result = func(*points)
    output, more = _split(result, has_aux, "vjp(f, *primals)")
    outputs, form = tree_flatten(output)
    _check_outputs(output, outputs, "vjp(f, *primals)")
    leaves, spec = tree_flatten(points)
    outer = outer or state.grad_enabled and _reaches_outer_tensors(outputs, leaves)

    @_differentiates
    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        starts, given = tree_flatten(cotangents)
        if given != form:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {given}, primal output: {form}"
            )
        wanted = create_graph
        if wanted is None:
            wanted = state.grad_enabled and (outer or is_connected or any(start.requires_grad for start in starts))
        found = _fill_with_zeros(_gradients(tuple(outputs), leaves, tuple(starts), wanted), leaves)
        return tree_unflatten([_detach_unless_outer(value, wanted) for value in found], spec)

    shown = tree_map(lambda value: _detach_unless_outer(value, outer), output)
    return (shown, pull_back, _detach_tree_unless_outer(more, outer)) if has_aux else (shown, pull_back)


@_differentiates
def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Return the outputs of `func` and their derivative in the direction `tangents`, for tensors or trees of them, by dual
    numbers.

    With `has_aux`, also what `func` adds. The derivative of an output that depends on no primal is zeros, or, with `strict`, a
    RuntimeError. RuntimeError for tangents of another form or other sizes.
    """
    leaves, directions, form = _flatten_primals_and_tangents(primals, tangents)
    level = Level()
    with Running((*state.dual_levels, level)):
        duals = [dual_at(leaf, direction, level) for leaf, direction in zip(leaves, directions, strict=True)]
        output, more = _split(func(*tree_unflatten(duals, form)), has_aux, "jvp(f, primals, tangents)")
        _check_outputs(output, tree_flatten(output)[0], "jvp(f, primals, tangents)")
        derivative = tree_map(lambda value: _derivative(value, level, strict), output)
    return (output, derivative, more) if has_aux else (output, derivative)


def _flatten_primals_and_tangents(primals: tuple, tangents: tuple) -> tuple[list, list, Any]:
    """Return the tensors of primals and tangents, which have one form."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got "
            f"{type(primals).__name__}"
        )
    leaves, form = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if form != other:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {form} and tangents with "
            f"structure {other}"
        )
    if not leaves:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    for leaf, direction in zip(leaves, directions, strict=True):
        if not isinstance(leaf, Tensor) or not isinstance(direction, Tensor):
            raise RuntimeError(
                "jvp(f, primals, tangents): Expected primals and tangents to only contain Tensors, got "
                f"{type(leaf).__name__} and {type(direction).__name__}"
            )
        check_dual(leaf, direction)
    return leaves, directions, form


def _derivative(value: Tensor, level: Level, strict: bool) -> Tensor:
    tangent = tangent_at(value, level)
    if tangent is None and strict:
        raise RuntimeError("jvp(f, primals, tangents, strict=True): an output of f does not depend on the primals")
    return aten.zeros_like(value).detach() if tangent is None else tangent


@_differentiates
def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian of `func` with respect to arguments `argnums`; the output's shape comes
    first.

    All elements of an output are differentiated at once, or `chunk_size` of them; one at a time, outside of any vmap, by a
    `chunk_size` of 1. With `_preallocate_and_copy`, chunks are written into their place, which takes less memory than joining
    them. ValueError for a `chunk_size` below 1, RuntimeError for complex numbers.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @_differentiates
    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions = _argument_positions(argnums, args)
        outer, points = _make_points(tuple(args[position] for position in positions))
        leaves, spec = tree_flatten(points)
        _require_real("jacrev", "inputs", "input", leaves)
        with enable_grad():
            output, more = _split(func(*_replace_arguments(args, positions, points), **kwargs), has_aux, "vjp(f, *primals)")
        outputs, form = tree_flatten(output)
        _check_outputs(output, outputs, "vjp(f, *primals)")
        _require_real("jacrev", "outputs", "output", outputs)
        outer = outer or state.grad_enabled and _reaches_outer_tensors(outputs, leaves)
        with enable_grad():
            rows = [_jacobian(value, leaves, outer, chunk_size, _preallocate_and_copy) for value in outputs]
        blocks = [tree_unflatten([_detach_unless_outer(block, outer) for block in row], spec) for row in rows]
        found = tree_unflatten([row[0] if isinstance(argnums, int) else row for row in blocks], form)
        return (found, _detach_tree_unless_outer(more, outer)) if has_aux else found

    return jacobian


def _jacobian(output: Tensor, leaves: list, outer: bool, chunk_size: int | None, in_place: bool) -> list[Tensor]:
    """Return for each point the derivatives of an output with respect to it."""
    count = output.numel()
    sizes = [[*output.shape, *leaf.shape] for leaf in leaves]
    if not count:
        return [leaf.new_zeros(size) for leaf, size in zip(leaves, sizes, strict=True)]
    units = aten.eye.default(count, dtype=output.dtype, device=output.device)
    chunks = (_jacobian_rows(output, leaves, units[start : start + (chunk_size or count)], outer, chunk_size)
              for start in range(0, count, chunk_size or count))  # fmt: skip
    if in_place and chunk_size is not None:
        columns = [leaf.new_empty([count, *leaf.shape]) for leaf in leaves]
        for number, chunk in enumerate(chunks):
            for column, part in zip(columns, chunk, strict=True):
                column[number * chunk_size : number * chunk_size + part.size(0)] = part
    else:
        found = zip(*chunks, strict=True)
        columns = [column[0] if len(column) == 1 else aten.cat.default(column, 0) for column in found]
    return [aten.reshape.default(column, size) for column, size in zip(columns, sizes, strict=True)]


def _jacobian_rows(output: Tensor, leaves: list, units: Tensor, outer: bool, chunk_size: int | None) -> list[Tensor]:
    """Return for each point the derivatives of some elements of an output, selected by the ones in `units`."""
    if chunk_size == 1:
        unit = units[0].view(output.shape)
        return [slope.unsqueeze(0) for slope in _fill_with_zeros(_gradients((output,), leaves, (unit,), outer), leaves)]
    with Mapping(units.size(0), "same") as level:
        unit = add_batch_dim(units, 0, level).view(output.shape)
        slopes = _fill_with_zeros(_gradients((output,), leaves, (unit,), outer), leaves)
        return [remove_batch_dim(slope, level, 0) for slope in slopes]


@_differentiates
def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable:  # fmt: skip
    """Return the same as `jacrev`, by dual numbers: a direction for each element of the arguments, all or `chunk_size` at once.

    `randomness` is that of `vmap` over the directions. ValueError for a `chunk_size` below 1.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacfwd: `chunk_size` should be greater than 0.")

    @_differentiates
    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions = _argument_positions(argnums, args)
        leaves, spec = tree_flatten(tuple(args[position] for position in positions))
        if not all(isinstance(leaf, Tensor) for leaf in leaves):
            raise RuntimeError("jacfwd: expected the arguments that are differentiated to be tensors, or trees of them")
        _require_real("jacfwd", "inputs", "input", leaves)

        def push(directions: list[Tensor]) -> tuple:
            def run(*points: Any) -> Any:
                return func(*_replace_arguments(args, positions, tree_unflatten(list(points), spec)), **kwargs)

            found = jvp(run, tuple(leaves), tuple(directions), has_aux=has_aux)
            _require_real("jacfwd", "outputs", "output", tree_flatten(found[0])[0])
            return found

        columns, form, more = _jacobian_columns(push, leaves, chunk_size, randomness)
        blocks = [tree_unflatten(_split_by_leaf(column, leaves), spec) for column in columns]
        found = tree_unflatten([block[0] if isinstance(argnums, int) else block for block in blocks], form)
        return (found, more) if has_aux else found

    return jacobian


def _jacobian_columns(push: Callable, leaves: list, chunk_size: int | None, randomness: str) -> tuple[list[Tensor], Any, Any]:
    """Return for each output its derivatives along all elements of the leaves, in the last dimension; the outputs' structure;
    and aux."""
    counts = [leaf.numel() for leaf in leaves]
    total, parts = sum(counts), []
    size = min(chunk_size or total, total) or 1
    for start in range(0, total, size):
        stop = min(start + size, total)
        with Mapping(stop - start, randomness) as level:
            units = [
                add_batch_dim(unit, 0, level) for unit in _unit_directions(leaves, counts, start, stop)
            ]  # fmt: skip
            _, derivative, *aux = push(units)
            slopes, form = tree_flatten(derivative)
            parts.append([aten.movedim.int(remove_batch_dim(slope, level, 0), 0, -1) for slope in slopes])
            more = tree_map(lambda value: _select_first_direction(value, level), aux[0]) if aux else None
    return [part[0] if len(part) == 1 else aten.cat.default(part, -1) for part in zip(*parts, strict=True)], form, more


def _unit_directions(leaves: list, counts: list[int], start: int, stop: int) -> list[Tensor]:
    """Return for each leaf the directions number `start` to `stop` of all directions: 1 for one element of one leaf, 0
    elsewhere."""
    found, before = [], 0
    for leaf, count in zip(leaves, counts, strict=True):
        position = aten.arange.start(start - before, stop - before).unsqueeze(1)
        unit = (position == aten.arange.default(count)).to(dtype=leaf.dtype, device=leaf.device)
        found.append(aten.reshape.default(unit, [stop - start, *leaf.shape]))
        before += count
    return found


def _split_by_leaf(column: Tensor, leaves: list) -> list[Tensor]:
    parts = aten.split_with_sizes.default(column, [leaf.numel() for leaf in leaves], -1)
    return [
        aten.reshape.default(part, [*column.shape[:-1], *leaf.shape]) for part, leaf in zip(parts, leaves, strict=True)
    ]  # fmt: skip


def _select_first_direction(value: Any, level: Any) -> Any:
    """Return the value for the first direction: additional results are the same for all directions."""
    return remove_batch_dim(value, level, 0)[0] if is_mapped_by(value, level) else value


@_differentiates
def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that computes the Hessian of `func`, by forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def _make_points(chosen: tuple) -> tuple[bool, tuple]:
    """Return whether an outer level differentiates, and the arguments as points of this level."""
    is_connected, points = _make_connected_points(chosen)
    return state.grad_enabled and is_connected, points


def _make_connected_points(chosen: tuple) -> tuple[bool, tuple]:
    """Return whether an outer level would differentiate if gradients were recorded, and the arguments as points of this
    level."""
    leaves, spec = tree_flatten(chosen)
    leaves = [in_all_levels(leaf) for leaf in leaves]  # inside vmap, each example has a point of its own
    is_connected = any(isinstance(leaf, Tensor) and value_of(leaf).requires_grad for leaf in leaves)
    with enable_grad():
        return is_connected, tree_unflatten([_make_point(leaf) for leaf in leaves], spec)


def _make_point(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value_of(value).requires_grad:
        return value.view_as(value)
    point = detach_keeping_tangents(value)
    value_of(point).requires_grad_()
    return _assign_number(point)


def _assign_number(point: Tensor) -> Tensor:
    _numbers[value_of(point)._impl] = next(_next_number)
    return point


def _reaches_outer_tensors(outputs: Any, points: Any) -> bool:
    """Return whether the tape leads from the outputs to tensors that are points neither of this level nor of one inside it."""
    recorded = [value_of(output) for output in outputs if isinstance(output, Tensor) and output.requires_grad]
    first = min((_numbers.get(value_of(point)._impl, 0) for point in points if isinstance(point, Tensor)), default=0)
    nodes = count_edges(dict.fromkeys(gradient_edge(output)[0] for output in recorded))
    return any(isinstance(node, AccumulateGrad) and _numbers.get(node.variable._impl, -1) < first for node in nodes)


def _argument_positions(argnums: int | tuple[int, ...], args: tuple) -> tuple[int, ...]:
    """Return the positions of the arguments that are differentiated, counted from 0; RuntimeError for none, or one named
    twice."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnum must be int or Tuple, got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    found = []
    for argnum in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(argnum, int):
            raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
        if not -len(args) <= argnum < len(args):
            raise RuntimeError(f"Got argnum={argnum}, but only {len(args)} positional inputs")
        found.append(argnum % len(args))
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(found)


def _require_real(transform: str, kinds: str, kind: str, leaves: list) -> None:
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{transform}: Expected all {kinds} to be real but received complex tensor at flattened {kind} idx: {index}"
            )


def _check_outputs(output: Any, leaves: list, called: str) -> None:
    """Raise RuntimeError for a function that returns nothing, or anything but tensors."""
    if output is None or not leaves:
        raise RuntimeError(f"{called}: Expected f to be a function that has non-empty output (got output = {output})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{called}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")


def _replace_arguments(args: tuple, positions: tuple[int, ...], points: tuple) -> list:
    made = list(args)
    for position, point in zip(positions, points, strict=True):
        made[position] = point
    return made


def _split(result: Any, has_aux: bool, called: str) -> tuple:
    """Return the output and the additional results, which are None without `has_aux`; RuntimeError if these are not tensors."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{called}: output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(result).__name__}"
        )
    for leaf in tree_flatten(result[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return result


def _gradients(outputs: tuple, leaves: list, starts: tuple, create_graph: bool) -> tuple:
    # An output depends on the points only if it is batched over all of their levels.
    reached = set(all_levels(leaves))
    pairs = [(output, start) for output, start in zip(outputs, starts, strict=True) if output.requires_grad]
    pairs = [pair for pair in pairs if reached <= set(levels_of(pair[0]))]
    if not pairs:
        return (None,) * len(leaves)
    chosen, vectors = (tuple(part) for part in zip(*pairs, strict=True))
    return gradients_of(chosen, leaves, vectors, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _fill_with_zeros(found: tuple, leaves: list) -> list[Tensor]:
    return [aten.zeros_like(leaf) if value is None else value for value, leaf in zip(found, leaves, strict=True)]


def _detach_unless_outer(value: Any, outer: bool) -> Any:
    return detach_keeping_tangents(value) if isinstance(value, Tensor) and not outer else value


def _detach_tree_unless_outer(more: Any, outer: bool) -> Any:
    return tree_map(lambda value: _detach_unless_outer(value, outer), more)
