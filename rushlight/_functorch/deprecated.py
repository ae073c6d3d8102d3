"""`functorch`: the transforms by the names that they had as a package of their own. Each call warns and gives the name now."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import func
from rushlight.core.tensor import Tensor
from rushlight.func.ensembles import functional_call, stack_module_state
from rushlight.nn.modules.module import Module

__all__ = [
    "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _warn(name: str, now: str) -> None:
    warnings.warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated. "
        f"Please use `{now}` instead.", FutureWarning, stacklevel=3,
    )  # fmt: skip


def _renamed(name: str, now: str) -> Callable:
    original = getattr(func, name)

    @functools.wraps(original, updated=())  # torch.compile follows it, unlike the original
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        _warn(name, now)
        return original(*args, **kwargs)

    deprecated.__signature__ = inspect.signature(original)
    return deprecated


vmap = _renamed("vmap", "torch.vmap")
grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, functionalize = (
    _renamed(name, f"torch.func.{name}")
    for name in ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "functionalize")
)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Callable, tuple[Tensor, ...]]:
    """(function of (parameters, *args), parameters) of a module without buffers; RuntimeError for one with buffers.

    With `disable_autograd_tracking` the parameters don't require grad.
    """
    _warn("make_functional", "torch.func.functional_call")
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    call, parameters, _ = _functional(model, disable_autograd_tracking)
    return functools.wraps(call)(lambda parameters, *args, **kwargs: call(parameters, (), *args, **kwargs)), parameters


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Callable, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function of (parameters, buffers, *args), parameters, buffers) of a module."""
    _warn("make_functional_with_buffers", "torch.func.functional_call")
    return _functional(model, disable_autograd_tracking)


def _functional(model: Module, untracked: bool) -> tuple[Callable, tuple[Tensor, ...], tuple[Tensor, ...]]:
    skeleton = copy.deepcopy(model)
    names = [name for name, _ in model.named_parameters()], [name for name, _ in model.named_buffers()]
    parameters = tuple(parameter.detach() if untracked else parameter for parameter in model.parameters())

    def call(parameters: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(names[0], parameters, strict=True)) | dict(zip(names[1], buffers, strict=True))
        return functional_call(skeleton, state, args, kwargs)

    call.stateless_model = skeleton  # type: ignore[attr-defined]
    return call, parameters, tuple(model.buffers())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Callable, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, parameters, buffers) of modules of one class: as `make_functional_with_buffers`, with the state stacked.

    RuntimeError for no modules, for modules of several classes, and for some in training and some in evaluation mode.
    """
    _warn("combine_state_for_ensemble", "torch.func.stack_module_state")
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parameters, buffers = stack_module_state(list(models))
    return _functional(models[0], False)[0], tuple(parameters.values()), tuple(buffers.values())
