"""TorchScript: `script` compiles Python to a typed IR, which runs on a stack machine and as native code.

Order of the data: `frontend/` (source to tree views), `emit/` (trees to typed SSA graphs, in `ir/`), `passes/`, `runtime/`
(graphs to instructions to results). `module_types.py` and `classes.py` say what modules and classes are.
"""

from __future__ import annotations

from typing import Final

from rushlight.jit.classes import interface
from rushlight.jit.decorators import export, ignore, unused
from rushlight.jit.errors import JitException as Error
from rushlight.jit.errors import ScriptWarning
from rushlight.jit.execution import (
    enable_onednn_fusion,
    fuser,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
)
from rushlight.jit.execution import get_num_profiled_runs as _jit_get_num_profiled_runs
from rushlight.jit.execution import get_profiling_executor as _get_graph_executor_profiling
from rushlight.jit.execution import last_graph as last_executed_optimized_graph
from rushlight.jit.execution import set_profiled_runs as _jit_set_num_profiled_runs
from rushlight.jit.execution import set_profiling as _jit_set_profiling_executor
from rushlight.jit.exported_operators import export_opnames
from rushlight.jit.freezing import freeze, optimize_for_inference, run_frozen_optimizations
from rushlight.jit.language import Attribute, _unwrap_optional, annotate, fork, is_scripting, wait
from rushlight.jit.language import fork as _fork
from rushlight.jit.language import jit_isinstance as isinstance
from rushlight.jit.language import wait as _wait
from rushlight.jit.module import RecursiveScriptModule, ScriptModule, script_method
from rushlight.jit.operators.registry import deregister_operator, register_operator
from rushlight.jit.overloads import overload as _overload
from rushlight.jit.overloads import overload as _overload_method
from rushlight.jit.runtime.futures import Future
from rushlight.jit.script import ScriptFunction
from rushlight.jit.script_class import RecursiveScriptClass
from rushlight.jit.scripting import CompilationUnit, script
from rushlight.jit.serialization.loading import load
from rushlight.jit.serialization.saving import save, save_to_buffer
from rushlight.jit.strict import strict_fusion
from rushlight.jit.tracing.check import TracingCheckError
from rushlight.jit.tracing.language import is_tracing, script_if_tracing
from rushlight.jit.tracing.modules import TopLevelTracedModule, TracedModule
from rushlight.jit.tracing.trace import trace, trace_module
from rushlight.jit.tracing.warning import TracerWarning
