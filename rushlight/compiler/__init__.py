"""The compiler: `compile()`, backends, the list of passes, settings, logs and dumps. It connects the stages.

Users know it as `torch.compiler`.
"""

from rushlight.compiler import checkpointing
from rushlight.compiler.backends import list_backends, register_backend
from rushlight.compiler.compile import OptimizedModule, compile
from rushlight.compiler.control import (
    allow_in_graph,
    assume_constant_result,
    cudagraph_mark_step_begin,
    disable,
    graph_break,
    is_compiling,
    is_exporting,
    reset,
    set_stance,
    substitute_in_graph,
)
from rushlight.compiler.settings import Settings, from_environment
from rushlight.core.lazy_module import lazy_names
from rushlight.dynamo.dynamic import mark_dynamic, mark_static, maybe_mark_dynamic

is_dynamo_compiling = is_compiling

__all__ = [
    "CacheInfo", "CompiledResultDiffers", "OptimizedModule", "Settings", "allow_in_graph", "assume_constant_result",
    "checkpointing", "compile", "cudagraph_mark_step_begin", "disable", "from_environment", "graph_break",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "load_cache_artifacts", "mark_dynamic",
    "mark_static", "maybe_mark_dynamic", "profile", "register_backend", "reset", "save_cache_artifacts",
    "set_stance", "substitute_in_graph", "triton_text",
]  # fmt: skip

# Names that are imported at first use: compiling and running do not need them.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.compiler.kernel_profile": ("profile",),
    "rushlight.compiler.triton_source": ("triton_text",),
    "rushlight.compiler.verify": ("CompiledResultDiffers",),
    "rushlight.inductor.artifacts": ("CacheInfo", "load_cache_artifacts", "save_cache_artifacts"),
})  # fmt: skip
