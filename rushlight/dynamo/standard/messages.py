"""Warnings and log records: issued after the graph has run, with the place in the program that issued them."""

from __future__ import annotations

import logging
import operator
import re
import warnings
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.sources import Asked
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.classes import ClassValue
from rushlight.dynamo.values.constant import NONE, ConstantValue
from rushlight.dynamo.values.objects import ObjectValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_USER_WARNING = ClassValue(UserWarning)
_FIRST = ConstantValue(1)


# Handlers of warnings


@handles(warnings.warn)
def _warn(
    tx: Following, message: Value, category: Value = _USER_WARNING, stacklevel: Value = _FIRST, source: Value = NONE,
    **options: Value,
) -> Value:  # fmt: skip
    kind = category.constant() or UserWarning
    if not message.is_constant() or not isinstance(message.constant(), str) or source is not NONE or options:
        raise GraphBreak("a warning that is no text known at capture")
    text, level = message.constant(), max(stacklevel.constant(), 1)
    frames = _frames(tx)
    if level > len(frames):  # the stack level refers to a caller outside the capture, known only at run time
        tx.effects.call_later(warnings.warn, text, kind, level - len(frames) + 1)
        return NONE
    frame = frames[level - 1]
    file, line, _ = frame.user_places()[-1]
    module = frame.module_globals.get("__name__") or "<unknown>"
    if _warning_action(text, kind, module, line) == "error":
        raise GraphBreak("a warning that is an error")
    tx.effects.call_later(warn_at, text, kind, file, line, module, frame.module_globals)
    return NONE


def warn_at(text: str, kind: type[Warning], file: str, line: int, module: str, namespace: dict) -> None:
    """Warn from a line of a module with these globals."""
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, kind, file, line, module, registry, namespace)


def _frames(tx: Following) -> list[Following]:
    """Return the followed frames, innermost first."""
    found: list[Following] = []
    frame: Following | None = tx
    while frame is not None:
        found.append(frame)
        frame = frame.parent
    return found


def _warning_action(text: str, kind: type[Warning], module: str, line: int) -> str:
    """Return the action that the current warning filters give for a warning."""
    for action, message, category, place, number in warnings.filters:
        fits = (message is None or _matches(message, text)) and (place is None or _matches(place, module))
        if fits and issubclass(kind, category) and number in (0, line):
            return action
    return warnings.defaultaction


def _matches(pattern: Any, text: str) -> bool:
    return bool(re.match(pattern, text, re.IGNORECASE) if isinstance(pattern, str) else pattern.match(text))


# Handlers of log records


@handles(logging.Logger.isEnabledFor)
def _is_enabled(tx: Following, logger: Value, level: Value) -> Value:
    asked = operator.methodcaller("isEnabledFor", level.constant())
    answer = _real_logger(logger).isEnabledFor(level.constant())
    tx.guards.same_value(Asked(logger.source, tx.guards.name(asked, "is_enabled", is_owned=True)), answer)
    return ConstantValue(answer)


@handles(logging.Logger._log)
def _log(tx: Following, logger: Value, level: Value, message: Value, values: Value, **options: Value) -> Value:
    given = [value.constant() for value in (level, message, values)]
    if options:
        raise GraphBreak("a log record with options")
    tx.effects.call_later(log_at, _real_logger(logger), *given, *tx.user_places()[-2])
    return NONE


def log_at(logger: logging.Logger, level: int, message: object, values: tuple, file: str, line: int, function: str) -> None:
    """Log with the place of a line in a function."""
    logger.handle(logger.makeRecord(logger.name, level, file, line, message, values, None, function))


def _real_logger(logger: Value) -> logging.Logger:
    if not isinstance(logger, ObjectValue) or logger.real is None or logger.source is None:
        raise GraphBreak("a logger that the program made")
    return logger.real


HANDLERS[logging.getLogger] = lambda tx, name=NONE: tx.wrap_constant(logging.getLogger(name.constant()))
