"""The Triton text of a function: what its graphs become on a GPU, without one and without Triton.

In: a function and inputs for one call. Out: the text of all graphs that the call captures. Stage: compiler, beside the logs.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight.compiler.compile import compile
from rushlight.compiler.logs import StageLog, StageRecord, leave, listen


class _Texts:
    """A listener that keeps the code of all graphs."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def heard(self, log: StageLog, record: StageRecord) -> None:
        """Keep a graph's code."""
        if record.stage == "code" and log.settings.target != "cpp":
            self.found.append(record.text)

    def interpreting(self, log: StageLog) -> AbstractContextManager:
        """Do nothing."""
        return nullcontext()


def triton_text(model: Callable, *inputs: Any, **named: Any) -> str:
    """Return the text of the Triton kernels, and of the functions that launch them, for one call of a function or module.

    The call runs, in eager. If a result needs gradients, the text has the forward and the backward.
    """
    texts = _Texts()
    if isinstance(model, types.FunctionType):  # a copy has no captures yet
        copy = types.FunctionType(model.__code__, model.__globals__, model.__name__, model.__defaults__, model.__closure__)
        copy.__kwdefaults__, copy.__qualname__ = model.__kwdefaults__, model.__qualname__
        model = copy
    listen(texts)
    try:
        compile(model, options={"target": "triton-text", "keep_captures": False})(*inputs, **named)
    finally:
        leave(texts)
    return "\n\n".join(texts.found)
