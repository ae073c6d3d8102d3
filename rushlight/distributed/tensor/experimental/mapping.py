"""`local_map`: functions of plain tensors applied to each rank's parts of distributed ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import normalized
from rushlight.distributed.tensor.placement_types import Placement

_Placed = Sequence[Placement] | None


def local_map(
    func: Callable | None = None,
    out_placements: _Placed | tuple[_Placed, ...] = None,
    in_placements: tuple[_Placed, ...] | None = None,
    in_grad_placements: tuple[_Placed, ...] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """Return a function of distributed tensors that calls `func` with this rank's parts, and joins what it returns.

    `out_placements` says how the output lies, or, as a tuple, each of several outputs; None for what is no tensor.
    `in_placements` has one for each argument, None for those that are no distributed tensors: ValueError where a tensor lies
    differently, unless `redistribute_inputs` moves it. `in_grad_placements` says how gradients of the parts lie. The outputs
    are on `device_mesh`, or the first argument's. Without distributed arguments `func` is called as it is.

        step = local_map(lambda w, x: w @ x, out_placements=[Partial()], in_placements=([Shard(1)], [Shard(0)]))
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
            device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten(args)
        for given, name in ((in_placements, "in_placements"), (in_grad_placements, "in_grad_placements")):
            if given is not None and len(given) != len(leaves):
                raise AssertionError(f"{name} length {len(given)} does not match the number of input args {len(leaves)}!")
        mesh = device_mesh or next((leaf.device_mesh for leaf in leaves if isinstance(leaf, DTensor)), None)
        parts = [
            _part(leaf, mesh, _at(in_placements, place), _at(in_grad_placements, place), redistribute_inputs)
            for place, leaf in enumerate(leaves)
        ]
        result = func(*tree_unflatten(parts, tree), **kwargs)
        return _joined(result, mesh, out_placements) if any(isinstance(leaf, DTensor) for leaf in leaves) else result

    return mapped


def _at(placements: tuple[_Placed, ...] | None, place: int) -> _Placed:
    return None if placements is None else placements[place]


def _part(leaf: Any, mesh: DeviceMesh | None, wanted: _Placed, grads: _Placed, moves: bool) -> Any:
    """Return this rank's part of a distributed tensor, which must lie as `wanted` unless that is None."""
    if not isinstance(leaf, DTensor):
        return leaf
    if wanted is not None:
        placed = normalized(wanted, leaf.device_mesh, leaf.dim())
        if placed != leaf.placements and not moves:
            raise ValueError(
                f"arg {leaf} in local_map has a mismatched placements: arg placements is {leaf.placements} but the input "
                f"placements is {placed}! If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
            )
        leaf = leaf.redistribute(placements=placed)
    return leaf.to_local(grad_placements=grads)


def _joined(result: Any, mesh: DeviceMesh | None, placements: Any) -> Any:
    leaves, tree = tree_flatten(result)
    each = placements if isinstance(placements, tuple) and not all(isinstance(one, Placement) for one in placements) else None
    listed = list(each) if each is not None else [placements]
    if len(listed) != len(leaves):
        raise AssertionError(f"local_map requires one PlacementType for each output value, got {len(listed)} for {len(leaves)}")
    made = []
    for leaf, placed in zip(leaves, listed, strict=True):
        if isinstance(leaf, Tensor) and not isinstance(leaf, DTensor):
            made.append(DTensor.from_local(leaf, mesh, placed, run_check=False) if placed is not None else leaf)
            continue
        if placed is not None and not isinstance(leaf, DTensor):
            raise AssertionError(f"Non-tensor output expects None placements but received {placed}!")
        made.append(leaf)
    return tree_unflatten(made, tree)
