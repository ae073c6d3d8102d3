"""functional_call: call a module with other tensors in place of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module(*args, **kwargs)` with the given tensors, by dotted name; the module is restored afterwards.

    With `tie_weights`, a tensor stands for all names of the same parameter. With `strict` all names must be given. Raises
    RuntimeError for names that are missing then, KeyError for names that the module has not, and ValueError for different
    tensors for one tied parameter.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _swap_tensors(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _swap_tensors(module: Module, tensors: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    slots = slots_of(module)
    _check_names(module, tensors, slots, strict)
    chosen = _with_tied(tensors, slots) if tie_weights else dict(tensors)
    before = {name: slots[name][0][slots[name][1]] for name in chosen}
    try:
        for name, tensor in chosen.items():
            members, key = slots[name]
            members[key] = tensor
        yield
    finally:
        for name, tensor in before.items():
            members, key = slots[name]
            members[key] = tensor


def slots_of(module: Module) -> dict[str, tuple[dict, str]]:
    """For each dotted name, the dict that holds it in its module, and the key there."""
    found = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for members in (part._parameters, part._buffers):
            for key, value in members.items():
                if value is not None:
                    found[f"{path}.{key}" if path else key] = (members, key)
    return found


def _check_names(module: Module, tensors: Mapping[str, Tensor], slots: dict, strict: bool) -> None:
    unexpected = [name for name in tensors if name not in slots]
    missing = [name for name in slots if name not in tensors] if strict else []
    if strict and (unexpected or missing):
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\tUnexpected key(s): {unexpected}.\n"
            f"\tMissing key(s): {missing}."
        )
    if unexpected:
        raise KeyError(f"{module._get_name()} has no parameter or buffer named {', '.join(map(repr, unexpected))}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor (given for '{name}')")


def _with_tied(tensors: Mapping[str, Tensor], slots: dict[str, tuple[dict, str]]) -> dict[str, Tensor]:
    """Return `tensors`, plus an entry for each tied name of the tensors that they replace."""
    names: dict[Tensor, list[str]] = {}
    for name, (members, key) in slots.items():
        names.setdefault(members[key], []).append(name)
    chosen = dict(tensors)
    for tied in names.values():
        given = [tensors[name] for name in tied if name in tensors]
        if any(value is not given[0] for value in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if given:
            chosen.update(dict.fromkeys(tied, given[0]))
    return chosen
