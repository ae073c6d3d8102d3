"""`compile`: capture a function or module at the first call for a signature, run the passes, build, and call.

A signature is what was assumed of the arguments: the structure and values of those that are not tensors; sizes, strides and
dtypes of tensors; which of them are the same tensor; grad mode; a module's mode and parameters. Python control flow is
followed once per signature.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from rushlight.compiler.backends import Backend, find_backend
from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import PIPELINE
from rushlight.compiler.settings import Settings, from_environment
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.fx.fake_tensor import DataDependentError
from rushlight.fx.proxy_tensor import Capture, capture
from rushlight.nn.modules.module import Module
from rushlight.utils.pytree import tree_flatten


@dataclass
class Entry:
    """What was compiled for one signature. `run` is None where calls fall back to eager."""

    run: Callable | None
    capture: Capture | None


class Compiled:
    """A compiled function: entries by signature. Safe to call from several threads."""

    def __init__(self, function: Callable, module: Module | None, backend: str | Backend, settings: Settings):
        self.function = function
        self.module = module
        self.backend = backend
        self.settings = settings
        self.entries: dict[tuple, Entry] = {}
        self._parts: list[Module] = []
        self._tree: tuple | None = None
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self.name = getattr(function, "__qualname__", type(module).__name__ if module is not None else "function")
        if module is not None:
            self.name = type(module).__name__

    def __call__(self, *args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if state.modes or self._needs_grad(tensors):
            return self._train(args, kwargs)
        signature = (spec, *map(_describe, leaves), _sharing(tensors), state.grad_enabled, self._module_state())
        try:
            entry = self.entries.get(signature)
        except TypeError:
            return self._eager("an argument is neither a tensor nor hashable", args, kwargs)
        if entry is None:
            entry = self._compile(signature, args, kwargs, tensors)
        if entry.run is None:
            return self.function(*args, **kwargs)
        return entry.capture.unflatten(entry.run(*_distinct(tensors)))

    def _module_state(self) -> tuple:
        """The module's mode and which tensors and submodules it holds: an entry is valid only for these."""
        if self.module is None:
            return ()
        if tuple([id(child) for part in self._parts for child in part._modules.values()]) != self._tree:
            self._parts = list(self.module.modules())
            self._tree = tuple([id(child) for part in self._parts for child in part._modules.values()])
        held: list = [self._tree]
        for part in self._parts:
            held.append(part.training)
            held.extend(map(id, part._parameters.values()))
            held.extend(map(id, part._buffers.values()))
        return tuple(held)

    def _needs_grad(self, tensors: list[Tensor]) -> bool:
        if not state.grad_enabled:
            return False
        if any(tensor.requires_grad for tensor in tensors):
            return True
        return self.module is not None and any(parameter.requires_grad for parameter in self.module.parameters())

    def _train(self, args: tuple, kwargs: dict):
        if not state.modes:
            self._warn("gradients are needed and training is not compiled yet: call it under no_grad or inference_mode")
        return self.function(*args, **kwargs)

    def _eager(self, reason: str, args: tuple, kwargs: dict):
        self._warn(reason)
        return self.function(*args, **kwargs)

    def _warn(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"compile: {self.name} runs in eager, because {reason}", stacklevel=4)

    def _compile(self, signature: tuple, args: tuple, kwargs: dict, tensors: list[Tensor]) -> Entry:
        with self._lock:
            entry = self.entries.get(signature)
            if entry is None:
                entry = self._make_entry(args, kwargs, tensors)
                self.entries[signature] = entry
        return entry

    def _make_entry(self, args: tuple, kwargs: dict, tensors: list[Tensor]) -> Entry:
        log = StageLog(self.settings, self.name)
        if self.entries:
            log("recompiles", lambda: f"{self.name}: signature {len(self.entries) + 1} of at most {self.settings.recompile_limit}")
        if len(self.entries) >= self.settings.recompile_limit:
            self._warn(f"it was already compiled for {self.settings.recompile_limit} signatures (RUSHLIGHT_RECOMPILE_LIMIT)")
            return Entry(None, None)
        try:
            captured = capture(self.function, args, kwargs, self._names())
        except DataDependentError as error:
            self._warn(str(error))
            return Entry(None, None)
        for graph_pass in PIPELINE:
            graph_pass(captured.module)
        log("graph", lambda: captured.module.print_readable(print_output=False))
        run = find_backend(self.backend, self.settings, log)(captured.module, _distinct(tensors))
        return Entry(run, captured)

    def _names(self) -> dict[TensorImpl, str]:
        if self.module is None:
            return {}
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        return {tensor._impl: name for name, tensor in named}


def _describe(leaf: object) -> tuple:
    if isinstance(leaf, Tensor):
        impl = leaf._impl
        return (impl.sizes, impl.strides, impl.dtype, impl.device)
    return (type(leaf), leaf)


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    """Each tensor once, in order: a captured graph has one input per distinct tensor."""
    return list({id(tensor._impl): tensor for tensor in tensors}.values())


def _sharing(tensors: list[Tensor]) -> tuple[int, ...]:
    """For each tensor, the position of the first one that is the same."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(id(tensor._impl), position) for position, tensor in enumerate(tensors))


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
    name. Usable as a decorator. Calls that need gradients run in eager and say so.
    """
    if model is None:
        return functools.partial(compile, backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode,
                                 options=options, disable=disable)  # fmt: skip
    if disable:
        return model
    settings = replace(from_environment(), **(options or {}))
    find_backend(backend, settings, StageLog(settings, ""))
    if isinstance(model, Module):
        return OptimizedModule(model, Compiled(model, model, backend, settings))
    if not callable(model):
        raise TypeError(f"compile expects a function or an nn.Module, got {type(model).__name__}")
    compiled = Compiled(model, None, backend, settings)

    @functools.wraps(model)
    def run(*args, **kwargs):
        return compiled(*args, **kwargs)

    run._compiled = compiled
    return run
