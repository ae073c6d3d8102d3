"""TorchScript: `script` compiles Python to a typed IR, which runs on a stack machine and as native code.

Order of the data: `frontend/` (source to tree views), `emit/` (trees to typed SSA graphs, in `ir/`), `passes/`, `runtime/`
(graphs to instructions to results). `module_types.py` and `classes.py` derive the types of modules and classes.
"""

from typing import Final

from rushlight.core.lazy_module import lazy_names

_HOMES = {
    # No `from __future__ import annotations` in this file: it would hide this submodule's name.
    "rushlight.jit.annotations": (),
    "rushlight.jit.classes": ("interface",),
    "rushlight.jit.decorators": ("export", "ignore", "unused"),
    "rushlight.jit.errors": ("ScriptWarning",),
    "rushlight.jit.execution": (
        "enable_onednn_fusion", "fuser", "onednn_fusion_enabled", "optimized_execution", "set_fusion_strategy",
    ),
    "rushlight.jit.exported_operators": ("export_opnames",),
    "rushlight.jit.frontend": (),
    "rushlight.jit.freezing": ("freeze", "optimize_for_inference", "run_frozen_optimizations"),
    "rushlight.jit.language": ("Attribute", "_unwrap_optional", "annotate", "fork", "is_scripting", "wait"),
    "rushlight.jit.module": ("RecursiveScriptModule", "ScriptModule", "script_method"),
    "rushlight.jit.operators.registry": ("deregister_operator", "register_operator"),
    "rushlight.jit.overloads": (),
    "rushlight.jit.runtime.futures": ("Future",),
    "rushlight.jit.script_function": ("ScriptFunction",),
    "rushlight.jit.script_class": ("RecursiveScriptClass",),
    "rushlight.jit.scripting": ("CompilationUnit", "script"),
    "rushlight.jit.serialization.loading": ("load",),
    "rushlight.jit.serialization.saving": ("save", "save_to_buffer"),
    "rushlight.jit.strict": ("strict_fusion",),
    "rushlight.jit.tracing.check": ("TracingCheckError",),
    "rushlight.jit.tracing.language": ("is_tracing", "script_if_tracing"),
    "rushlight.jit.tracing.modules": ("TopLevelTracedModule", "TracedModule"),
    "rushlight.jit.tracing.trace": ("_get_trace_graph", "trace", "trace_module"),
    "rushlight.jit.tracing.warning": ("TracerWarning",),
}  # fmt: skip
"""The names by module, which is imported when one of them is first asked for. Type checkers read `__init__.pyi`."""
_ALIASES = {
    "Error": ("rushlight.jit.errors", "JitException"),
    "_fork": ("rushlight.jit.language", "fork"),
    "_get_graph_executor_profiling": ("rushlight.jit.execution", "get_profiling_executor"),
    "_jit_get_num_profiled_runs": ("rushlight.jit.execution", "get_num_profiled_runs"),
    "_jit_set_num_profiled_runs": ("rushlight.jit.execution", "set_profiled_runs"),
    "_jit_set_profiling_executor": ("rushlight.jit.execution", "set_profiling"),
    "_overload": ("rushlight.jit.overloads", "overload"),
    "_overload_method": ("rushlight.jit.overloads", "overload"),
    "_script_if_tracing": ("rushlight.jit.tracing.language", "script_if_tracing"),
    "_wait": ("rushlight.jit.language", "wait"),
    "isinstance": ("rushlight.jit.language", "jit_isinstance"),
    "last_executed_optimized_graph": ("rushlight.jit.execution", "last_graph"),
}
"""Names that differ from those in their modules."""

__getattr__, __dir__ = lazy_names(globals(), _HOMES, _ALIASES)
