"""`torch._functorch.config`: settings of joint graphs and their partition."""

from rushlight.compiler.configuration import compiler_setting, install, without_effect

install(__name__, {
    "activation_memory_budget": compiler_setting("memory_budget"),
    **{name: without_effect(default) for name, default in {
        "activation_memory_budget_solver": "dp", "aggressive_recomputation": False, "ban_recompute_used_far_apart": True,
        "debug_partitioner": False, "donated_buffer": True, "enable_autograd_cache": True, "functionalize_rng_ops": False,
        "treat_parameters_as_free_to_save": True,
    }.items()},
})  # fmt: skip
