"""`torch._logging`: which stages of compilation are printed, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from rushlight.compiler.settings import configure

# PyTorch's log artifacts, each with the stages (see `Settings.logs`) that it prints.
_STAGES = {
    "aot_graphs": ("graph", "partition"), "aot_joint_graph": ("joint",), "autotuning": ("autotune",), "bytecode": ("bytecode",),
    "fusion": ("fusion",), "graph": ("graph",), "graph_breaks": ("graph_breaks",), "graph_code": ("graph",),
    "guards": ("guards",), "ir_post_fusion": ("fusion",), "ir_pre_fusion": ("loops",), "kernel_code": ("code",),
    "output_code": ("code",), "recompiles": ("recompiles",), "recompiles_verbose": ("recompiles",), "schedule": ("fusion",),
}  # fmt: skip
# PyTorch's other components and artifacts: `set_logs` accepts them, and they print nothing.
_WITHOUT_STAGES = frozenset((
    "annotation", "aot", "aot_graphs_effects", "async_compile", "auto_chunker", "autograd", "benchmarking", "c10d", "cache",
    "caching", "compiled_autograd", "compiled_autograd_verbose", "compute_dependencies", "cudagraph_static_inputs",
    "cudagraphs", "ddp", "ddp_graphs", "distributed", "dtensor", "dynamic", "dynamo", "export", "fake_tensor", "fsdp",
    "graph_code_verbose", "graph_region_expansion", "graph_sizes", "hierarchical_compile", "incremental", "inductor",
    "inductor_metrics", "loop_ordering", "loop_tiling", "modules", "native_dsl", "node_runtime_estimation", "not_implemented",
    "onnx", "onnx_diagnostics", "overlap", "overlap_scheduling", "perf_hints", "post_grad_graphs", "pp", "pre_grad_graphs",
    "side_effects", "sym_node", "torch", "trace_bytecode", "trace_call", "trace_shape_events", "trace_source",
    "verbose_guards",
))  # fmt: skip


def set_logs(*, all: int | None = None, **names: Any) -> None:
    """Print these stages from now on, and no others: `set_logs(recompiles=True, output_code=True)`; nothing without arguments.

    Levels of components (`dynamo=logging.INFO`) have no effect. ValueError for an unknown name.
    """
    unknown = [name for name in names if name not in _STAGES and name not in _WITHOUT_STAGES]
    if unknown:
        raise ValueError(f"Unrecognized log or artifact name passed into set_logs: {unknown[0]}")
    configure("logs", frozenset(stage for name, wanted in names.items() if wanted for stage in _STAGES.get(name, ())))
