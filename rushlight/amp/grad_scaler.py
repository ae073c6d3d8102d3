"""GradScaler: losses scaled up, so that small gradients do not vanish in float16.

Micikevicius et al., "Mixed Precision Training" (2018), https://arxiv.org/abs/1710.03740.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.core.device import gpus
from rushlight.core.dtype import float16, float32
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import tensor
from rushlight.ops.together import call_together, stacked

if TYPE_CHECKING:  # only annotations need it, and its import takes a while
    from rushlight.optim.optimizer import Optimizer


class GradScaler:
    """Scales losses, unscales gradients, and leaves out steps whose gradients are not finite.

    The scale starts at `init_scale`, falls by `backoff_factor` after such a step, and rises by `growth_factor` after
    `growth_interval` steps without one. On devices that do not exist here it is disabled, with a warning, and changes nothing.
    Raises ValueError for factors on the wrong side of 1, RuntimeError for calls in the wrong order.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device = device
        self._enabled = enabled and (device == "cpu" or (device == "cuda" and gpus.count() > 0))
        if enabled and not self._enabled:
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available. Disabling.", stacklevel=2
            )
        if growth_factor <= 1.0:
            raise ValueError(f"The growth factor must be > 1.0, but is {growth_factor}.")
        if backoff_factor >= 1.0:
            raise ValueError(f"The backoff factor must be < 1.0, but is {backoff_factor}.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Since the last update: by optimizer, whether a gradient was not finite; and which optimizers stepped.
        self._found_inf: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def _scale_tensor(self) -> Tensor:
        if self._scale is None:
            self._scale = tensor(self._init_scale, dtype=float32)
        return self._scale

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Any:
        """Return a loss, or several, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_tensor().to(outputs.device)
        if isinstance(outputs, Iterable):
            made = [self.scale(output) for output in outputs]
            return type(outputs)(made) if isinstance(outputs, list | tuple) else made
        raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, not {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, once between two updates."""
        if self._enabled:
            self._unscale_once(optimizer)

    @runs_as_it_is("it looks at the values of gradients and counts steps")
    def _unscale_once(self, optimizer: Optimizer) -> None:
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found_inf:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        self._found_inf[id(optimizer)] = self._unscale(optimizer)

    def _unscale(self, optimizer: Optimizer) -> bool:
        inverse, by_device = 1.0 / self._scale_tensor().item(), dict[Any, list[Tensor]]()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.dtype is float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                values = parameter.grad._values() if parameter.grad.is_sparse else parameter.grad
                by_device.setdefault(values.device, []).append(values.detach())
        checks = [call_together(_unscale, values, [inverse])[0] for values in by_device.values()]
        return not all(bool(check) for check in checks)  # waits once for each device

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Return a step of the optimizer, after unscaling its gradients if that was not done; none when one is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found_inf:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found_inf[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the steps since the last update found, or set it."""
        if self._enabled:
            self._adapt(new_scale)

    @runs_as_it_is("it looks at the values of gradients and counts steps")
    def _adapt(self, new_scale: float | Tensor | None) -> None:
        scale = self._scale_tensor()
        if new_scale is not None:
            scale.fill_(new_scale.item() if isinstance(new_scale, Tensor) else new_scale)
        elif not self._found_inf:
            raise RuntimeError("No inf checks were recorded prior to update.")
        elif any(self._found_inf.values()):
            scale.mul_(self._backoff_factor)
            self._init_growth_tracker = 0
        else:
            self._init_growth_tracker += 1
            if self._init_growth_tracker == self._growth_interval:
                grown = scale * self._growth_factor
                if grown.isfinite():
                    scale.copy_(grown)
                self._init_growth_tracker = 0
        self._found_inf, self._stepped = {}, set()

    def get_scale(self) -> float:
        """Return the scale; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale rises."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by how much the scale rises."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale falls."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by how much the scale falls."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps the scale rises."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the scale rises."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and what it depends on; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; RuntimeError for the one of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)


def _unscale(tensors: Sequence[Tensor], numbers: Sequence[float], options: tuple) -> tuple[Tensor]:
    """Multiply gradients by a number; return whether all were finite."""
    is_finite = stacked([aten.isfinite(gradient).all() for gradient in tensors]).all()
    for gradient in tensors:
        gradient.mul_(numbers[0])
    return (is_finite,)
