"""`torch._inductor.config`: settings of native code.

`print(torch._inductor.config.get_config_copy())` shows them all, and `patch` changes some for a while. Those in the last table
are kept and have no effect: what they switch is always done here, or never.
"""

from rushlight.compiler.configuration import Setting, compiler_setting, install, without_effect

_threads = compiler_setting("threads")

install(__name__, {
    "fallback_random": compiler_setting("fallback_random"),
    "max_autotune": compiler_setting("max_autotune"),
    "max_autotune_gemm": compiler_setting("max_autotune"),
    "cpp.threads": Setting(lambda: _threads.read() or -1, lambda value: _threads.write(max(value, 0))),
    **{name: without_effect(default) for name, default in {
        "_profile_var": "", "_raise_error_for_testing": False, "_save_config_ignore": ["trace.upload_tar"],
        "aggressive_fusion": False, "allow_buffer_reuse": True, "aot_inductor_output_path": "", "autotune_in_subproc": False,
        "batch_fusion": True, "benchmark_harness": True, "benchmark_kernel": False, "comment_origin": False,
        "compile_threads": 1, "constant_and_index_propagation": True, "conv_1x1_as_mm": False,
        "coordinate_descent_check_all_directions": False, "coordinate_descent_search_radius": 1,
        "coordinate_descent_tuning": False, "cpp.cxx": (None, "g++"), "cpp.descriptive_names": "original_aten",
        "cpp.dynamic_threads": False, "cpp.enable_kernel_profile": False, "cpp.inject_log1p_bug_TESTING_ONLY": None,
        "cpp.inject_relu_bug_TESTING_ONLY": None, "cpp.max_horizontal_fusion_size": 16, "cpp.min_chunk_size": 512,
        "cpp.no_redundant_loops": True, "cpp.simdlen": None, "cpp.vec_isa_ok": None, "cpp.weight_prepack": True,
        "cpp_wrapper": False, "dce": False, "debug": False, "debug_index_asserts": False, "debug_ir_traceback": False,
        "developer_warnings": False, "disable_cpp_codegen": False, "disable_progress": True, "epilogue_fusion": True,
        "epilogue_fusion_first": False, "force_disable_caches": False, "force_mixed_mm": False, "freezing": False,
        "freezing_discard_parameters": False, "fx_graph_cache": True, "generate_intermediate_hooks": False,
        "global_cache_dir": None, "group_fusion": False, "implicit_fallbacks": True, "inplace_buffers": True,
        "is_nightly_or_source": False, "joint_graph_constant_folding": True, "keep_output_stride": True,
        "kernel_name_max_ops": 10, "layout_optimization": True, "max_autotune_gemm_backends": "ATEN,TRITON,CPP",
        "max_autotune_pointwise": False, "max_fusion_size": 64, "pattern_matcher": True, "permute_fusion": False,
        "pick_loop_orders": True, "profile_bandwidth": False, "profile_bandwidth_regex": "",
        "profiler_mark_wrapper_call": False, "realize_acc_reads_threshold": None, "realize_bytes_threshold": 2000,
        "realize_reads_threshold": 4, "reorder_for_locality": True, "reordering": True, "save_args": False,
        "search_autotune_cache": False, "shape_padding": True, "size_asserts": True, "split_cat_fx_passes": True,
        "split_reductions": True, "static_weight_shapes": True, "trace.compile_profile": False, "trace.debug_log": False,
        "trace.enabled": False, "trace.fx_graph": True, "trace.fx_graph_transformed": True, "trace.graph_diagram": False,
        "trace.info_log": False, "trace.ir_post_fusion": True, "trace.ir_pre_fusion": True, "trace.output_code": True,
        "trace.upload_tar": None, "triton.assert_indirect_indexing": True, "triton.autotune_cublasLt": True,
        "triton.autotune_pointwise": True, "triton.cudagraph_trees": True, "triton.cudagraph_trees_history_recording": False,
        "triton.cudagraphs": False, "triton.debug_sync_graph": False, "triton.debug_sync_kernel": False,
        "triton.dense_indexing": False, "triton.descriptive_names": "original_aten", "triton.divisible_by_16": True,
        "triton.fast_path_cudagraph_asserts": False, "triton.inject_relu_bug_TESTING_ONLY": None,
        "triton.max_block": {"X": 2048, "Y": 1024, "Z": 1024}, "triton.max_tiles": None, "triton.persistent_reductions": True,
        "triton.skip_cudagraph_warmup": False, "triton.slow_path_cudagraph_asserts": True, "triton.spill_threshold": 16,
        "triton.store_cubin": False, "triton.tiling_prevents_pointwise_fusion": True,
        "triton.tiling_prevents_reduction_fusion": True, "triton.unique_kernel_names": True, "unroll_reductions_threshold": 8,
        "use_mixed_mm": True, "verbose_progress": False, "warn_mix_layout": False,
    }.items()},
})  # fmt: skip
