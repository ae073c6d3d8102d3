"""`torch._check` and the like: the capture learns what a program states about sizes, and the graph checks it when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import sizes
from rushlight.core.algebra import as_expr
from rushlight.core.symbolic import Relation
from rushlight.core.symbolic.relations import at_least
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.unknown_values import message_of
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import NONE, ConstantValue
from rushlight.dynamo.values.later_numbers import UnknownIntegerValue, UnknownTruthValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.dynamo.values.base import Following

_ERRORS = {
    sizes._check: RuntimeError, sizes._check_index: IndexError, sizes._check_value: ValueError,
    sizes._check_type: TypeError, sizes._check_not_implemented: NotImplementedError,
}  # fmt: skip


def _learn(tx: Following, relation: Relation, message: str, error: type[Exception]) -> None:
    tx.graph.check(relation, message, error)
    tx.graph.environment.learn(relation)


def _make_check(error: type[Exception]) -> Callable:
    """Return the handler of the `torch._check` function that raises `error`: it adds an unproven condition to the graph as a
    check."""
    def check(tx: Following, cond: Value, message: Value = NONE) -> Value:
        if not isinstance(cond, UnknownTruthValue):
            return tx.wrap_constant(sizes._check_with).call(tx, [tx.wrap_constant(error), cond, message], {})
        relation = cond.question.relation
        known = message is not NONE and not (message.is_constant() and message.constant() is None)
        text = str(message.call(tx, [], {}).constant()) if known else message_of(relation)
        _learn(tx, relation, text, error)
        return NONE

    return check


def _is_size(tx: Following, i: Value, message: Value = NONE, *, max: Value = NONE) -> Value:
    if not isinstance(i, UnknownIntegerValue):
        number = i.number if hasattr(i, "number") else i.constant()
        holds = number >= 0 and (max.constant() is None or number <= max.constant())
        return _make_check(RuntimeError)(tx, ConstantValue(bool(holds)), message)
    expression = i.number.expr
    limits = [at_least(expression, as_expr(0))]
    if max.constant() is not None:
        limits.append(at_least(as_expr(max.constant()), expression))
    for relation in limits:
        if tx.graph.environment.prove(relation) is not True:
            _learn(tx, relation, message_of(relation), RuntimeError)
    return NONE


for _function, _error in _ERRORS.items():
    HANDLERS[_function] = _make_check(_error)
HANDLERS[sizes._check_is_size] = _is_size
