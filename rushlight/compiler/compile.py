"""`compile`: has the frame hook capture a function or module as it runs, and a backend compile the captured graphs.

In: a function or module, a backend and settings. Out: an object that looks the same, whose calls go through dynamo, as do their
callees. Code that cannot be captured runs in Python between two graphs.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from rushlight.autograd.profiler import compile_stage
from rushlight.compiler.backends import Backend, check_backend, kept_captures, make_backend, name_of_backend
from rushlight.compiler.kept_captures import KeptCaptures
from rushlight.compiler.logs import StageLog
from rushlight.compiler.published import publish
from rushlight.compiler.settings import Settings, configured, from_environment
from rushlight.compiler.values_apart import in_parts, needs_values
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.dynamo.errors import BackendCompilerFailed, GraphBreak
from rushlight.dynamo.frames import FrameCallback, Log
from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.regions import CALL_MODEL, is_compiled_wrapper, optimize
from rushlight.dynamo.rules import RULES
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.function import FunctionValue
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor import observed
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

# PyTorch's settings for work that is always done here, or never.
WITHOUT_EFFECT = frozenset({
    "epilogue_fusion", "shape_padding", "trace.enabled", "trace.graph_diagram", "triton.cudagraphs",
})  # fmt: skip
MAX_CALLBACKS = 8  # a function that is compiled in more ways, each with a backend of its own, loses its oldest captures
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class CompileCallback(FrameCallback):
    """Captures frames for one compiled function, with its backend and settings; `chosen` are the settings given by name."""

    def __init__(
        self, model: Callable, backend: str | Backend, settings: Settings, fullgraph: bool, dynamic: bool | None = None,
        chosen: frozenset[str] = frozenset(),
    ):  # fmt: skip
        unused = make_backend(backend, settings, dict, StageLog(settings, ""))
        super().__init__(unused, fullgraph, settings.recompile_limit, dynamic)
        owner = model if isinstance(model, Module) else getattr(model, "__self__", None)
        self.chosen = backend
        self._settings = settings
        self._chosen_settings = chosen
        self.name = getattr(model, "__qualname__", type(model).__name__)
        self._first_graph = 0
        self._module = weakref.ref(owner) if isinstance(owner, Module) else lambda: None

    @property
    def settings(self) -> Settings:
        """Return the settings for the next capture."""
        return configured(self._settings, self._chosen_settings)

    def limit(self) -> int:
        """Return the setting `recompile_limit`."""
        return self.settings.recompile_limit

    def begin(self, code: types.CodeType) -> tuple[Backend, Log]:
        """Return the backend, whose errors become BackendCompilerFailed, and the log of one capture."""
        log = self._log(code)
        self._first_graph = observed.mark()

        @compile_stage("backend_compile")
        def run_backend(module: GraphModule, inputs: list[Tensor]) -> Callable:
            try:
                if self._takes_parts and needs_values(module):
                    run_backend.writes_last = False
                    return in_parts(module, self._compile_part)
                made = make_backend(self.chosen, self.settings, self._names, log)(module, inputs)
            except Exception as error:
                raise BackendCompilerFailed(name_of_backend(self.chosen), error) from error
            if not callable(made):
                raise BackendCompilerFailed(
                    name_of_backend(self.chosen), TypeError(f"a backend returns a callable, got {type(made).__name__}")
                )
            return made

        run_backend.build_part = self._build_part if self._takes_parts else None
        run_backend.writes_last = self._takes_parts  # if a call fails, it has not modified the graph's inputs
        return run_backend, log

    @property
    def _takes_parts(self) -> bool:
        """Return whether the backend compiles graphs of aten operators, and so can compile parts of a graph separately."""
        return self.chosen in ("aot_eager", "inductor")

    def _compile_part(self, part: GraphModule) -> Module:
        """Compile a part of a graph, for the sizes it meets."""
        callback = CompileCallback(part, self.chosen, self._settings, False, self.dynamic, self._chosen_settings)
        return _wrap_model(part, callback, self._compile_part)

    def _build_part(self, module: GraphModule, inputs: list[Tensor]) -> Callable:
        """Compile a subgraph that a node of another graph calls."""
        log = StageLog(self.settings, f"{self.name}_part")
        return make_backend(self.chosen, self.settings, dict, log)(module, inputs)

    def finished(self, frame: Any, found: GuardedCode) -> None:
        """Publish the graph in the globals of the program."""
        if found.graph_name is not None:
            publish(frame, found, observed.made_since(self._first_graph))

    def kept(self, frame: Any) -> KeptCaptures | None:
        """Return the captures in the cache folder."""
        log = self._log(frame.f_code)
        about = f"{self.fullgraph} {self.is_dynamic()} {log.name}"
        return kept_captures(frame, about, self.chosen, self.settings, self._names, log)

    def _log(self, code: types.CodeType) -> StageLog:
        return StageLog(self.settings, self.name if code.co_name == CALL_MODEL else code.co_qualname, code)

    def _names(self) -> dict[TensorImpl, str]:
        module = self._module()
        if module is None:
            return {}
        return {tensor._impl: name for name, tensor in [*module.named_parameters(), *module.named_buffers()]}


class OptimizedModule(Module):
    """A module whose calls run compiled. Parameters, buffers, children, state dict and attributes are the original's, including
    those set or deleted here. `again` compiles a copy of the module."""

    def __init__(self, module: Module, compiled: Callable, again: Callable[[Module], Module]):
        super().__init__()
        self._orig_mod = module
        del self.__dict__["training"]  # the original's is read and set
        object.__setattr__(self, "_compiled", compiled)
        object.__setattr__(self, "_again", again)

    def __reduce__(self) -> tuple:
        own = {name: value for name, value in self.__dict__.items() if name not in ("_modules", "_compiled", "_again")}
        return self._again, (self._orig_mod,), own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            return super().__call__(*args, **kwargs)
        return self._compiled(*args, **kwargs)  # skip Module.__call__: the original module runs global hooks itself

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the original module's result."""
        return self._compiled(*args, **kwargs)

    @property
    def dynamo_ctx(self) -> Callable:
        """Return a decorator that compiles another module or function with this one's backend and settings; Lightning uses it.
        """
        return self._again

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)  # bool() of a module without __len__ is True

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def _is_own(self, name: str) -> bool:
        """Return whether an attribute belongs to this wrapper: those set by its constructor, and `forward`."""
        return "_orig_mod" not in self.__dict__.get("_modules", ()) or name in self.__dict__ or name in ("_orig_mod", "forward")

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_own(name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_own(name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer to the original module."""
        self._orig_mod.register_buffer(name, tensor, persistent)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter to the original module."""
        self._orig_mod.register_parameter(name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child to the original module."""
        self._orig_mod.add_module(name, module)


def compile(
    model: Callable | Module | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend = "inductor",
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
    verify: bool = False,
) -> Callable | Module:
    """Capture and compile the calls of `model` (a callable or an nn.Module), and of the Python functions that it calls.

    Captures are guarded: another size, dtype, value or module causes a new capture, at most `options["recompile_limit"]` times.
    Code that cannot be captured (a branch on a tensor's value, `print`) breaks the graph and runs in Python; with `fullgraph`
    it is an error that tells where and what to do. `backend` is a name from `list_backends()` or a callable `(GraphModule,
    example_inputs) -> callable`. `options` overrides settings by name; torch's settings without a meaning here have no effect.
    `mode` is one of torch's: "max-autotune" times several ways to run products and convolutions; "reduce-overhead" captures
    calls on a GPU as CUDA graphs. `dynamic` selects the sizes and ints that a capture leaves open: None those that changed
    since an earlier capture, True all of inputs, False none. Usable as a decorator, also of a class, whose instances' calls are
    then compiled. A graph that needs gradients is compiled together with its backward graph. With `verify`, the interpreter
    also runs at each call; if results differ, `CompiledResultDiffers` (a RuntimeError) names the first differing node, with the
    user's line. Raises TypeError for a model that is not callable, ValueError for an unknown backend or mode, RuntimeError for
    an unknown option. """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 disable=disable, verify=verify)  # fmt: skip
    if not callable(model):
        raise TypeError(f"compile expects a function or an nn.Module, got {type(model).__name__}")
    check_backend(backend)
    settings = _settings(mode, options)
    settings = replace(settings, verify=True) if verify else settings
    if disable:
        return model
    if inspect.isclass(model):
        decorate = functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, options=options,
                                     verify=verify)  # fmt: skip
        return _compile_class(model, decorate)
    model = innermost(model)
    chosen = {*(options or ()), *(["verify"] if verify else []), *(["max_autotune"] if _is_timed(mode) else [])}
    callback = _callback_for(model, backend, settings, fullgraph, dynamic, frozenset(chosen))
    again = functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                              verify=verify)  # fmt: skip
    return _wrap_model(model, callback, again)


_callbacks: weakref.WeakKeyDictionary[Callable, list[tuple[tuple, CompileCallback]]] = weakref.WeakKeyDictionary()
_callbacks_lock = threading.Lock()


def _callback_for(model: Callable, backend: str | Backend, *given: Any) -> CompileCallback:
    """Return a callback for a model. A function that is compiled again, with the same backend and settings, keeps its captures:
    programs compile where they call."""
    if not isinstance(model, types.FunctionType):
        return CompileCallback(model, backend, *given)
    rules = replace(RULES)
    with _callbacks_lock:
        known = _callbacks.setdefault(model, [])
        for before, callback in known:
            is_same = callback.chosen is backend or isinstance(backend, str) and callback.chosen == backend
            if is_same and before == (*given, rules):
                return callback
        made = CompileCallback(model, backend, *given)
        known.append(((*given, rules), made))
        if len(known) > MAX_CALLBACKS:
            known.pop(0)[1].forget()
    weakref.finalize(model, made.forget).atexit = False
    return made


def _wrap_model(model: Callable, callback: CompileCallback, again: Callable) -> Callable | Module:
    """Wrap a function or module so that the callback captures its calls. `again` compiles a copy of a module."""
    compiled = optimize(callback)(model)
    if not isinstance(model, types.FunctionType):
        weakref.finalize(compiled, callback.forget).atexit = False
    return OptimizedModule(model, compiled, again) if isinstance(model, Module) else compiled


def innermost(model: Callable) -> Callable:
    """Return the original of a compiled model; other models are returned themselves."""
    if isinstance(model, OptimizedModule):
        return model._orig_mod
    if is_compiled_wrapper(model):
        return model._rushlight_original
    return model


def _compile_class(kind: type, decorate: Callable) -> type:
    """Compile the calls of a class's instances."""
    name = "forward" if issubclass(kind, Module) else "__call__"
    method = getattr(kind, name, None)
    if not isinstance(method, types.FunctionType):
        raise TypeError(f"compile expects a class whose instances can be called, got {kind.__name__}")
    setattr(kind, name, decorate(method))
    return kind


def _settings(mode: str | None, options: dict | None) -> Settings:
    """Return the settings for the arguments `mode` and `options` of `compile`."""
    if mode is not None and mode not in MODES:
        raise ValueError(f"Unrecognized mode={mode!r}, should be one of: {', '.join(MODES)}")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    known = [field.name for field in fields(Settings)]
    chosen = {name: value for name, value in (options or {}).items() if name not in WITHOUT_EFFECT}
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise RuntimeError(f"Unexpected optimization option {unknown[0]}, known options are {known}")
    settings = replace(from_environment(), **chosen)
    graphed = settings.cuda_graphs or mode in ("reduce-overhead", "max-autotune")
    return replace(settings, max_autotune=settings.max_autotune or _is_timed(mode), cuda_graphs=graphed)


def _follow_compiled(tx: Any, model: Value, **options: Value) -> Value:
    """Follow `compile` inside of a captured program: what it compiles is followed into the same graph."""
    if not isinstance(model, FunctionValue):
        raise GraphBreak(f"compile() of {model}", "compile it outside")
    return model


HANDLERS[compile] = _follow_compiled


def _is_timed(mode: str | None) -> bool:
    return mode is not None and mode.startswith("max-autotune")
