"""DataParallel: torch's module for several GPUs. Without GPUs it only wraps its module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.nn.modules.module import Module


class DataParallel(Module):
    """Calls `module`. Its state dict has the prefix "module.", as in torch; devices are ignored.

    Args:
        module (Module): the module.
        device_ids (Sequence[Any] | None): unused: there is one device.
        output_device (Any): unused: there is one device.
        dim (int): the dimension along which to work; negative ones count from the last.

    Example:
        >>> torch.nn.DataParallel(torch.nn.ReLU())(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
