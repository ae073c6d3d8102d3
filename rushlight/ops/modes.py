"""Kernels at the key Python, which intercept operators below autograd. The thread's dispatch modes come first, innermost first,
then subclasses of Tensor that define `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import dispatches
from rushlight.ops.dispatcher import Kernel, OpOverload, all_operators, register_fallback
from rushlight.ops.schema import Argument

_PYTHON = bit(DispatchKey.Python)


class DispatchMode:
    """Base of modes. Subclasses define `__torch_dispatch__(op, types, args, kwargs)`; `with mode:` makes it active.

    While the handler runs, the mode itself is inactive, so operators called in it go to the next outer mode.
    """

    is_recording = False
    """Whether the mode records calls into a graph. A graph cannot express that a tensor's memory is replaced."""
    as_called = True
    """Whether arguments come as the library passed them. Users' modes get them in torch's form: see `normalize_for_handler`."""

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict):
        raise NotImplementedError

    def __enter__(self):
        state.modes.append(self)
        state.include |= _PYTHON
        return self

    def __exit__(self, *error):
        state.modes.pop()
        if not state.modes:
            state.include &= ~_PYTHON


class SuspendModes:
    """Context manager that deactivates all dispatch modes of this thread."""

    def __enter__(self):
        self._modes, self._include = state.modes, state.include
        state.modes, state.include = [], state.include & ~_PYTHON

    def __exit__(self, *error):
        state.modes, state.include = self._modes, self._include


def normalize_for_handler(op: OpOverload, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Return a call's arguments in the form that torch passes to handlers: in schema order, lists as lists, without
    defaults."""
    arguments, positional = op._schema.arguments, op._schema.positional_count
    named = {argument.name: value for argument, value in zip(arguments, args, strict=False)} | kwargs
    given = [_as_declared(argument, named.get(argument.name, argument.default)) for argument in arguments[:positional]]
    while given and arguments[len(given) - 1].has_default and _same(given[-1], arguments[len(given) - 1].default):
        given.pop()
    rest = {
        argument.name: _as_declared(argument, named[argument.name])
        for argument in arguments[positional:]
        if argument.name in named and not (argument.has_default and _same(named[argument.name], argument.default))
    }
    return tuple(given), rest


def _as_declared(argument: Argument, value: Any) -> Any:
    if not argument.type.is_list:
        return value
    if isinstance(value, tuple):
        return list(value)
    repeated = argument.type.length is not None and isinstance(value, int) and not isinstance(value, bool)
    return [value] * argument.type.length if repeated else value


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, Tensor):
        return False
    if isinstance(value, list) and isinstance(default, list | tuple):
        return value == list(default)
    return type(value) is type(default) and value == default


def _flat(values: tuple) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(tuple(value))
        else:
            yield value


def _overriding_arguments(args: tuple, kwargs: dict) -> list[Tensor]:
    """Return the arguments whose classes override operators, one per class: subclasses before their bases."""
    found: list[Tensor] = []
    for value in _flat((*args, *kwargs.values())):
        kind = type(value)
        if kind is not Tensor and isinstance(value, Tensor) and dispatches(kind) and all(type(v) is not kind for v in found):
            position = next((index for index, other in enumerate(found) if issubclass(kind, type(other))), len(found))
            found.insert(position, value)
    return found


_answers: dict[tuple[OpOverload, type], Callable] = {}


def answer_for(op: OpOverload, kind: type, function: Callable) -> None:
    """Register a function that handles an operator for a class of tensors or modes, instead of their `__torch_dispatch__`."""
    _answers[op, kind] = function


def _mode_kernel(op: OpOverload, below: int):
    def run(*args, **kwargs):
        modes, include = state.modes, state.include
        if not modes:
            return _ask_classes(op, below, args, kwargs)
        mode = modes[-1]
        state.modes = modes[:-1]
        if len(modes) == 1:
            state.include = include & ~_PYTHON
        try:
            if mode.as_called:
                return mode.__torch_dispatch__(op, (), args, kwargs)
            types = tuple(type(value) for value in _overriding_arguments(args, kwargs))
            answer = _answers.get((op, type(mode)))
            given = normalize_for_handler(op, args, kwargs)
            result = answer(mode, op, types, *given) if answer else mode.__torch_dispatch__(op, types, *given)
        finally:
            state.modes, state.include = modes, include
        return result if result is not NotImplemented else _ask_classes(op, below, args, kwargs)

    return run


def _ask_classes(op: OpOverload, below: int, args: tuple, kwargs: dict) -> Any:
    if not _overriding_arguments(args, kwargs):
        return op.redispatch(below, *args, **kwargs)
    return _answer_of_classes(op, args, kwargs)


def _answer_of_classes(op: OpOverload, args: tuple, kwargs: dict) -> Any:
    deciding = _overriding_arguments(args, kwargs)
    given, named = normalize_for_handler(op, args, kwargs)
    types = tuple(map(type, deciding))
    for value in deciding:
        answer = _answers.get((op, type(value)), type(value).__torch_dispatch__)
        result = answer(op, types, given, named)
        if result is not NotImplemented:
            return result
    names = ", ".join(str(kind) for kind in types)
    raise TypeError(f"Multiple dispatch failed for '{op}'; all __torch_dispatch__ handlers returned NotImplemented: [{names}]")


def dispatch_factories_undecomposed() -> None:
    """Let classes see `zeros_like`, `new_full` and similar factories undecomposed, because their decompositions have no tensor
    argument."""
    for op in all_operators():
        composite = op.kernels.get(DispatchKey.CompositeImplicitAutograd)
        if composite is not None and (op._opname.endswith("_like") or op._opname.startswith("new_")):
            op.register(DispatchKey.CompositeImplicitAutograd, Kernel(_make_asking_link(composite), linked=True))


def _make_asking_link(composite: Kernel):
    def link(op: OpOverload, key_set: int):
        replaced = composite.bind(op, key_set)
        if not key_set & _PYTHON:
            return replaced

        def ask(*args, **kwargs):
            return _answer_of_classes(op, args, kwargs) if _overriding_arguments(args, kwargs) else replaced(*args, **kwargs)

        return ask

    return link


register_fallback(DispatchKey.Python, Kernel(_mode_kernel, linked=True))
