"""Selective checkpointing: keep some results inside a checkpointed function instead of recomputing them.

In: a policy for every call of an aten operator. Out: the contexts of the two runs, for `checkpoint`'s `context_fn`. The first
saves results, the second returns them in the same order instead of recomputing them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rushlight.core.pytree import tree_map
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode
from rushlight.ops.packet import OpOverloadPacket, namespaces

aten = namespaces.namespace("aten")


class CheckpointPolicy(Enum):
    """How to treat a result. "Prefer" lets a compiler decide otherwise; in eager mode it equals "must"."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


_SAVED = (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


@dataclass(frozen=True)
class SelectiveCheckpointContext:
    """The information for a policy besides the operator and its arguments: `is_recompute` in the second run."""

    is_recompute: bool


@dataclass(frozen=True, slots=True)
class _CachedTensor:
    """A tensor that shares the result's memory, and its version when saved."""

    tensor: Tensor
    version: int


Policy = Callable[..., CheckpointPolicy | bool]
_Results = dict[OpOverload, list]


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[OpOverload], allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager, AbstractContextManager]:
    """Return contexts of the two runs of one checkpointed call.

    The policy is called in both runs, with a SelectiveCheckpointContext, the operator and its arguments; or it is a list of
    operators whose results are kept. Views and writes happen in both runs. In the second run, RuntimeError if a kept tensor was
    written to since, unless `allow_cache_entry_mutation`, and if there is no second run left to do. TypeError and ValueError
    for an invalid policy.
    """
    kept: _Results = {}
    policy = _make_policy(policy_fn_or_list)
    return _CachingMode(policy, kept), _ReplayMode(policy, kept, allow_cache_entry_mutation)


def _make_policy(given: Policy | Sequence[OpOverload]) -> Policy:
    if callable(given):
        return given
    if not isinstance(given, list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    for op in given:
        if not isinstance(op, OpOverload):
            hint = " Please update the OpOverloadPacket to a specific OpOverload." if isinstance(op, OpOverloadPacket) else ""
            raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}")
    return lambda context, op, *args, **kwargs: op in given


def _runs_in_both(op: OpOverload) -> bool:
    """Return whether an operator is a view or a write, which both runs execute."""
    return op.is_view or op.is_mutable


class _CachingMode(DispatchMode):
    """The first run's mode: for each operator, in order, the results that are kept."""

    def __init__(self, policy: Policy, kept: _Results):
        self.policy = policy
        self.kept = kept

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> Any:
        result = op(*args, **kwargs)
        if not _runs_in_both(op):
            is_saved = self.policy(SelectiveCheckpointContext(is_recompute=False), op, *args, **kwargs) in _SAVED
            if is_saved:
                self.kept.setdefault(op, []).append(tree_map(_wrap_cached, result))
        return result


class _ReplayMode(DispatchMode):
    """The second run's mode, which returns kept results."""

    def __init__(self, policy: Policy, kept: _Results, allow_mutation: bool):
        self.policy = policy
        self.kept = kept
        self.allow_mutation = allow_mutation
        self.is_over = False

    def __enter__(self) -> _ReplayMode:
        if self.is_over:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        self.is_over = True
        self.kept.clear()
        super().__exit__(*error)

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> Any:
        is_kept = not _runs_in_both(op) and self.policy(SelectiveCheckpointContext(is_recompute=True), op, *args, **kwargs)
        if is_kept not in _SAVED:
            return op(*args, **kwargs)
        waiting = self.kept.get(op)
        if not waiting:
            raise RuntimeError(f"{op} encountered during backward, but not found in storage")
        return tree_map(self._unwrap_cached, waiting.pop(0))

    def _unwrap_cached(self, value: Any) -> Any:
        if not isinstance(value, _CachedTensor):
            return value
        if value.tensor._version != value.version and not self.allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return aten.alias(value.tensor)


def _wrap_cached(value: Any) -> Any:
    return _CachedTensor(aten.alias(value), value._version) if isinstance(value, Tensor) else value
