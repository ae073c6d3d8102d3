"""How operators work on distributed tensors: a rule for each family of operators."""

from rushlight.distributed.tensor.rules import matrices, networks, pointwise, reductions, shapes
from rushlight.distributed.tensor.rules.strategies import RULES, Call, Strategy

__all__ = ["RULES", "Call", "Strategy", "matrices", "networks", "pointwise", "reductions", "shapes"]
