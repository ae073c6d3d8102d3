"""Backends: `(GraphModule, example_inputs) -> callable` over flat tensors, by name."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import Settings
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.inductor.build import BuildError, CompilerMissing
from rushlight.inductor.compile_fx import Options, compile_fx

Backend = Callable[[GraphModule, list[Tensor]], Callable]


def eager(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
    """Run the captured graph as it is."""
    return module.forward


def aot_eager(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
    """Run the captured graph's nodes one by one through the interpreter, after the graph passes."""
    return lambda *tensors: Interpreter(module).run(*tensors)


def inductor(settings: Settings, log: StageLog) -> Backend:
    """Native code. Where none can be made, a warning says why and the interpreter runs the graph."""

    def compile_module(module: GraphModule, example_inputs: list[Tensor]) -> Callable:
        reason = module.meta.get("keep_eager")
        if reason:
            log("graph_breaks", lambda: f"run as eager kernels: {reason}")
            return aot_eager(module, example_inputs)
        try:
            return compile_fx(module, Options(settings.threads or get_num_threads(), settings.debug_cpp), log)
        except CompilerMissing as error:
            _warn_once(str(error))
        except BuildError as error:
            _warn(str(error))
        except Exception as error:  # the program is right whatever is wrong with its compilation
            _warn(f"of an error in the compiler, which should be reported: {type(error).__name__}: {error}")
        return aot_eager(module, example_inputs)

    return compile_module


def _warn(reason: str) -> None:
    warnings.warn(f"compile: running the graph through the interpreter, because {reason}", stacklevel=2)


@functools.cache
def _warn_once(reason: str) -> None:
    _warn(reason)


_BACKENDS: dict[str, Backend] = {"eager": eager, "aot_eager": aot_eager}


def register_backend(function: Backend, name: str | None = None) -> Backend:
    """Make a backend known by its name."""
    _BACKENDS[name or function.__name__] = function
    return function


def list_backends() -> list[str]:
    """The names that `compile(backend=...)` takes."""
    return sorted([*_BACKENDS, "inductor"])


def find_backend(backend: str | Backend, settings: Settings, log: StageLog) -> Backend:
    """The backend for a name or a callable; ValueError lists the names."""
    if callable(backend):
        return backend
    if backend == "inductor":
        return inductor(settings, log)
    if backend not in _BACKENDS:
        raise ValueError(f"Invalid backend: {backend!r}, see list_backends(): {', '.join(list_backends())}")
    return _BACKENDS[backend]
