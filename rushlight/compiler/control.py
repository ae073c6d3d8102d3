"""`torch.compiler`: functions by which programs control capture. Functions are disabled, put into graphs whole, or replaced.

In: the user's functions. Out: the same functions, or replacements.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.compiler.compile import OptimizedModule, innermost
from rushlight.core.following import is_compiling
from rushlight.core.lazy_module import LazyModule
from rushlight.core.thread_state import state
from rushlight.dynamo import frames, regions
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import ALLOWED_IN_GRAPH, HANDLERS, SUBSTITUTED
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Value

constant = LazyModule("rushlight.dynamo.values.constant")
_lock = threading.Lock()  # guards the tables of registered functions


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Callable:
    """Never capture `fn`, a function, module or class; nor, if `recursive`, its callees. Usable as a decorator.

    A compiled function that calls it has a graph break there. `reason` is for readers. TypeError for objects that are not
    callable.
    """
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable expects a function, module or class, got {type(fn).__name__}")
    fn = innermost(fn)
    if inspect.isclass(fn):
        name = "forward" if issubclass(fn, Module) else "__call__"
        setattr(fn, name, regions.disable(getattr(fn, name), recursive))
        return fn
    if isinstance(fn, Module):
        again = functools.partial(disable, recursive=recursive)
        return OptimizedModule(fn, regions.disable(fn if recursive else fn.forward, recursive), again)
    return regions.disable(fn, recursive)


class set_stance:  # noqa: N801 - torch's name
    """Set the stance of compiled functions from now on, in a `with` block, or in calls of the decorated function:

    - "default": they run compiled, and are captured when no guard fits;
    - "force_eager": they run as if they were not compiled;
    - "eager_on_recompile": existing captures are used, everything else runs in eager;
    - "fail_on_recompile": existing captures are used, everything else raises a RuntimeError;
    - "eager_then_compile": a function's first call runs in eager.
    The stance holds for all threads. `skip_guard_eval_unsafe` has no effect: guards are always evaluated. RuntimeError for
    other names, and for a `force_backend`, which only `compile` can choose here.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: str | Callable | None = None
    ) -> None:
        if stance not in frames.STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}; stances are {', '.join(frames.STANCES)}")
        if force_backend is not None:
            raise RuntimeError("set_stance cannot force a backend; give it to compile(backend=...)")
        self._stance = stance
        self._before = frames.stance()
        frames.set_stance(stance)

    def __call__(self, function: Callable) -> Callable:
        frames.set_stance(self._before)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return run

    def __enter__(self) -> None:
        frames.set_stance(self._stance)

    def __exit__(self, *_: object) -> None:
        frames.set_stance(self._before)


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs here."""


def is_exporting() -> bool:
    """Return whether `torch.export` is running this program."""
    return state.exporting


def graph_break(msg: str = "") -> None:
    """Break the graph in a compiled function; do nothing in eager."""


def allow_in_graph(fn: Callable | list | tuple) -> Callable | list | tuple:
    """Make calls of `fn`, or of several functions, nodes of the graph without following them.

    They must only compute with tensors, and give equal results for equal arguments. TypeError for objects that are not
    callable.
    """
    functions = fn if isinstance(fn, list | tuple) else [fn]
    for function in functions:
        if not callable(function):
            raise TypeError(f"allow_in_graph expects a function, got {type(function).__name__}")
    with _lock:
        ALLOWED_IN_GRAPH.update({id(function): function for function in functions})
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """Run calls of `fn` in compiled functions once, at capture; later runs reuse the result.

    Use it for answers that stay the same in a process; nothing checks that. The arguments must be known at capture. TypeError
    for objects that are not callable.
    """
    if not callable(fn):
        raise TypeError(f"assume_constant_result expects a function, got {type(fn).__name__}")
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Callable], Callable]:
    """Return a decorator: compiled functions that call `original_fn` follow the decorated function instead.

    Use it for functions that cannot be captured, such as those written in C. Uncompiled calls do not change. TypeError if
    parameter names differ, unless `skip_signature_check`; ValueError if `original_fn` already has a substitute.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function, got {type(original_fn).__name__}")

    def decorate(function: Callable) -> Callable:
        if not skip_signature_check:
            _check_parameters(original_fn, function)
        import_module("rushlight.dynamo.values")  # registers the built-in handlers first
        with _lock:
            if original_fn in HANDLERS:
                raise ValueError(f"Duplicate polyfill object for {original_fn}: it has a substitute, or is followed, already")
            HANDLERS[original_fn] = lambda tx, *args, **kwargs: tx.wrap_constant(function).call(tx, list(args), kwargs)
            SUBSTITUTED.append(original_fn)
        return function

    return decorate


def _check_parameters(original: Callable, function: Callable) -> None:
    """Raise TypeError unless both functions have the same parameter names."""
    try:
        wanted, given = inspect.signature(original), inspect.signature(function)
    except ValueError:  # a C function without a signature
        return
    if list(wanted.parameters) != list(given.parameters):
        raise TypeError(f"Signature mismatch between {original} and its substitute: {wanted} and {given}")


def reset() -> None:
    """Forget all captures: compiled functions are captured again at their next call."""
    frames.reset()


def _break_graph(tx: Any, msg: Value | None = None) -> Value:
    text = f": {msg.constant()}" if msg is not None and msg.constant() else ""
    raise GraphBreak(f"graph_break() was called{text}", "remove the call")


def _refuse_call(tx: Any, *args: Value, **kwargs: Value) -> Value:
    raise GraphBreak("set_stance() was called", "set the stance outside of what is compiled")


HANDLERS[graph_break] = _break_graph
HANDLERS[set_stance] = _refuse_call
HANDLERS[is_compiling] = lambda tx: constant.ConstantValue(True)
