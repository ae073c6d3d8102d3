"""Classes of the library whose objects are tracked in a way of their own; built-in `__new__` called by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.autograd.grad_mode import enable_grad, no_grad
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.builtin import HANDLERS
from rushlight.dynamo.values.construction import CONSTRUCTORS, allocate
from rushlight.dynamo.values.contexts import GradModeValue

if TYPE_CHECKING:
    from rushlight.dynamo.translator import Translator


def _switch(kind: type) -> None:
    def make(tx: Translator, function: Value | None = None) -> Value:
        made = GradModeValue(kind)
        return made if function is None else made.call(tx, [function], {})

    CONSTRUCTORS[kind] = make


_switch(no_grad)
_switch(enable_grad)


def _allocate(tx: Translator, kind: Value, *args: Value, **kwargs: Value) -> Value:
    return allocate(tx, kind.constant(), list(args), kwargs)


for _base in (object, list, tuple, dict, set, frozenset, int, float, str, bytes):
    HANDLERS[_base.__new__] = _allocate
