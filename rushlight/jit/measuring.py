"""The reports of `rushlight info --native` and `rushlight bench`: the natively compiled parts of a method, and the time of
calls.

In: a loaded module, a method and arguments. Out: lines of text. Calls are made without gradients.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from rushlight.autograd.grad_mode import no_grad
from rushlight.core import dtype as dtypes
from rushlight.core.dtype import dtype
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.executor import SimpleExecutor, executor_of
from rushlight.jit.runtime.native import Native, Part
from rushlight.ops.packet import find_packet

_MAX_CALLS = 40  # give up waiting for compilation to settle after this many calls; each call may compile another piece
_SETTLED_CALLS = 4  # compilation has settled after this many calls in a row without any
_TIMED = 10
_AFTER = "RUSHLIGHT_JIT_NATIVE_AFTER"


def method_of(module: ScriptModule, name: str) -> Callable:
    """Return a method by its name. RuntimeError lists the existing ones."""
    if module._c.type.find_method(name) is None:
        raise RuntimeError(f"there is no method '{name}'; the module has {', '.join(module._c.type.methods) or 'none'}")
    return module if name == "forward" else module._method(name)


def example_tensor(name: str, size: Sequence[int]) -> Tensor:
    """Return random numbers of a dtype and size: normal for floats, 0 and 1 for ints, which are valid indices of any table.
    ValueError for unknown dtypes.
    """
    kind = getattr(dtypes, "bool_" if name == "bool" else name, None)
    if not isinstance(kind, dtype):
        raise ValueError(f"'{name}' is no dtype, such as float32 or int64")
    if kind.is_floating_point or kind.is_complex:
        return find_packet("aten::randn")(list(size), dtype=kind)
    return find_packet("aten::randint")(2, list(size), dtype=kind)


def native_report(module: ScriptModule, name: str, arguments: Sequence[object]) -> list[str]:
    """Return how a compiled method runs: a line for each part, with its time, its first source line, and why it is not
    native.
    """
    method, function = method_of(module, name), module._c.type.find_method(name)
    function.ensure_defined()
    executor = executor_of(function)
    with no_grad():
        _run_until_steady(method, executor, module, arguments)
        natives = executor.natives([module._c])
        seconds: dict[object, float] = {}
        for native in natives:
            native.watch(seconds)
        start = time.perf_counter()
        for _ in range(_TIMED):
            method(*arguments)
        total = (time.perf_counter() - start) / _TIMED
    parts = [part for native in natives for part in native.parts()]
    for native in natives:
        native.watch(None)
    head = f"{name}: {total * 1e3:.3f} ms a call, {get_num_threads()} threads"
    if not parts:
        return [head, "  interpreted: RUSHLIGHT_LOGS=graph_breaks says why"]
    counts = [sum(part.nodes for part in parts if part.what == what) for what in ("native", "interpreted")]
    return [f"{head}; {counts[0]} nodes native, {counts[1]} interpreted", *map(_format_part, parts)]


def _format_part(part: Part) -> str:
    where = part.where.file_line_column()
    took = "" if part.seconds is None else f"{part.seconds / _TIMED * 1e3:9.3f} ms"
    place = "" if where is None else f"  {where[0]}:{where[1]}"
    reason = f"  ({part.reason})" if part.reason else ""
    what = part.what if part.what in ("branch", "loop") else f"{part.what}, {part.nodes} nodes"
    return f"  {'  ' * part.depth}{what:28}{took}{place}{reason}"


def _run_until_steady(method: Callable, executor: SimpleExecutor, module: ScriptModule, arguments: Sequence[object]) -> None:
    """Call until nothing new is compiled."""
    before, steady = os.environ.get(_AFTER), 0
    os.environ[_AFTER] = "0"
    try:
        seen: object = None
        for _ in range(_MAX_CALLS):
            method(*arguments)
            now = [_shape(native) for native in executor.natives([module._c])]
            steady = steady + 1 if now == seen else 0
            seen = now
            if steady == _SETTLED_CALLS:
                return
    finally:
        if before is None:
            del os.environ[_AFTER]
        else:
            os.environ[_AFTER] = before


def _shape(native: Native) -> list[tuple]:
    return [(part.depth, part.what, part.nodes) for part in native.parts()]


def timing_report(module: ScriptModule, name: str, arguments: Sequence[object], loaded: float, seconds: float) -> list[str]:
    """Return times of loading, the first call, and the median of later ones."""
    method = method_of(module, name)
    with no_grad():
        first, *_ = _time_calls(method, arguments, 0, 1)
        warming = list(_time_calls(method, arguments, seconds, 20))
        times = sorted(_time_calls(method, arguments, seconds, 1000))
    lines = [
        ("load", loaded), ("first call", first), ("slowest of the next calls, in which it compiles", max(warming)),
        ("median", times[len(times) // 2]), ("fastest", times[0]),
    ]  # fmt: skip
    head = f"{name}, {get_num_threads()} threads, {len(times)} calls"
    return [head, *(f"  {took * 1e3:12.3f} ms  {what}" for what, took in lines)]


def _time_calls(method: Callable, arguments: Sequence[object], seconds: float, most: int) -> Iterator[float]:
    """Yield the times of calls: at least one, until the time is up or there are enough."""
    begin = time.perf_counter()
    for count in range(most):
        start = time.perf_counter()
        if count and start - begin > seconds:
            return
        method(*arguments)
        yield time.perf_counter() - start
