"""`torch.xpu`, Intel's GPUs, on a library without GPUs: programs ask whether one is there, and go on without."""

from __future__ import annotations

from rushlight.core.absent_device import device_names

globals().update(device_names("xpu", "Torch not compiled with XPU enabled"))
