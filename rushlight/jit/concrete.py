"""Concrete modules: the facts about a module beyond its type. Stage: jit, script and loading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.types.kinds import ClassType
from rushlight.nn import Module

container, parameter_container = map(LazyModule, ("rushlight.nn.modules.container", "rushlight.nn.modules.parameter_container"))


@dataclass
class ConcreteModule:
    """The compile-time facts about a module: its Python class, its type, its submodules, constants and functions."""

    python_class: type
    type: ClassType
    submodules: dict[str, ConcreteModule] = field(default_factory=dict)
    constants: dict[str, object] = field(default_factory=dict)
    functions: dict[str, Callable] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    pre_hooks: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)

    @property
    def is_iterable(self) -> bool:
        """Return whether a loop over it iterates over its submodules."""
        return issubclass(self.python_class, _iterables())


def _iterables() -> tuple[type, ...]:
    named = (container.Sequential, container.ModuleList, container.ModuleDict)
    return (*named, parameter_container.ParameterList, parameter_container.ParameterDict)


def concrete_of_type(kind: ClassType, submodules: dict[str, ConcreteModule], python_class: type = Module) -> ConcreteModule:
    """Return the concrete type of a traced or loaded module, which its type determines completely."""
    return ConcreteModule(python_class, kind, submodules, dict(kind.constants))
