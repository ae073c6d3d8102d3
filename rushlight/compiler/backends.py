"""Backends, by name: `(GraphModule, example_inputs) -> callable`.

In: dynamo's GraphModule, a graph of library calls, and example tensors. Out: a callable over such tensors that returns the
graph's result, a tuple. A user's backend gets parameters as inputs, too; it may edit the module, `recompile()` it and return
its `forward`. "aot_eager" and "inductor" go on to a graph of aten operators.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.compiler.aten import AtenGraph, Builder, compile_to_aten
from rushlight.compiler.kept_captures import KeptCaptures, path_for
from rushlight.compiler.kept_plans import KeptPlans
from rushlight.compiler.logs import StageLog, heard_run, is_heard
from rushlight.compiler.settings import Settings, configured, from_environment
from rushlight.core.lazy_module import LazyModule
from rushlight.core.parallel import get_num_threads
from rushlight.core.symbolic import UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor.build import BuildError, CompilerMissing
from rushlight.inductor.compile_fx import compile_fx
from rushlight.inductor.options import Options
from rushlight.inductor.sizes import UnsupportedSize
from rushlight.switches import get_float32_matmul_precision

if TYPE_CHECKING:
    from rushlight.compiler.passes import Pass

Backend = Callable[[GraphModule, list[Tensor]], Callable]

interpreter, lifted, passes, verify = map(LazyModule, (
    "rushlight.fx.interpreter", "rushlight.compiler.lifted", "rushlight.compiler.passes", "rushlight.compiler.verify",
))  # fmt: skip


def eager(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
    """Run the captured graph as it is."""
    return module.forward


def interpreted(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
    """Run the nodes of a graph of aten operators one by one."""
    return lambda *tensors: interpreter.Interpreter(module).run(*tensors)


def options_of(settings: Settings) -> Options:
    """Return the options of native code for these settings and the current number of threads. Programs measure themselves while
    a listener is registered."""
    precision = "ieee" if get_float32_matmul_precision() == "highest" else "tf32"
    return Options(
        settings.threads or get_num_threads(), settings.debug_cpp, settings.max_autotune, is_heard(), settings.target,
        precision, settings.cuda_graphs,
    )


def kept_plans(settings: Settings) -> KeptPlans | None:
    """Return the store of captured graphs' plans; None if logs, dumps, verification or a listener need real compilations, or if
    the target is not native code."""
    anew = settings.logs or settings.dump or settings.verify or settings.target != "cpp" or is_heard()
    return None if anew else KeptPlans(options_of(settings))


def native(module: GraphModule, settings: Settings, log: StageLog) -> Callable:
    """Compile a graph of aten operators to native code. If that fails, warn and return the interpreter.

    UnsupportedSize and UnguardedSizeError if symbolic sizes are the obstacle.
    """
    reason = module.meta.get("keep_eager")
    if reason:
        log("graph_breaks", lambda: f"run as eager kernels: {reason}")
        return heard_run(log, interpreted(module, []))
    try:
        options = options_of(settings)
        made = compile_fx(module, options, log)
        if not settings.verify:
            return made
        return verify.Verified(log.name, module, made, lambda part: compile_fx(part, options, StageLog(Settings(), log.name)))
    except CompilerMissing as error:
        _warn_once(str(error))
    except BuildError as error:
        _warn(str(error))
    except (UnsupportedSize, UnguardedSizeError):
        raise  # dynamo captures again with fixed sizes
    except RecursionError:
        _warn(f"it is nested more deeply than Python's recursion limit of {sys.getrecursionlimit()} allows")
    except Exception as error:  # a compiler error must not break the program
        _warn(f"of an error in the compiler, which should be reported: {type(error).__name__}: {error}")
    return heard_run(log, interpreted(module, []))


def _warn(reason: str) -> None:
    warnings.warn(f"compile: running the graph through the interpreter, because {reason}", stacklevel=2)


@functools.cache
def _warn_once(reason: str) -> None:
    _warn(reason)


_BUILT_IN = ("aot_eager", "eager", "inductor")
# PyTorch's "aot_eager_decomp_partition" also decomposes and partitions, which "aot_eager" does here already.
_ALIASES = {"aot_eager_decomp_partition": "aot_eager"}
_registered: dict[str, Backend] = {}
_lock = threading.Lock()


def register_backend(function: Backend | None = None, name: str | None = None, tags: tuple[str, ...] = ()) -> Backend:
    """Register a backend under a name, by default the function's. Usable as a decorator; `tags` have no effect.

    ValueError for a name that is taken.
    """
    if function is None:
        return functools.partial(register_backend, name=name, tags=tags)
    name = name or function.__name__
    with _lock:
        if name in _BUILT_IN or _registered.get(name, function) is not function:
            raise ValueError(f"a backend named {name!r} exists already; give register_backend another name")
        _registered[name] = function
    return function


def unregister_backend(name: str) -> None:
    """Remove a registered backend; KeyError if there is none of that name."""
    with _lock:
        del _registered[name]


def list_backends(exclude_tags: tuple[str, ...] | None = ()) -> list[str]:
    """Return the names that `compile(backend=...)` takes."""
    return sorted([*_BUILT_IN, *_registered])


def check_backend(backend: str | Backend) -> None:
    """Raise ValueError for an unknown name, TypeError for anything but a name or a callable."""
    if callable(backend) or backend in _ALIASES:
        return
    if not isinstance(backend, str):
        raise TypeError(f"compile expects a backend's name or a callable, got {type(backend).__name__}")
    if backend not in list_backends():
        raise ValueError(f"Invalid backend: {backend!r}, see list_backends(): {', '.join(list_backends())}")


def name_of_backend(backend: str | Backend) -> str:
    """Return a backend's name in messages."""
    return backend if isinstance(backend, str) else getattr(backend, "__name__", type(backend).__name__)


def _native_parts(settings: Settings, log: StageLog) -> tuple[Builder, Callable[[], list[Pass]]]:
    """Return the builder and the passes of "inductor"."""
    return (lambda aten, _: native(aten, settings, log)), (lambda: passes.for_fusion(settings.fallback_random))


def kept_captures(
    frame: Any, about: str, backend: str | Backend, settings: Settings, names: Callable[[], dict[TensorImpl, str]],
    log: StageLog,
) -> KeptCaptures | None:  # fmt: skip
    """Return the kept captures of a frame for a backend; None if captures are not kept, or must be made again to be observed.
    `about` describes further dependencies besides frame and settings."""
    plans = kept_plans(settings) if backend == "inductor" and settings.keep_captures else None
    path = None if plans is None else path_for(frame, f"{settings} {about}", plans)
    if path is None:
        return None
    build, of_fusion = _native_parts(settings, log)
    return KeptCaptures(frame, path, lambda captured: AtenGraph(captured, build, names, log, of_fusion, None, plans))


def lookup_backend(compiler_fn: str | Backend) -> Backend:
    """Return the backend of a name, with the environment's settings; a callable is returned itself. ValueError for other
    values."""
    check_backend(compiler_fn)
    if callable(compiler_fn):
        return compiler_fn

    def backend(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
        settings = configured(from_environment())
        return make_backend(compiler_fn, settings, dict, StageLog(settings, compiler_fn))(module, example_inputs)

    return backend


def make_backend(
    backend: str | Backend, settings: Settings, names: Callable[[], dict[TensorImpl, str]], log: StageLog
) -> Backend:
    """Return the backend for a checked name or callable; `names` gives the qualified names of parameters and buffers."""
    backend = backend if callable(backend) else _ALIASES.get(backend, backend)
    if backend == "inductor":
        build, of_fusion = _native_parts(settings, log)
        return lambda module, inputs: compile_to_aten(module, inputs, build, names, log, of_fusion, kept_plans(settings))
    if backend == "aot_eager":
        build = lambda module, inputs: heard_run(log, interpreted(module, inputs))  # noqa: E731
        return lambda module, inputs: compile_to_aten(module, inputs, build, names, log, lambda: passes.PIPELINE)
    chosen = backend if callable(backend) else _registered.get(backend)

    def run_backend(module: GraphModule, inputs: list[Tensor]) -> Callable:
        log.graph("captured", module)
        return heard_run(log, eager(module, inputs)) if chosen is None else lifted.run_lifted(chosen, module, inputs)

    return run_backend
