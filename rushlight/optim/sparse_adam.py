"""SparseAdam: Adam for sparse gradients, such as those of embeddings. Elements without a gradient stay, and so do their
moments."""

from __future__ import annotations

import math
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_betas, check_learning_rate, number
from rushlight.optim.per_parameter import PerParameterOptimizer
from rushlight.optim.sparse_rows import indexable, places_and_values


class SparseAdam(PerParameterOptimizer):
    """Adam (Kingma and Ba, 2015) on the elements of a sparse COO gradient; parameters are dense.

    Raises ValueError for options outside of their range and for sparse or complex parameters, RuntimeError for dense gradients.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        check_learning_rate(lr)
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for position, group in enumerate(self.param_groups):
            _check_parameters(group["params"], position)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Here the count is a number, as in torch.
        for values in self.state.values():
            if isinstance(values.get("step"), Tensor):
                values["step"] = int(values["step"].item())

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": aten.zeros_like(parameter), "exp_avg_sq": aten.zeros_like(parameter)}

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _update_from_sparse(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state.update(self._initial_state(parameter, group))
        state["step"] += 1
        gradient = gradient.coalesce()
        if not gradient.values().numel():
            return
        (beta1, beta2), step = group["betas"], state["step"]
        rows, values = places_and_values(gradient)
        means, squares = indexable(state["exp_avg"]), indexable(state["exp_avg_sq"])
        mean = means[rows].lerp_(values, 1 - beta1)
        square = squares[rows].lerp_(values * values, 1 - beta2)
        means.index_put_(rows, mean)
        squares.index_put_(rows, square)
        size = number(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        indexable(parameter).index_put_(rows, mean / (square.sqrt() + group["eps"]) * -size, accumulate=True)


def _check_parameters(parameters: list[Tensor], group: int) -> None:
    sparse = [index for index, parameter in enumerate(parameters) if parameter.is_sparse]
    if sparse:
        raise ValueError(f"Sparse params at indices {sparse} (group {group}): SparseAdam requires dense parameter tensors")
    complexes = [index for index, parameter in enumerate(parameters) if parameter.is_complex()]
    if complexes:
        raise ValueError(
            f"Complex params at indices {complexes} (group {group}): SparseAdam does not support complex parameters"
        )
