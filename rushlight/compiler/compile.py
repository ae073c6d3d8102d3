"""`compile`: capture a function or module at the first call for a signature, run the passes, build, and call.

A signature is what was assumed of the arguments: the structure and values of those that are not tensors; sizes, strides
and dtypes of tensors; which of them are the same tensor; grad mode and default dtype; a module's mode and parameters; the
values that a function itself names outside (closure cells, globals, attributes of its object). Python control flow is
followed once per signature. What cannot be captured, or not told apart by a signature, runs in eager, and a warning says so.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from rushlight.compiler.backends import Backend, find_backend
from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import PIPELINE, depends_on_placement
from rushlight.compiler.settings import Settings, from_environment
from rushlight.compiler.signature import (
    ModuleState,
    NotComparable,
    Surroundings,
    ambient,
    describe,
    distinct,
    placement,
    sharing,
)
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.fx.fake_tensor import DataDependentError
from rushlight.fx.proxy_tensor import Capture, capture
from rushlight.inductor.compiled import ConstantChanged
from rushlight.nn.modules.module import Module
from rushlight.utils.pytree import tree_flatten


@dataclass
class Entry:
    """What was compiled for one signature. `run` is None where calls run in eager, for `reason`."""

    run: Callable | None
    capture: Capture | None
    reason: str = ""


class Compiled:
    """A compiled function: entries by signature. Safe to call from several threads."""

    def __init__(self, function: Callable, module: Module | None, backend: str | Backend, settings: Settings,
                 fullgraph: bool = False):  # fmt: skip
        self.function = function
        self.module = module
        self.backend = backend
        self.settings = settings
        self.fullgraph = fullgraph
        self.entries: dict[tuple, Entry] = {}
        self._outside = Surroundings(function) if module is None else ModuleState(module)
        self._looks_at_placement = False
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        named = module if module is not None and function is module else function
        self.name = getattr(named, "__qualname__", type(named).__name__)

    def __call__(self, *args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if state.modes:  # part of another capture
            return self.function(*args, **kwargs)
        if self._needs_grad(tensors):
            return self._eager(_TRAINING, args, kwargs)
        try:
            signature = self._signature(leaves, spec, tensors)
            entry = self.entries.get(signature)
        except NotComparable as error:
            return self._eager(str(error), args, kwargs)
        except TypeError:
            return self._eager("an argument is neither a tensor nor hashable", args, kwargs)
        if entry is None:
            entry = self._compile(signature, args, kwargs, tensors)
        if entry.run is None:
            return self._eager(entry.reason, args, kwargs)
        try:
            return entry.capture.unflatten(entry.run(*distinct(tensors)))
        except ConstantChanged:
            self.entries.pop(signature, None)
            return self(*args, **kwargs)

    def _signature(self, leaves: list, spec: object, tensors: list[Tensor]) -> tuple:
        found = (spec, *map(describe, leaves), sharing(tensors), ambient(), self._outside())
        return (*found, placement(tensors)) if self._looks_at_placement else found

    def _needs_grad(self, tensors: list[Tensor]) -> bool:
        if not state.grad_enabled:
            return False
        return any(tensor.requires_grad for tensor in tensors) or any(
            tensor.requires_grad for tensor in self._outside.tensors()
        )

    def _eager(self, reason: str, args: tuple, kwargs: dict):
        result = self.function(*args, **kwargs)  # first: an error of the program's own needs no warning
        self._warn(reason)
        return result

    def _warn(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"compile: {self.name} runs in eager, because {reason}", stacklevel=4)

    def _compile(self, signature: tuple, args: tuple, kwargs: dict, tensors: list[Tensor]) -> Entry:
        with self._lock:
            entry = self.entries.get(signature)
            if entry is not None:
                return entry
            limit = self.settings.recompile_limit
            if len(self.entries) >= limit:
                return Entry(None, None, f"it was already compiled for {limit} signatures (RUSHLIGHT_RECOMPILE_LIMIT)")
            entry = self._make_entry(args, kwargs, tensors)
            if entry.run is not None and depends_on_placement(entry.capture.module) and not self._looks_at_placement:
                self._looks_at_placement = True
                self.entries.clear()
                signature = (*signature, placement(tensors))
            self.entries[signature] = entry
        return entry

    def _make_entry(self, args: tuple, kwargs: dict, tensors: list[Tensor]) -> Entry:
        log = StageLog(self.settings, self.name)
        if self.entries:
            count, limit = len(self.entries) + 1, self.settings.recompile_limit
            log("recompiles", lambda: f"{self.name}: signature {count} of at most {limit}")
        try:
            captured = capture(self.function, args, kwargs, self._names())
        except Exception as error:
            if self.fullgraph:
                raise
            known = isinstance(error, DataDependentError)
            return Entry(None, None, str(error) if known else f"its capture failed: {type(error).__name__}: {error}")
        if state.grad_enabled and any(tensor.requires_grad for tensor in captured.constants.values()):
            return Entry(None, None, _TRAINING)
        for graph_pass in PIPELINE:
            graph_pass(captured.module)
        log("graph", lambda: captured.module.print_readable(print_output=False))
        return Entry(find_backend(self.backend, self.settings, log)(captured.module, distinct(tensors)), captured)

    def _names(self) -> dict[TensorImpl, str]:
        if self.module is None:
            return {}
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        return {tensor._impl: name for name, tensor in named}


_TRAINING = "gradients are needed and training is not compiled yet: call it under no_grad or inference_mode"


class OptimizedModule(Module):
    """A module whose calls run compiled. Parameters, state dict and attributes are the original's."""

    def __init__(self, module: Module, compiled: Compiled):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_compiled", compiled)

    def forward(self, *args, **kwargs):
        """The original module's result."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str):
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)


def compile(
    model: Callable | Module | None = None,
    *,
    backend: str | Backend = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
) -> Callable | Module:
    """`model` (a function or an nn.Module), compiled on first use for each signature of its arguments.

    `backend` is "inductor", "eager", "aot_eager", a registered name, or a callable
    `(GraphModule, example_inputs) -> callable` over flat tensors that returns a tuple. `options` overrides settings by
    name. Usable as a decorator. Calls that need gradients run in eager and say so. With `fullgraph` an error tells why a
    call cannot be captured, where otherwise it would run in eager.
    """
    if model is None:
        return functools.partial(compile, backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode,
                                 options=options, disable=disable)  # fmt: skip
    if disable:
        return model
    settings = replace(from_environment(), **(options or {}))
    find_backend(backend, settings, StageLog(settings, ""))
    if isinstance(model, Module):
        return OptimizedModule(model, Compiled(model, model, backend, settings, fullgraph))
    if not callable(model):
        raise TypeError(f"compile expects a function or an nn.Module, got {type(model).__name__}")
    owner = getattr(model, "__self__", None)
    compiled = Compiled(model, owner if isinstance(owner, Module) else None, backend, settings, fullgraph)

    @functools.wraps(model)
    def run(*args, **kwargs):
        return compiled(*args, **kwargs)

    run._compiled = compiled
    return run
