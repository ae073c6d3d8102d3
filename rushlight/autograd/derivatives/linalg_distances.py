"""Derivatives of distances between all pairs of points; their gradients cannot be differentiated again, as in torch."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.linalg_common import adjoint, aten
from rushlight.autograd.derivatives.refused import refuse_double_backward

derivative(
    "_cdist_forward",
    x1=lambda grad, x1, x2, p, result: aten._cdist_backward(grad, x1, x2, p, result),
    x2=lambda grad, x1, x2, p, result: aten._cdist_backward(adjoint(grad), x2, x1, p, adjoint(result)),
)
derivative("_cdist_backward", ("grad", "x1", "x2", "cdist"), refuse_double_backward("_cdist_backward"))
derivative("_pdist_forward", self=lambda grad, self, p, result: aten._pdist_backward(grad, self, p, result))
derivative("_pdist_backward", ("grad", "self", "pdist"), refuse_double_backward("_pdist_backward"))
