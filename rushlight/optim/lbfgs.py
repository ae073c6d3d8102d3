"""LBFGS: a quasi-Newton method with limited memory. Nocedal and Wright, "Numerical Optimization" (2006), section 7.2.

In: a closure that computes the loss and its gradients anew. All parameters are one flat vector of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd import enable_grad
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.line_search import Point, strong_wolfe
from rushlight.optim.optimizer import Optimizer, Parameters
from rushlight.optim.options import check_learning_rate, number

# A step is remembered only if the curvature along it exceeds this.
_MIN_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """Each step runs up to `max_iter` iterations p = p + t * d, where d is the two-loop recursion over `history_size` steps.

    `line_search_fn` is None (t is lr, less in the first iteration) or "strong_wolfe". A step ends early when the largest
    gradient is at most `tolerance_grad`, when moves or changes of the loss are below `tolerance_change`, or after `max_eval`
    evaluations (1.25 * max_iter by default). Raises ValueError for several parameter groups, and
    RuntimeError for other line searches.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check_learning_rate(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    @runs_as_it_is("its search looks at the values of losses")
    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` iterations; returns the loss of the first evaluation of `closure`."""
        return _Step(self, enable_grad()(closure)).run()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]


class _Step:
    """One call of `step`: the closure, the options, and the state that persists between calls."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]):
        self.closure = closure
        self.options = optimizer.param_groups[0]
        self.parameters = optimizer._params
        self.state = optimizer.state[self.parameters[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.evaluations = 0
        if self.options["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, not line_search_fn={self.options['line_search_fn']!r}")

    def run(self) -> Any:
        """Return all iterations."""
        first = self.closure()
        loss, gradient = float(first), self._gradient()
        self._count(1)
        if self._is_flat(gradient):
            return first
        self.state.setdefault("al", [None] * self.options["history_size"])
        memory = {"d": None, "t": None, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1, **self._load_state()}
        for iteration in range(1, self.options["max_iter"] + 1):
            self.state["n_iter"] += 1
            self._choose_direction(memory, gradient)
            memory["prev_flat_grad"], memory["prev_loss"] = gradient, loss
            slope = gradient.dot(memory["d"]).item()
            memory["t"] = self._first_length(gradient)
            if slope > -self.options["tolerance_change"]:
                break
            loss, gradient = self._move(memory, loss, gradient, slope, iteration == self.options["max_iter"])
            if self._is_done(memory, loss, gradient, iteration):
                break
        self.state.update(memory)
        return first

    def _load_state(self) -> dict[str, Any]:
        names = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
        return {name: self.state[name] for name in names if name in self.state}

    def _choose_direction(self, memory: dict[str, Any], gradient: Tensor) -> None:
        if self.state["n_iter"] == 1:
            memory["d"] = gradient.neg()
            return
        self._remember(memory, gradient)
        directions, steps, inverse = memory["old_dirs"], memory["old_stps"], memory["ro"]
        weights = self.state["al"]
        direction = gradient.neg()
        for index in reversed(range(len(directions))):
            weights[index] = steps[index].dot(direction) * inverse[index]
            direction.add_(directions[index], alpha=-number(weights[index]))
        direction = direction * memory["H_diag"]
        for index in range(len(directions)):
            back = directions[index].dot(direction) * inverse[index]
            direction.add_(steps[index], alpha=number(weights[index] - back))
        memory["d"] = direction

    def _remember(self, memory: dict[str, Any], gradient: Tensor) -> None:
        change, moved = gradient - memory["prev_flat_grad"], memory["d"] * memory["t"]
        curvature = change.dot(moved)
        if curvature.item() <= _MIN_CURVATURE:
            return
        for name, value in (("old_dirs", change), ("old_stps", moved), ("ro", 1.0 / curvature)):
            if len(memory[name]) == self.options["history_size"]:
                memory[name].pop(0)
            memory[name].append(value)
        memory["H_diag"] = curvature / change.dot(change)

    def _first_length(self, gradient: Tensor) -> float:
        lr = number(self.options["lr"])
        return min(1.0, 1.0 / gradient.abs().sum().item()) * lr if self.state["n_iter"] == 1 else lr

    def _move(
        self, memory: dict[str, Any], loss: float, gradient: Tensor, slope: float, is_last: bool
    ) -> tuple[float, Tensor]:
        """Move along the direction; returns the loss and the gradient there. Without a line search, the last iteration
        evaluates nothing."""
        direction, length = memory["d"], memory["t"]
        if self.options["line_search_fn"] is None:
            self._add(length, direction)
            if is_last:
                return loss, gradient
            self._count(1)
            return float(self.closure()), self._gradient()
        kept = [parameter.clone() for parameter in self.parameters]
        start = Point(0.0, loss, gradient, slope)

        def evaluate(length: float) -> Point:
            self._add(length, direction)
            value, there = float(self.closure()), self._gradient()
            for parameter, values in zip(self.parameters, kept, strict=True):
                parameter.copy_(values)
            return Point(length, value, there, there.dot(direction).item())

        found, evaluations = strong_wolfe(evaluate, start, length, direction.abs().max().item())
        self._add(found.length, direction)
        memory["t"] = found.length
        self._count(evaluations)
        return found.value, found.gradient

    def _is_done(self, memory: dict[str, Any], loss: float, gradient: Tensor, iteration: int) -> bool:
        least = self.options["tolerance_change"]
        return (
            iteration == self.options["max_iter"]
            or self.evaluations >= self.options["max_eval"]
            or self._is_flat(gradient)
            or (memory["d"] * memory["t"]).abs().max().item() <= least
            or abs(loss - memory["prev_loss"]) < least
        )

    def _is_flat(self, gradient: Tensor) -> bool:
        return gradient.abs().max().item() <= self.options["tolerance_grad"]

    def _count(self, evaluations: int) -> None:
        self.evaluations += evaluations
        self.state["func_evals"] += evaluations

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters as one vector; zeros where there is none."""
        parts = []
        for parameter in self.parameters:
            gradient = aten.zeros_like(parameter) if parameter.grad is None else parameter.grad
            gradient = gradient.to_dense() if gradient.is_sparse else gradient
            parts.append((aten.view_as_real(gradient) if gradient.is_complex() else gradient).reshape(-1))
        return aten.cat(parts, 0)

    def _add(self, length: float, direction: Tensor) -> None:
        """Add `length` times the vector to the parameters."""
        begin = 0
        for parameter in self.parameters:
            real = aten.view_as_real(parameter) if parameter.is_complex() else parameter
            end = begin + real.numel()
            real.add_(direction[begin:end].view(real.shape), alpha=length)
            begin = end
