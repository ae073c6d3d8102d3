"""NormalizeOps: one name per operator.

Requires: SSA. Guarantees: aliases (`aten::multiply`) have the canonical name (`aten::mul`), a reversed subtraction is a
subtraction, and `is` between bools is equality.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.operators.lookup import schema_fits
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import BOOL, TensorType

_LOG = PassLog(__file__)
ALIASES = {
    "absolute": "abs", "absolute_": "abs_", "clip": "clamp", "clip_": "clamp_", "det": "linalg_det", "ger": "outer",
    "arccos": "acos", "arccos_": "acos_", "arcsin": "asin", "arcsin_": "asin_", "arctan": "atan", "arctan_": "atan_",
    "arccosh": "acosh", "arccosh_": "acosh_", "arcsinh": "asinh", "arcsinh_": "asinh_", "arctanh": "atanh",
    "arctanh_": "atanh_", "arctan2": "atan2", "arctan2_": "atan2_", "fix": "trunc", "fix_": "trunc_", "negative": "neg",
    "negative_": "neg_", "subtract": "sub", "subtract_": "sub_", "greater_equal": "ge", "greater_equal_": "ge_",
    "greater": "gt", "greater_": "gt_", "less_equal": "le", "less_equal_": "le_", "less": "lt", "less_": "lt_",
    "not_equal": "ne", "not_equal_": "ne_", "divide": "div", "divide_": "div_", "multiply": "mul", "multiply_": "mul_",
    "true_divide": "div", "true_divide_": "div_", "row_stack": "vstack", "swapaxes": "transpose", "swapaxes_": "transpose_",
    "swapdims": "transpose", "swapdims_": "transpose_", "moveaxis": "movedim", "concat": "cat", "concatenate": "cat",
    "special_erf": "erf", "special_erfc": "erfc", "special_exp2": "exp2", "special_expm1": "expm1", "special_expit": "sigmoid",
    "special_logit": "logit", "special_logsumexp": "logsumexp", "special_round": "round", "special_sinc": "sinc",
    "special_log1p": "log1p", "special_digamma": "digamma", "special_psi": "digamma", "special_gammaln": "lgamma",
    "special_i0": "i0", "special_erfinv": "erfinv", "special_xlogy": "xlogy", "special_log_softmax": "log_softmax",
    "special_softmax": "softmax", "special_polygamma": "polygamma", "special_multigammaln": "mvlgamma",
    "special_gammainc": "igamma", "special_gammaincc": "igammac", "linalg_matmul": "matmul",
    "orgqr": "linalg_householder_product", "adjoint": "mH",
}  # fmt: skip
"""The names, without `aten::`, of operators that have two."""


@graph_pass("NormalizeOps")
def normalize_ops(graph: Graph) -> None:
    """Give every operator its canonical name."""
    for node in list(graph.all_nodes()):
        if node.kind == "aten::rsub":
            _normalize_reversed(node)
        elif node.kind in ("aten::__is__", "aten::__isnot__"):
            _normalize_identity(node)
        elif node.kind.startswith("aten::"):
            _normalize_name(node)


def _normalize_name(node: Node) -> None:
    plain = ALIASES.get(node.kind.removeprefix("aten::"))
    if plain is None:
        return
    known = any(schema_fits(each.schema, node) for each in operators_named(f"aten::{plain}"))
    if known and _LOG.permits("{} is called aten::{}", node, plain):
        node.kind = f"aten::{plain}"


def _normalize_reversed(node: Node) -> None:
    """Rewrite `rsub(a, b)` to `b - a`, for tensors."""
    if all(isinstance(value.type, TensorType) for value in node.inputs[:2]) and _LOG.permits("{} becomes a subtraction", node):
        first, second = node.inputs[:2]
        node.replace_input(0, second)
        node.replace_input(1, first)
        node.kind = "aten::sub"


def _normalize_identity(node: Node) -> None:
    if all(value.type == BOOL for value in node.inputs) and _LOG.permits("{} compares bools", node):
        node.kind = "aten::eq" if node.kind == "aten::__is__" else "aten::ne"
