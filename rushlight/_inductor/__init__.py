"""`torch._inductor`: the names under which programs configure native code, those that generated programs use, and
programs as libraries."""

from rushlight._inductor import config
from rushlight.core.lazy_module import lazy_names

__all__ = ["config"]
__getattr__, __dir__ = lazy_names(globals(), {
    **{f"rushlight._inductor.{name}": () for name in (
        "async_compile", "codecache", "codegen", "compile_fx", "hooks", "select_algorithm", "utils", "wrapper_benchmark",
    )},
    "rushlight.deploy.aoti": ("aoti_compile_and_package", "aoti_load_package"),
})  # fmt: skip
