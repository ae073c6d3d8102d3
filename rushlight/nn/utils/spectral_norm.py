"""The deprecated spectral normalisation: a hook that computes the weight before each call (Miyato et al. 2018).

Prefer `rushlight.nn.utils.parametrizations.spectral_norm`.
"""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, is_lazy


class SpectralNorm:
    """The hook: `name` is the parameter `name_orig` divided by its largest singular value.

    The buffers `name_u` and `name_v` hold the singular vectors, which power iteration improves in training.
    """

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight with dimension `dim` as rows, and all others as columns."""
        return weight.movedim(self.dim, 0).reshape([weight.shape[self.dim], -1])

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the normalised weight."""
        weight = getattr(module, self.name + "_orig")
        left, right = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    right.copy_(F.normalize(matrix.t().mv(left), dim=0, eps=self.eps))
                    left.copy_(F.normalize(matrix.mv(right), dim=0, eps=self.eps))
            # Copy them: later iterations update them in place, and this graph saves them.
            left, right = left.clone(), right.clone()
        return weight / left.dot(matrix.mv(right))

    def remove(self, module: Module) -> None:
        """Replace the weight by a parameter with its current value."""
        with no_grad():
            weight = self.compute_weight(module, False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Register the hook; RuntimeError if the weight has one already."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            left, right = (weight.new_empty([n]).normal_(0, 1) for n in hook.reshape_weight_to_matrix(weight).shape)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute, so that it exists before the first call.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", F.normalize(left, dim=0, eps=eps))
        module.register_buffer(name + "_v", F.normalize(right, dim=0, eps=eps))
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(_StateDictVersion(hook))
        return hook


class _StateDictVersion:
    """Stores the hook's version in state dicts, as torch does."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.hook = hook

    def __call__(self, module: Module, state_dict: dict, prefix: str, local_metadata: dict) -> None:
        local_metadata.setdefault("spectral_norm", {})[self.hook.name + ".version"] = self.hook._version


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide the weight, as a matrix with the rows of `dim`, by its largest singular value."""
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo spectral_norm, keeping the weight's value; ValueError if there was none."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for number, hook in module._state_dict_hooks.items():
        if isinstance(hook, _StateDictVersion) and hook.hook.name == name:
            del module._state_dict_hooks[number]
            break
    return module
