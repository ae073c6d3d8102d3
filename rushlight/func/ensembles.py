"""Modules as functions of their parameters and buffers, and several modules' as stacks: together with `vmap`, ensembles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.module import Module
from rushlight.nn.utils import stateless
from rushlight.ops import aten


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module like `nn.utils.stateless.functional_call`, with tensors from several dicts: ValueError for a name in
    two."""
    given = parameter_and_buffer_dicts
    if not isinstance(given, Mapping):
        if not all(isinstance(part, Mapping) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        twice = [name for name, count in Counter(name for part in given for name in part).items() if count > 1]
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for part in given for name, tensor in part.items()}
    return stateless.functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Have all batch normalization layers of a module use each batch's own statistics, and keep none.

    Running statistics are written in place, which `vmap` refuses. The module is changed and returned.

    Example:
        >>> torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(3)))[0].running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of all models, by name, stacked along a new first dimension. Parameters are new
    leaves.

    RuntimeError for no models, models of several classes, or not all in the same mode; ValueError where some parameters of a
    name require gradients and some do not.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stack_state([own[name] for own in parameters], name) for name in parameters[0]},
        {name: _stack_state([own[name] for own in buffers], name) for name in buffers[0]},
    )


def _stack_state(tensors: list[Tensor], name: str) -> Tensor:
    wanted = {tensor.requires_grad for tensor in tensors}
    if len(wanted) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return aten.stack.default([tensor.detach() for tensor in tensors], 0).requires_grad_(wanted.pop())
