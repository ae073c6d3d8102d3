"""Strategies: for one dimension of a mesh, which placements of its inputs an operator can work with, and what comes out.

A rule gets the operator's call with a Spec for each distributed tensor and returns strategies. Every dimension of the mesh
takes the strategy that moves the least data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.distributed.tensor.layout import Spec
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

R, P = Replicate(), Partial()


@dataclass(frozen=True)
class Strategy:
    """Placements of the distributed inputs, in order, and of the outputs."""

    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]


@dataclass(frozen=True)
class Call:
    """A call of an operator: `specs` of the distributed tensors in its arguments, in order; shapes of the `outputs`."""

    op: Any
    args: tuple
    kwargs: dict
    specs: tuple[Spec, ...]
    outputs: tuple[tuple[int, ...], ...]
    cuts_classes: bool = False
    """Whether losses may be cut along the classes (`loss_parallel`)."""

    def argument(self, position: int, default: Any = None) -> Any:
        """Return an argument by position."""
        return self.args[position] if position < len(self.args) else default


Rule = Callable[[Call], list[Strategy]]
RULES: dict[str, Rule] = {}
"""The rules by the operator's name, with its overload: "aten::mm.default", or without: "aten::mm"."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the rule of ATen operators."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[f"aten::{name}"] = function
        return function

    return register


def everywhere(call: Call) -> Strategy:
    """Return the strategy in which every rank does all of the work."""
    return Strategy((R,) * len(call.specs), (R,) * len(call.outputs))


def same(call: Call, placement: Placement, outputs: Sequence[Placement] | None = None) -> Strategy:
    """Return the strategy in which all inputs have one placement, and so have the outputs unless they are given."""
    return Strategy((placement,) * len(call.specs), tuple(outputs or (placement,) * len(call.outputs)))


def shards(ndim: int, without: Sequence[int] = ()) -> list[Shard]:
    """Return Shard for each of a tensor's dimensions but some."""
    return [Shard(dim) for dim in range(ndim) if dim not in without]
