"""FuseLinear: a product with a transposed weight, and a bias, is one `aten::linear`.

Requires: SSA. Guarantees: no `addmm(bias, input, weight.t())` with factors 1, `matmul(input, weight.t()) + bias` or
`matmul(input, weight.t())` is left whose parts nothing else reads.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.subgraph_matcher import Match
from rushlight.jit.passes.subgraph_rewrite import SubgraphRewriter

_LOG = PassLog(__file__)
_LINEAR = """
graph(%input, %weight, %bias{more}):
  %result = aten::linear(%input, %weight, %bias)
  return (%result)
"""
_PATTERNS = (
    ("""
graph(%input, %weight, %bias, %beta, %alpha):
  %weight_t = aten::t(%weight)
  %result = aten::addmm(%bias, %input, %weight_t, %beta, %alpha)
  return (%result)
""", _LINEAR.format(more=", %beta, %alpha"), ("beta", "alpha")),
    ("""
graph(%input, %weight, %bias, %alpha):
  %weight_t = aten::t(%weight)
  %product = aten::matmul(%input, %weight_t)
  %result = aten::add(%product, %bias, %alpha)
  return (%result)
""", _LINEAR.format(more=", %alpha"), ("alpha",)),
    ("""
graph(%input, %weight, %bias, %alpha):
  %weight_t = aten::t(%weight)
  %product = aten::matmul(%input, %weight_t)
  %result = aten::add_(%product, %bias, %alpha)
  return (%result)
""", _LINEAR.format(more=", %alpha"), ("alpha",)),
)  # fmt: skip
_WITHOUT_BIAS = (
    """
graph(%input, %weight):
  %weight_t = aten::t(%weight)
  %result = aten::matmul(%input, %weight_t)
  return (%result)
""",
    """
graph(%input, %weight):
  %none : NoneType = prim::Constant()
  %result = aten::linear(%input, %weight, %none)
  return (%result)
""",
)


@graph_pass("FuseLinear", "_jit_pass_fuse_linear")
def fuse_linear(graph: Graph) -> None:
    """Fuse linear layers."""
    for pattern, replacement, ones in _PATTERNS:
        rewriter = SubgraphRewriter()
        rewriter.register_rewrite_pattern(pattern, replacement)
        is_product = "matmul" not in pattern
        rewriter.run_on_graph(graph, lambda match, ones=ones, known=is_product: _is_linear(match, ones, known))
    rewriter = SubgraphRewriter()
    rewriter.register_rewrite_pattern(*_WITHOUT_BIAS)
    rewriter.run_on_graph(graph, lambda match: True)


def _is_linear(match: Match, ones: tuple[str, ...], is_matrix_product: bool) -> bool:
    """Return whether the factors are 1, and the bias is a 1-dimensional tensor; for anything but `addmm`, that must be
    known.
    """
    if any(match.value(name).constant() != 1 for name in ones):
        return False
    sizes = getattr(match.value("bias").type, "sizes", None)
    is_bias = is_matrix_product if sizes is None else len(sizes) == 1
    return is_bias and _LOG.permits("{} is part of a linear layer", match.anchor)
