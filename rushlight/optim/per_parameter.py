"""PerParameterOptimizer: the base of optimizers that update each parameter only from its own gradient and state.

In: groups with options, gradients in `.grad`. Subclasses give `_initial_state`, and `_update`, which writes to the
parameter and to the tensors of its state in place; complex parameters reach it as pairs of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight._C import optimizer_step
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import tensor
from rushlight.optim.device_steps import step_together
from rushlight.optim.optimizer import Optimizer, evaluate
from rushlight.optim.options import check_capturable


class NativeStep(NamedTuple):
    """The arguments of one native call that steps all parameters of a group: an optimizer of `csrc/kernels/kernels.h`, the
    names of its states and scalars (None for one that the options leave out), and its options."""

    kernel: str
    states: tuple[str | None, ...]
    options: tuple


class PerParameterOptimizer(Optimizer):
    """Base class; see the module. A step with `capturable` outside of compiled functions raises AssertionError, as in torch,
    and one on sparse gradients RuntimeError."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        # Old checkpoints store step counts as numbers.
        for values in self.state.values():
            if "step" in values and not isinstance(values["step"], Tensor):
                values["step"] = tensor(float(values["step"]))

    @runs_as_it_is("one native call updates all parameters of a group")
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the loss of `closure`, if given."""
        loss = evaluate(closure)
        for group in self.param_groups:
            wanted = [parameter for parameter in group["params"] if parameter.grad is not None]
            if wanted:
                check_capturable(group, wanted)
            for parameter in self._update_together(wanted, group):
                self._update_parameter(parameter, group)
        return loss

    def _update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Step parameters in one native call, and those on GPUs by one graph; return those to be stepped one by one."""
        on_gpus = [] if group.get("differentiable") else [parameter for parameter in parameters if parameter.is_cuda]
        if on_gpus:
            here = [parameter for parameter in parameters if not parameter.is_cuda]
            return self._update_on_gpus(on_gpus, group) + self._update_together(here, group)
        native = None if group.get("differentiable") else self._native_step(group)
        if native is None:
            return parameters
        rows, sparse = [], []
        for parameter in parameters:
            gradient = parameter.grad
            if gradient.is_sparse:
                sparse.append(parameter)
            else:
                rows.append(self._row(parameter, gradient, native, group))
        left = [rows[position][0] for position in optimizer_step(native.kernel, rows, native.options)]
        self._note_stepped(rows, left)
        return left + sparse

    def _update_on_gpus(self, parameters: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Update parameters on GPUs together; return those to be stepped one by one."""
        rows, left = [], []
        for parameter in parameters:
            if parameter.grad.is_sparse or parameter.is_complex() or not self._has_state(parameter, group):
                left.append(parameter)
            else:
                rows.append((parameter, parameter.grad, self._state_of(parameter, group)))
        return left + [row[0] for row in step_together(self._update_row, rows, group)]

    def _has_state(self, parameter: Tensor, group: dict[str, Any]) -> bool:
        """Return whether a parameter's state exists or can be created before its step."""
        return True

    def _native_step(self, group: dict[str, Any]) -> NativeStep | None:
        """Return the native step of a group's parameters; None where there is no kernel."""
        return None

    def _row(self, parameter: Tensor, gradient: Tensor, native: NativeStep, group: dict[str, Any]) -> tuple:
        """Return the native call's arguments for one parameter."""
        state = self._state_of(parameter, group)
        return (parameter, gradient, *[None if name is None else state[name] for name in native.states])

    def _note_stepped(self, rows: list[tuple], left: list[Tensor]) -> None:
        """Do what a subclass needs after the native call; `left` are the parameters that it did not step."""

    def _state_of(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter, created if there is none."""
        state = self.state[parameter]
        if not state:
            state.update(self._initial_state(parameter, group))
        return state

    def _update_parameter(self, parameter: Tensor, group: dict[str, Any]) -> None:
        if parameter.grad.is_sparse:
            self._update_from_sparse(parameter, -parameter.grad if group.get("maximize") else parameter.grad, group)
            return
        state = self._state_of(parameter, group)
        if group.get("differentiable"):
            # The graph of earlier differentiable steps holds the old state, so don't overwrite it.
            state.update({name: value.clone() for name, value in state.items() if isinstance(value, Tensor)})
        self._update_row(parameter, parameter.grad, state, group)

    def _update_row(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update one parameter from a dense gradient."""
        gradient = -gradient if group.get("maximize") else gradient
        if parameter.is_complex():
            parameter, gradient = aten.view_as_real(parameter), aten.view_as_real(gradient)
            state = {name: _as_real(value) for name, value in state.items()}
        self._update(parameter, gradient, state, group)

    def _update_from_sparse(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients, use SparseAdam, SGD or Adagrad")

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state before the first step of a parameter."""
        raise NotImplementedError

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update one parameter. `gradient` must not be modified."""
        raise NotImplementedError


def new_number(value: float, parameter: Tensor, group: dict[str, Any]) -> Tensor:
    """Return a number of a state as a tensor: on the CPU, unless a graph of the parameter's GPU is to count with it."""
    is_there = parameter.is_cuda and (group.get("capturable") or group.get("fused"))
    return tensor(value, device=parameter.device) if is_there else tensor(value)


def value_of(number: Tensor) -> float | Tensor:
    """Return a number of a state; the tensor itself if it is on a GPU, so that the program does not wait."""
    return number if number.is_cuda else number.item()


def next_step(state: dict[str, Any]) -> float | Tensor:
    """Increment the step count, and return it; the first step is 1."""
    return value_of(state["step"].add_(1))


def with_decay(parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
    """Return the gradient of the loss with the penalty weight_decay / 2 * p * p."""
    decay = group["weight_decay"]
    return gradient.add(parameter, alpha=decay) if decay else gradient


def _as_real(value: Any) -> Any:
    return aten.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
