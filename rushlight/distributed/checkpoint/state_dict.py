"""States of models and optimizers by parameters' names, the same with any wrapper, number of ranks or placements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed.tensor.api import distribute_tensor
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.nn.modules.module import Module
from rushlight.ops import aten
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("module.", "_orig_mod.")


@dataclass
class StateDictOptions:
    """How states are given and taken.

    `full_state_dict`: whole tensors in place of distributed ones. `broadcast_from_rank0`: when set, whole tensors are those of
    rank 0. `ignore_frozen_params` leaves out parameters that are not trained. `strict`: names must match when a model takes a
    state. `cpu_offload` changes nothing: tensors are on the CPU.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False


def _plain(name: str) -> str:
    """Return a parameter's name without those of wrappers."""
    parts = name.split(".")
    return ".".join(part for part in parts if f"{part}." not in _WRAPPERS) or name


def _unwrapped(model: Module) -> Module:
    """Return the module inside of DistributedDataParallel or a compiled module."""
    while type(model).__name__ in ("DistributedDataParallel", "OptimizedModule"):
        model = model.module if type(model).__name__ == "DistributedDataParallel" else model._orig_mod
    return model


def _whole(value: Any, options: StateDictOptions) -> Any:
    return value.full_tensor().detach() if options.full_state_dict and isinstance(value, DTensor) else value


def get_model_state_dict(
    model: Module, *, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a model's state by names, without those of wrappers. All ranks must call it with `full_state_dict`."""
    options, target = options or StateDictOptions(), _unwrapped(model)
    frozen: set[str] = set()
    if options.ignore_frozen_params:
        frozen = {name for name, each in target.named_parameters() if not each.requires_grad}
    return {
        _plain(name): _whole(value, options)
        for name, value in target.state_dict().items()
        if name not in frozen
    }  # fmt: skip


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Give a model a state as `get_model_state_dict` returns it, whole or distributed; return missing and unexpected names."""
    options, target = options or StateDictOptions(), _unwrapped(model)
    own = {_plain(name): (name, value) for name, value in target.state_dict().items()}
    taken = {}
    for name, value in model_state_dict.items():
        real, current = own.get(_plain(name), (name, None))
        taken[real] = _placed(value, current, options)
    return target.load_state_dict(taken, strict=options.strict)


def _placed(value: Any, current: Any, options: StateDictOptions) -> Any:
    """Return a whole tensor distributed as the current one."""
    if isinstance(current, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        source = 0 if options.broadcast_from_rank0 else None
        return distribute_tensor(value.detach(), current.device_mesh, current.placements, src_data_rank=source)
    return value


def _names(model: Module) -> dict[int, str]:
    return {id(parameter): _plain(name) for name, parameter in model.named_parameters()}


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return optimizers' states by parameters' names; a state that does not exist yet is made, as before the first step.

    {"state": {name: {...}}, "param_groups": [{..., "params": [names]}]}. All ranks must call it.
    """
    options, names = options or StateDictOptions(), _names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _make_state(optimizer)
        for parameter, state in optimizer.state.items():
            result["state"][names[id(parameter)]] = {key: _whole(value, options) for key, value in state.items()}
        for group in optimizer.param_groups:
            result["param_groups"].append({**group, "params": [names[id(each)] for each in group["params"]]})
    return result


def _make_state(optimizer: Optimizer) -> None:
    """Have an optimizer make its state, by a step that changes nothing: without gradients and learning rates."""
    parameters = [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]
    if optimizer.state or any(each.grad is not None for each in parameters):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    with no_grad():
        for parameter in parameters:
            parameter.grad = aten.zeros_like(parameter)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = aten.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
        optimizer.step()
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        for state in optimizer.state.values():
            _reset_step(state)
    optimizer.zero_grad(set_to_none=True)


def _reset_step(state: dict[str, Any]) -> None:
    step = state.get("step")
    if isinstance(step, Tensor):
        step.zero_()
    elif step is not None:
        state["step"] = 0


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Give optimizers a state as `get_optimizer_state_dict` returns it, whole or distributed. All ranks must call it."""
    options, names = options or StateDictOptions(), _names(model)
    places = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in _listed(optimizers):
        _make_state(optimizer)
        packed = optimizer.state_dict()
        numbered = [names[id(each)] for group in optimizer.param_groups for each in group["params"]]
        packed["state"] = {
            number: {
                key: _placed(value, packed["state"].get(number, {}).get(key), options)
                for key, value in optim_state_dict["state"][name].items()
            }
            for number, name in enumerate(numbered)
            if name in optim_state_dict["state"]
        }
        for group, own in zip(packed["param_groups"], optimizer.param_groups, strict=True):
            given = places.get(names[id(own["params"][0])], {}) if own["params"] else {}
            group.update({key: value for key, value in given.items() if key not in ("params", "param_names")})
        optimizer.load_state_dict(packed)


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and its optimizers by names."""
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Give a model and its optimizers states by names; return missing and unexpected names."""
    keys = set_model_state_dict(model, model_state_dict, options=options) if model_state_dict else None
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys
