"""LazyModuleMixin: modules that infer the sizes of their parameters from their first input.

In: a module with uninitialised parameters and buffers. Out: after the first call, an ordinary module of class `cls_to_become`.
Loading a state dict sets the sizes as well.
"""

from __future__ import annotations

import itertools
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.nn.parameter import is_lazy


class LazyModuleMixin:
    """Precedes the module's class among the bases; the module defines `initialize_parameters(*args, **kwargs)`."""

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(_size_from_state_dict, with_module=True)
        self._initialize_hook = self.register_forward_pre_hook(_initialize_from_input, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters and buffers, with shapes inferred from the first call's arguments."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer of this module has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))


def _size_from_state_dict(
    module: Any, state_dict: dict, prefix: str, metadata: Any, strict: bool, missing: list, unexpected: list, errors: list
) -> None:
    """Pre-hook of loading: give uninitialised tensors the shapes of the values to load."""
    for name, value in itertools.chain(module._parameters.items(), module._buffers.items()):
        given = state_dict.get(prefix + name)
        if is_lazy(value) and given is not None and not is_lazy(given):
            with no_grad():
                value.materialize(given.shape)


def _initialize_from_input(module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Pre-hook of the first call: materialize everything and become an ordinary module."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
