"""`func.functional_call`: calls a module with its parameters and buffers replaced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue, is_none
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.func import functional_call
from rushlight.nn.utils import stateless

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_TRUE = ConstantValue(True)


def _functional_call(
    tx: Following, module: Value, tensors: Value, args: Value = NONE, kwargs: Value = NONE, *, tie_weights: Value = _TRUE,
    strict: Value | None = None,
) -> Value:  # fmt: skip
    if not isinstance(module, ModuleValue) or module.real is None or strict is not None and strict.truth(tx):
        raise GraphBreak("functional_call of a module that the program made, or with strict=True")
    parts = tensors.items_of(tx) if isinstance(tensors, SequenceValue) else [tensors]
    given = [(key.constant(), value) for part in parts for key, value in _pairs(tx, part)]
    if len(dict(given)) < len(given):
        raise GraphBreak("functional_call with two tensors of one name")
    is_tuple = isinstance(args, SequenceValue) and args.kind is tuple
    positional = [] if is_none(args) else args.items_of(tx) if is_tuple else [args]
    named = {} if is_none(kwargs) else {key.constant(): value for key, value in _pairs(tx, kwargs)}
    with _replace_members(tx, module, dict(given), tie_weights.truth(tx)):
        return module.call(tx, positional, named)


def _pairs(tx: Following, mapping: Value) -> Iterator[list[Value]]:
    for pair in mapping.method(tx, "items", [], {}).items_of(tx):
        yield pair.items_of(tx)


@contextmanager
def _replace_members(tx: Following, module: ModuleValue, tensors: dict[str, Value], tie_weights: bool) -> Iterator[None]:
    """Context manager: in the block, these tensors replace members of the module and its submodules."""
    slots = stateless.slots_of(module.real)
    if not tensors.keys() <= slots.keys():
        raise GraphBreak("functional_call with names that the module has not")
    if tie_weights:
        tensors = _with_tied(tensors, slots)
    before = []
    for name, value in tensors.items():
        owner, key = _owner(tx, module, name), name.rpartition(".")[2]
        before.append((owner, dict(owner.replaced)))
        owner.replaced[key] = realized(value)
    try:
        yield
    finally:
        for owner, replaced in reversed(before):
            owner.replaced = replaced


def _with_tied(tensors: dict[str, Value], slots: dict) -> dict[str, Value]:
    """Extend the tensors to all names of tied parameters."""
    places: dict[int, list[str]] = {}
    for name, (members, key) in slots.items():
        places.setdefault(id(members[key]), []).append(name)
    tied = {other: value for name, value in tensors.items() for other in places[id(slots[name][0][slots[name][1]])]}
    return tied | tensors


def _owner(tx: Following, module: ModuleValue, name: str) -> ModuleValue:
    for part in name.split(".")[:-1]:
        module = module.member(tx, part)
    return module


HANDLERS[functional_call] = HANDLERS[stateless.functional_call] = _functional_call
