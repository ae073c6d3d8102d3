"""`torch.mtia`, Meta's accelerators, on a library without: programs ask whether one is there, and go on without."""

from __future__ import annotations

from rushlight.core.absent_device import device_names

globals().update(device_names("mtia", "Torch not compiled with MTIA enabled"))
