"""The index algebra of the loops IR: small, canonical integer expressions with known ranges.

In: loop variables, size symbols and integers, combined with `+ - * // %`. Out: canonical expressions, their ranges and
strides, and their text in Python and C++. Stage: inductor, from lowering to code generation.

`nodes.py` says what an expression is, `ranges.py` how its range is found, `arithmetic.py` and `symbolic.py` which rules
apply when one is built, `views.py` how layouts and reshapes index, `printing.py` how it is written.
"""

from rushlight.inductor.indexing.nodes import Const, Expr, FloorDiv, Mod, Product, Sum, Var
from rushlight.inductor.indexing.operators import as_expr
from rushlight.inductor.indexing.printing import to_cpp, to_python
from rushlight.inductor.indexing.ranges import bounds, is_nonnegative
from rushlight.inductor.indexing.views import flatten_index, reindex_view, row_major_strides, unflatten_index

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
    "unflatten_index",
]
