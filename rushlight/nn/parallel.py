"""`torch.nn.parallel`: DataParallel, which without several GPUs only wraps."""

from __future__ import annotations

from rushlight.nn.modules.data_parallel import DataParallel

__all__ = ["DataParallel"]
