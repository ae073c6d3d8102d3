"""`torch._functorch.aot_autograd`: forward and backward graphs for compilers of the user's."""

from rushlight.compiler.aot_function import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]
