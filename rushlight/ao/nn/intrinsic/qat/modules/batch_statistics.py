"""Batch normalisation in layers that train with fake quantization: its statistics may be frozen while training goes on."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module


class BatchStatistics(Module):
    """Part of a layer with batch normalisation `bn` and a flag `freeze_bn`."""

    bn: Module
    freeze_bn: bool

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        self.bn.reset_running_stats()

    def update_bn_stats(self) -> Any:
        """Normalise by each batch, and update running statistics."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Normalise by the running statistics from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """Training mode; frozen statistics stay frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self
