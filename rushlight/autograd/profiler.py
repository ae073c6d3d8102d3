"""`torch.autograd.profiler`: names for stretches of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.core.absent import absent_class

_HINT = "RUSHLIGHT_LOGS and `rushlight bench` say where time goes"


class record_function:  # noqa: N801  (torch's name)
    """Names a stretch of the program, as a context or a decorator, for a profiler that watches."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, function: Callable) -> Callable:
        """The function, each call of which is a stretch of this name."""

        @functools.wraps(function)
        def named(*args: object, **kwargs: object) -> object:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named


profile = absent_class("torch.autograd.profiler.profile", _HINT)
emit_nvtx = absent_class("torch.autograd.profiler.emit_nvtx", _HINT)
emit_itt = absent_class("torch.autograd.profiler.emit_itt", _HINT)
EventList = absent_class("torch.autograd.profiler.EventList", _HINT, list)
FunctionEvent = absent_class("torch.autograd.profiler.FunctionEvent", _HINT)
