"""The switch for full checks (order and duplicates) of new compressed tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

_state = [False]


def are_checked(asked: bool | None) -> bool:
    """Return whether to check: the argument, or by default the switch."""
    return _state[0] if asked is None else bool(asked)


class check_sparse_tensor_invariants:
    """A context manager and decorator that turns full checks of new sparse tensors on, or off with `enable=False`."""

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the checks are on."""
        return _state[0]

    @staticmethod
    def enable() -> None:
        """Turn the checks on."""
        _state[0] = True

    @staticmethod
    def disable() -> None:
        """Turn the checks off."""
        _state[0] = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different instance for nesting.")
        self.saved_state, _state[0] = _state[0], self.state

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        _state[0], self.saved_state = bool(self.saved_state), None

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
