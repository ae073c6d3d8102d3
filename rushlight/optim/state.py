"""State dicts of optimizers: pack groups by parameter number, and restore states to parameters."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from rushlight.core.tensor import Tensor


def pack_groups(groups: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Return the groups with parameters replaced by numbers, and the numbers by parameter id."""
    numbers: dict[int, int] = {}
    packed = []
    for group in groups:
        for parameter in group["params"]:
            numbers.setdefault(id(parameter), len(numbers))
        options = {name: value for name, value in group.items() if name != "params"}
        packed.append({**options, "params": [numbers[id(parameter)] for parameter in group["params"]]})
    return packed, numbers


def check_compatible(groups: list[dict[str, Any]], saved: list[dict[str, Any]]) -> None:
    """Raise ValueError unless saved groups match an optimizer's groups in number and sizes."""
    if len(groups) != len(saved):
        raise ValueError(
            "loaded state dict has a different number of parameter groups: "
            f"the optimizer has {len(groups)}, the state dict {len(saved)}"
        )
    for position, (own, other) in enumerate(zip(groups, saved, strict=True)):
        if len(own["params"]) != len(other["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                f"group {position} has {len(own['params'])} parameters, and {len(other['params'])} in the state dict"
            )


def restore_state(
    saved: dict[Hashable, Any], by_number: dict[Hashable, Tensor], groups: list[dict[str, Any]]
) -> defaultdict[Hashable, Any]:
    """Return a copy of a saved state, keyed by parameters; entries without a parameter keep their key. `groups` are the saved
    ones."""
    counting = {
        number for group in groups if group.get("capturable") or group.get("fused") for number in group["params"]
    }
    restored: defaultdict[Hashable, Any] = defaultdict(dict)
    for key, value in saved.items():
        if key in by_number:
            restored[by_number[key]] = _copy_state(value, by_number[key], key in counting, None)
        else:
            restored[key] = copy.deepcopy(value)
    return restored


def _copy_state(value: Any, parameter: Tensor, counts_there: bool, name: Hashable) -> Any:
    """Copy a state to the device of its parameter, with floating tensors cast to its dtype. Numbers, as the step count, stay on
    the CPU unless the parameter's GPU counts with them, and the step count keeps its dtype."""
    if isinstance(value, Tensor):
        is_number = name == "step" or (not value.dim() and parameter.dim() > 0)
        place = value.device if is_number and not counts_there else parameter.device
        kind = parameter.dtype if parameter.is_floating_point() and name != "step" else value.dtype
        return value.detach().to(place, kind, copy=True)
    if isinstance(value, dict):
        return {key: _copy_state(part, parameter, counts_there, key) for key, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_copy_state(part, parameter, counts_there, name) for part in value)
    return copy.deepcopy(value)
