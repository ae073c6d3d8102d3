"""The frontend: Python source to tree views. `definitions.py` begins; `statements.py` and `expressions.py` do the rest.

The package's own attributes are PyTorch's names for it (`torch.jit.frontend.build_def`), with PyTorch's signatures.
"""

from rushlight.core.lazy_module import lazy_names

__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.jit.errors": ("FrontendError", "NotSupportedError", "UnsupportedNodeError"),
    "rushlight.jit.frontend.pytorch_names": (
        "SourceContext", "build_def", "build_expr", "build_param_list", "build_stmt", "build_stmts", "get_jit_class_def",
        "get_jit_def",
    ),
    "rushlight.jit.frontend.tree_constructors": ("SourceRangeFactory",),
}, {"get_default_args": ("rushlight.jit.compiler", "default_arguments")})  # fmt: skip
