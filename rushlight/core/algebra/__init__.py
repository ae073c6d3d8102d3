"""The algebra of sizes and indices: small, canonical integer expressions with known ranges.

In: loop variables, size symbols and integers, combined with `+ - * // %`. Out: canonical expressions, their ranges and
strides, and their text in Python, C++ and Triton. Stage: symbolic sizes (`core/symbolic`), and inductor from lowering to code
generation.

`nodes.py` says what an expression is, `ranges.py` how its range is found, `arithmetic.py` and `symbolic.py` which rules
apply when one is built, `views.py` how layouts and reshapes index, `printing.py` how it is written.
"""

from rushlight.core.algebra.nodes import Const, Expr, FloorDiv, Mod, Product, Sum, Var
from rushlight.core.algebra.operators import as_expr
from rushlight.core.algebra.printing import to_cpp, to_python, to_triton
from rushlight.core.algebra.ranges import bounds, is_nonnegative
from rushlight.core.algebra.views import flatten_index, reindex_view, row_major_strides, unflatten_index

__all__ = [
    "Const",
    "Expr",
    "FloorDiv",
    "Mod",
    "Product",
    "Sum",
    "Var",
    "as_expr",
    "bounds",
    "flatten_index",
    "is_nonnegative",
    "reindex_view",
    "row_major_strides",
    "to_cpp",
    "to_python",
    "to_triton",
    "unflatten_index",
]
