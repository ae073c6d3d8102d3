"""`torch._inductor.config`: settings of native code."""

from rushlight.compiler.configuration import Setting, compiler_setting, install, without_effect

_threads = compiler_setting("threads")

install(__name__, {
    "fallback_random": compiler_setting("fallback_random"),
    "max_autotune": compiler_setting("max_autotune"),
    "max_autotune_gemm": compiler_setting("max_autotune"),
    "cpp.threads": Setting(lambda: _threads.read() or -1, lambda value: _threads.write(max(value, 0))),
    **{name: without_effect(default) for name, default in {
        "compile_threads": 1, "conv_1x1_as_mm": False, "coordinate_descent_tuning": False, "cpp.enable_kernel_profile": False,
        "cpp.simdlen": None, "cpp.vec_isa_ok": None, "cpp_wrapper": False, "debug": False, "epilogue_fusion": True,
        "force_disable_caches": False, "freezing": False, "fx_graph_cache": True, "layout_optimization": True,
        "pattern_matcher": True, "permute_fusion": False, "reorder_for_locality": True, "shape_padding": True,
        "trace.enabled": False, "trace.graph_diagram": False, "triton.cudagraph_trees": True, "triton.cudagraphs": False,
        "triton.unique_kernel_names": True,
    }.items()},
})  # fmt: skip
