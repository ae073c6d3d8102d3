"""`torch._dynamo.config`: settings of capture."""

from rushlight.compiler.configuration import capture_rule, compiler_setting, install, without_effect

install(__name__, {
    "recompile_limit": compiler_setting("recompile_limit"),
    "cache_size_limit": compiler_setting("recompile_limit"),
    **{name: capture_rule(name) for name in (
        "assume_static_by_default", "automatic_dynamic_shapes", "capture_dynamic_output_shape_ops", "capture_scalar_outputs",
        "disable", "error_on_recompile", "suppress_errors", "trace_numpy",
    )},
    **{name: without_effect(default) for name, default in {
        "accumulated_cache_size_limit": 256, "accumulated_recompile_limit": 256, "allow_rnn": False,
        "allow_unspec_int_on_nn_module": False,
        "compiled_autograd": False, "dynamic_shapes": True, "enable_cpp_guard_manager": True,
        "force_nn_module_property_static_shapes": True, "force_parameter_static_shapes": True, "guard_nn_modules": True,
        "inline_inbuilt_nn_modules": True, "optimize_ddp": True, "skip_nnmodule_hook_guards": True,
        "specialize_float": False, "specialize_int": False, "verbose": False,
    }.items()},
})  # fmt: skip
