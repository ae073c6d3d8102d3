"""Functions of the jit in `torch._C`: switches of the executors, passes by name, and parsing of graphs.

In: a name, through `rushlight._C`. Out: the function. `rushlight._C` itself holds the library's C types.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from rushlight.jit.compiler import compiler
from rushlight.jit.emit.python_values import PythonResolver
from rushlight.jit.execution import (
    get_num_profiled_runs,
    last_graph,
    set_bailout_depth,
    set_fusion_strategy,
    set_profiled_runs,
    set_profiling,
)
from rushlight.jit.frontend.pytorch_names import merge_type_from_type_comment, parse_type_comment
from rushlight.jit.function import Function
from rushlight.jit.graph_api import Graph, parse_ir
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.passes.pass_log import set_logging_option
from rushlight.jit.passes.registry import PASSES
from rushlight.jit.passes.run import run_pass
from rushlight.jit.runtime.modes import change_modes, modes
from rushlight.jit.script_containers import ScriptDict, ScriptList
from rushlight.jit.script_function import ScriptFunction
from rushlight.jit.scripting import CompilationUnit
from rushlight.jit.tree_views import Def

_AUTODIFF_THRESHOLD = 5


def _set_optimization(new_settings: bool | None = None) -> bool:
    """Return whether graphs are optimized. An argument becomes the new setting after the old one was read."""
    before = modes().optimized
    if new_settings is not None:
        change_modes(optimized=bool(new_settings))
    return before


def _make_setter(field: str) -> Callable[[bool], bool]:
    """Return a function that changes a mode and returns the old one."""
    return lambda value: getattr(change_modes(**{field: bool(value)}), field)


def _make_getter(field: str) -> Callable[[], object]:
    return lambda: getattr(modes(), field)


def _set_autodiff_inlining(value: bool) -> None:
    """Set whether small differentiable groups are inlined again."""
    change_modes(autodiff_threshold=_AUTODIFF_THRESHOLD if value else 1)


def _no_nvfuser(*_: object) -> None:
    warnings.warn("nvfuser is no longer supported in torch script; this call has no effect", stacklevel=2)


def _schemas_of(name: str) -> list:
    """Return the schemas of all overloads of an operator."""
    return [operator.schema for operator in operators_named(name)]


def _script_compile(name: str, tree: Def, resolve: Callable[[str], object], defaults: dict[str, object]) -> ScriptFunction:
    """Compile a function's tree; `resolve` looks up names, and `defaults` are those of its parameters."""
    made = compiler.define(tree, name, PythonResolver(resolve, compiler), dict(defaults))
    made.ensure_defined()
    return ScriptFunction(made)


def _create_function_from_graph(name: str, graph: Graph) -> ScriptFunction:
    return ScriptFunction(Function(name, graph.raw))


@dataclass
class _Flag:
    """A switch without effect: it is only stored and returned."""

    value: bool

    def set(self, value: bool) -> bool:
        """Change it; returns the old value."""
        with _lock:
            before, self.value = self.value, bool(value)
        return before

    def get(self) -> bool:
        """Return the current value."""
        return self.value


_lock = threading.Lock()
_reductions, _dynamic_shapes, _needs_llvm, _fallback = _Flag(False), _Flag(False), _Flag(True), _Flag(False)

FUNCTIONS: dict[str, object] = {
    "_jit_set_profiling_executor": set_profiling, "_jit_set_profiling_mode": _make_setter("specializes"),
    "_get_graph_executor_optimize": _set_optimization, "_set_graph_executor_optimize": _set_optimization,
    "_jit_set_num_profiled_runs": set_profiled_runs, "_jit_get_num_profiled_runs": get_num_profiled_runs,
    "_jit_set_fusion_strategy": set_fusion_strategy, "_jit_set_bailout_depth": set_bailout_depth,
    "_jit_override_can_fuse_on_cpu": _make_setter("fuses"), "_jit_can_fuse_on_cpu": _make_getter("fuses"),
    "_jit_override_can_fuse_on_cpu_legacy": _make_setter("fuses"), "_jit_can_fuse_on_cpu_legacy": _make_getter("fuses"),
    "_jit_override_can_fuse_on_gpu": _make_setter("fuses_on_gpu"), "_jit_can_fuse_on_gpu": _make_getter("fuses_on_gpu"),
    "_jit_set_texpr_fuser_enabled": _make_setter("tensor_exprs"), "_jit_texpr_fuser_enabled": _make_getter("tensor_exprs"),
    "_jit_set_llga_enabled": _make_setter("onednn"), "_jit_llga_enabled": _make_getter("onednn"),
    "_jit_set_nvfuser_enabled": _no_nvfuser, "_jit_nvfuser_enabled": _no_nvfuser,
    "_debug_set_fusion_group_inlining": _make_setter("inlines_fusion_groups"),
    "_debug_get_fusion_group_inlining": _make_getter("inlines_fusion_groups"),
    "_debug_set_autodiff_subgraph_inlining": _set_autodiff_inlining,
    "_jit_set_texpr_reductions_enabled": _reductions.set, "_jit_texpr_reductions_enabled": _reductions.get,
    "_jit_set_texpr_dynamic_shape_enabled": _dynamic_shapes.set, "_jit_texpr_dynamic_shape_enabled": _dynamic_shapes.get,
    "_jit_set_te_must_use_llvm_cpu": _needs_llvm.set, "_jit_get_te_must_use_llvm_cpu": _needs_llvm.get,
    "_jit_texpr_set_fallback_allowed": _fallback.set, "_jit_texpr_fallback_allowed": _fallback.get,
    "_jit_set_logging_option": set_logging_option,
    "_jit_script_compile": _script_compile, "parse_type_comment": parse_type_comment,
    "merge_type_from_type_comment": merge_type_from_type_comment,
    "_jit_get_schemas_for_operator": _schemas_of, "_last_executed_optimized_graph": last_graph,
    "parse_ir": parse_ir, "Graph": Graph, "_create_function_from_graph": _create_function_from_graph,
    "CompilationUnit": CompilationUnit, "ScriptFunction": ScriptFunction, "ScriptList": ScriptList, "ScriptDict": ScriptDict,
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Return a function by torch's name. AttributeError if it does not exist here."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name.startswith("_jit_") and name in PASSES:
        return lambda graph, *args, **kwargs: run_pass(name, graph, *args, **kwargs)
    raise AttributeError(f"module 'rushlight._C' has no attribute {name!r}")
