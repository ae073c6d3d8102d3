"""The deprecated weight normalisation: a hook that computes the weight before each call.

Prefer `rushlight.nn.utils.parametrizations.weight_norm`, which loads state dicts of this one.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class WeightNorm:
    """The hook: it computes the weight `name` from the parameters `name_g`, its norms, and `name_v`, its directions."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight."""
        norms, directions = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return aten._weight_norm.default(directions, norms, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Register the hook; RuntimeError if the weight has one already."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(aten.norm_except_dim.default(weight, 2, hook.dim).detach()))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Replace the weight by a parameter with its current value."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the weight's norms over all dimensions but `dim` (all for None) and its directions separately."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo weight_norm, keeping the weight's value; ValueError if there was none."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
