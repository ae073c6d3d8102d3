"""The derivative table: for each differentiable operator, formulas from the gradient of its outputs to those of its inputs.

A formula's parameters say what it needs, by name: `grad`, `grads`, inputs by schema name, `result`, `result0`, `result1`,
`<input>_sizes`, `<input>_dtype`, `<input>_geometry` (sizes, strides and storage offset), `<input>_unchecked` (which may be
written to before the backward), and `needs`. A tensor is saved for the backward pass only where a formula whose gradient is
wanted names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten
from rushlight.ops.schema import split_declaration


class Formula(NamedTuple):
    """Gradients for `inputs` from one function; `names` are its parameters."""

    inputs: tuple[str, ...]
    function: Callable
    names: tuple[str, ...]


class Derivative(NamedTuple):
    """All formulas of one operator."""

    formulas: tuple[Formula, ...]
    non_differentiable_outputs: tuple[int, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all differentiable inputs."""
        return tuple(name for formula in self.formulas for name in formula.inputs)


DERIVATIVES: dict[OpOverload, Derivative] = {}
NON_DIFFERENTIABLE: set[OpOverload] = set()
OVERWRITTEN = Derivative((Formula(("self",), lambda grad: grad.new_zeros(()).expand(grad.shape), ("grad",)),), ())
"""The derivative of in-place forms of these, such as `eq_`: nothing is left of the values before."""


def derivative(
    name: str,
    inputs: tuple[str, ...] | None = None,
    function: Callable | None = None,
    *,
    non_differentiable_outputs: tuple[int, ...] = (),
    **formulas: Callable,
) -> None:
    """Declare the derivative of the aten operator `name`: one formula per input by keyword, or one for several `inputs`."""
    op = aten(name)
    made = [Formula((key,), formula, _parameters(formula)) for key, formula in formulas.items()]
    if inputs is not None:
        made.append(Formula(tuple(inputs), function, _parameters(function)))
    arguments = split_declaration(op.declaration)[2]
    for formula in made:
        for key in formula.inputs:
            if not any(f" {key}{end}" in arguments for end in ",)="):
                raise ValueError(f"derivative of {op}: no input named {key!r} in {op.declaration}")
    DERIVATIVES[op] = Derivative(tuple(made), non_differentiable_outputs)


def non_differentiable(*names: str) -> None:
    """Declare that the operators give no gradient."""
    NON_DIFFERENTIABLE.update(aten(name) for name in names)


def _parameters(function: Callable) -> tuple[str, ...]:
    code = inspect.unwrap(function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
