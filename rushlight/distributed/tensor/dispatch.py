"""Runs operators on distributed tensors: finds placements that fit, moves inputs there, and runs the operator on the parts.

In: an operator and arguments with DTensors. Out: what it gives on each rank's parts, with shapes of the whole and placements.
What was found out for a call is kept, so that a training loop asks the rules once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.core.device import META, device
from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.layout import Placements, Spec, local_part
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.distributed.tensor.redistribution import moved
from rushlight.distributed.tensor.rules import RULES, Call, Strategy
from rushlight.distributed.tensor.special import SPECIAL
from rushlight.ops import aten

# The positions of arguments that are sizes of the result: a rank's part of it has other sizes.
_SIZES = dict.fromkeys(
    ("view", "_unsafe_view", "reshape", "expand", "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"), 1
)


@dataclass(frozen=True)
class Plan:
    """Where the inputs must lie, what the outputs are (None for results that are no tensors), and where the sizes are."""

    inputs: tuple[Placements, ...]
    outputs: tuple[Spec | None, ...]
    single: bool


_plans: dict[Any, Plan] = {}
_mixing = False  # whether plain tensors count as replicated
_classes = False  # whether losses take logits that are cut along the classes


def allow_mixing(allowed: bool) -> bool:
    """Have plain tensors beside distributed ones count as replicated, or refuse them; return what held before."""
    global _mixing
    before, _mixing = _mixing, allowed
    return before


def cut_classes(allowed: bool) -> bool:
    """Have losses take logits that are cut along the classes, or gather these; return what held before."""
    global _classes
    before, _classes = _classes, allowed
    return before


def run(op: Any, args: tuple, kwargs: dict, kind: type, make: Callable[[Tensor, Spec], Any]) -> Any:
    """Return what an operator gives for arguments with distributed tensors, of class `kind`; `make` makes the results.

    NotImplementedError for operators without a rule; RuntimeError for plain tensors of more than one element
    among the arguments.
    """
    leaves, tree = tree_flatten((tuple(args), dict(kwargs)))
    mesh = next(leaf._spec.mesh for leaf in leaves if isinstance(leaf, kind))
    leaves = [_distributed(leaf, op, mesh, kind, make) for leaf in leaves]
    tensors = [leaf for leaf in leaves if isinstance(leaf, kind)]
    plan = _plan(op, leaves, tree, tensors, kind)
    if mesh.get_coordinate() is None:
        return _outside(op, tensors, plan, make)
    locals_ = [
        tensor._local_tensor if tensor._spec.placements == wanted else moved(tensor._local_tensor, tensor._spec, wanted)
        for tensor, wanted in zip(tensors, plan.inputs, strict=True)
    ]
    return _finish(op, leaves, tree, tensors, locals_, plan, kind, make)


def _outside(op: Any, tensors: list, plan: Plan, make: Callable[[Tensor, Spec], Any]) -> Any:
    """Return what an operator gives on a rank that is not in the mesh: tensors without elements, and true for comparisons."""
    if op.writes_self:
        return tensors[0]
    results = [None if spec is None else aten.zeros([0] if spec.shape else [], dtype=spec.dtype) for spec in plan.outputs]
    if plan.single:
        return _wrapped(True if op._opname == "equal" else results[0], plan, make)
    return _wrapped(results, plan, make)


def _entry_of(op: Any, table: Mapping[str, Callable]) -> Callable | None:
    """Return a table's entry for an overload, or for all overloads of its operator."""
    return table.get(op.name) or (table.get(f"aten::{op._opname}") if op.name.startswith("aten::") else None)


def _finish(op, leaves, tree, tensors, locals_, plan, kind, make) -> Any:  # noqa: ANN001
    moving = iter(locals_)
    filled = [next(moving) if isinstance(leaf, kind) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(filled, tree)
    args = _with_local_sizes(op, args, plan)
    special = _entry_of(op, SPECIAL)
    if special is not None:
        specs = [tensor._spec.placed(wanted) for tensor, wanted in zip(tensors, plan.inputs, strict=True)]
        result = special(op, args, kwargs, specs, plan.outputs)
    else:
        result = op(*args, **kwargs)
    if op.writes_self:
        return tensors[0]
    return _wrapped(result, plan, make)


def _wrapped(result: Any, plan: Plan, make: Callable[[Tensor, Spec], Any]) -> Any:
    if plan.single:
        return make(result, plan.outputs[0]) if plan.outputs[0] is not None else result
    made = [
        make(each, spec) if spec is not None and each is not None else each
        for each, spec in zip(result, plan.outputs, strict=True)
    ]
    return type(result)(made) if type(result) in (tuple, list) else made


def _distributed(leaf: Any, op: Any, mesh: DeviceMesh, kind: type, make: Callable[[Tensor, Spec], Any]) -> Any:
    """Return a plain tensor as a replicated one, where that is allowed: scalars always are."""
    if not isinstance(leaf, Tensor) or isinstance(leaf, kind):
        return leaf
    of_loss = _classes and op._opname.startswith("nll_loss")  # targets and weights may be plain tensors
    if leaf.numel() != 1 and not _mixing and not of_loss:
        raise RuntimeError(
            f"{op}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed "
            "operators! Use distribute_tensor or DTensor.from_local"
        )
    return make(leaf, spec_of(leaf, mesh, (Replicate(),) * mesh.ndim))


def spec_of(tensor: Tensor, mesh: DeviceMesh, placements: Placements) -> Spec:
    """Return the Spec of a whole tensor."""
    return Spec(mesh, placements, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _plan(op: Any, leaves: list, tree: Any, tensors: list, kind: type) -> Plan:
    specs = tuple(tensor._spec for tensor in tensors)
    rest = tuple(None if isinstance(leaf, kind) else leaf for leaf in leaves)
    key = (op, str(tree), specs, rest, tuple(map(type, rest)), _classes)
    try:
        found = _plans.get(key)
    except TypeError:
        return _made_plan(op, leaves, tree, specs, kind)
    if found is None:
        found = _plans[key] = _made_plan(op, leaves, tree, specs, kind)
    return found


def _made_plan(op: Any, leaves: list, tree: Any, specs: tuple[Spec, ...], kind: type) -> Plan:
    if any(spec.mesh != specs[0].mesh for spec in specs):
        raise RuntimeError(f"{op}: DTensor does not support cross-mesh operation yet! Its tensors are on different meshes")
    found = _entry_of(op, RULES)
    if found is None:
        raise NotImplementedError(
            f"{op} has no rule for distributed tensors: call it on to_local() or full_tensor(), or redistribute around it"
        )
    results, single = _results_of_whole(op, leaves, tree, specs, kind)
    args, kwargs = tree_unflatten(leaves, tree)
    shapes = tuple(tuple(each.shape) for each in results if each is not None)
    strategies = found(Call(op, args, kwargs, specs, shapes, _classes))
    mesh = specs[0].mesh
    chosen = [_cheapest(op, strategies, specs, mesh_dim) for mesh_dim in range(mesh.ndim)]
    inputs = tuple(tuple(each.inputs[number] for each in chosen) for number in range(len(specs)))
    numbers = iter(range(len(shapes)))
    outputs = tuple(
        None if each is None else _output(each, mesh, chosen, next(numbers)) for each in results
    )  # fmt: skip
    return Plan(inputs, outputs, single)


def _output(whole: Tensor, mesh: DeviceMesh, chosen: list[Strategy], number: int) -> Spec:
    return spec_of(whole, mesh, tuple(each.outputs[number] for each in chosen))


def _results_of_whole(op: Any, leaves: list, tree: Any, specs: Sequence[Spec], kind: type) -> tuple[list[Any], bool]:
    """Return the results as Meta tensors of the whole's shapes, None for what is no tensor; and whether there is just one."""
    if op._opname in ("_local_scalar_dense", "equal", "is_same_size"):
        return [None], True
    moving = iter(specs)
    filled = [_meta(next(moving)) if isinstance(leaf, kind) else META if isinstance(leaf, device) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(filled, tree)
    result = op(*args, **kwargs)
    single = not isinstance(result, tuple | list)
    return [each if isinstance(each, Tensor) else None for each in ([result] if single else result)], single


def _meta(spec: Spec) -> Tensor:
    return aten.empty_strided(spec.shape, spec.strides, dtype=spec.dtype, device="meta")


def _cheapest(op: Any, strategies: list[Strategy], specs: Sequence[Spec], mesh_dim: int) -> Strategy:
    """Return the strategy that moves the least data along a dimension of the mesh. What an operator writes stays as it is."""
    if op.writes_self:
        own = specs[0].placements[mesh_dim]
        strategies = [each for each in strategies if each.inputs[0] == each.outputs[0] == own]
        if not strategies:
            raise RuntimeError(f"{op} cannot write to a distributed tensor that is {own}: redistribute it first")
    ranks = specs[0].mesh.size(mesh_dim)
    strategies = [each for each in strategies if all(map(_can_be_cut, each.inputs, specs))]
    return min(strategies, key=lambda each: sum(
        _cost(spec, spec.placements[mesh_dim], wanted, ranks) for spec, wanted in zip(specs, each.inputs, strict=True)
    ))  # fmt: skip


def _can_be_cut(placement: Placement, spec: Spec) -> bool:
    return not isinstance(placement, Shard) or placement.dim < len(spec.shape)


def _cost(spec: Spec, before: Placement, wanted: Placement, ranks: int) -> float:
    """Return about how many bytes each rank receives; copies on a rank count a little."""
    if before == wanted:
        return 0.0
    nbytes = math.prod(spec.shape) * spec.dtype.itemsize
    if isinstance(before, Partial):
        return math.inf if isinstance(wanted, Partial) else nbytes * (2 if isinstance(wanted, Replicate) else 1)
    if isinstance(before, Shard):
        return nbytes / ranks if isinstance(wanted, Shard) else nbytes + (nbytes if isinstance(wanted, Partial) else 0)
    return nbytes * (0.01 if isinstance(wanted, Shard) else 0.02)


def _with_local_sizes(op: Any, args: tuple, plan: Plan) -> tuple:
    """Return the arguments with the sizes of this rank's part of the result."""
    position = _SIZES.get(op._opname)
    if position is None or plan.outputs[0] is None:
        return args
    sizes, _ = local_part(plan.outputs[0].shape, plan.outputs[0].mesh, plan.outputs[0].placements)
    return (*args[:position], list(sizes), *args[position + 1 :])
