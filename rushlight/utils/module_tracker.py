"""`torch.utils.module_tracker`: the names of the running modules, in the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.global_hooks import register_module_forward_hook, register_module_forward_pre_hook
from rushlight.nn.modules.module import Module
from rushlight.utils._pytree import tree_leaves


class ModuleTracker:
    """Under `with tracker:`, `tracker.parents` is the set of names of running modules; it always contains "Global".

    A module's name is the outermost module's class and the path below it: "Net.layer.0". `is_bw` says whether the backward pass
    is running.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self.is_bw = False
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._handles: list[Any] = []

    def name_of(self, module: Module) -> str:
        """Return the name of a module; the first call names all modules below it, too."""
        if module not in self._names:
            for path, child in module.named_modules():
                self._names.setdefault(child, type(module).__name__ + (f".{path}" if path else ""))
        return self._names[module]

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._enter_forward),
            register_module_forward_hook(self._leave_forward, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter_forward(self, module: Module, inputs: Any) -> None:
        name = self.name_of(module)
        self.parents.add(name)
        self._when_gradients_arrive(inputs, self._make_leave_backward(name))

    def _leave_forward(self, module: Module, inputs: Any, outputs: Any) -> None:
        name = self.name_of(module)
        self.parents.discard(name)
        self._when_gradients_arrive(outputs, self._make_enter_backward(name))

    def _when_gradients_arrive(self, values: Any, call: Callable) -> None:
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor) and value.requires_grad]
        if tensors:
            register_multi_grad_hook(tensors, call)

    def _make_enter_backward(self, name: str) -> Callable:
        def enter(grads: Any) -> None:
            self.is_bw = True
            self.parents.add(name)

        return enter

    def _make_leave_backward(self, name: str) -> Callable:
        def leave(grads: Any) -> None:
            self.parents.discard(name)

        return leave


__all__ = ["ModuleTracker"]
