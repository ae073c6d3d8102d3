"""`torch._higher_order_ops.map`."""

from rushlight.func.scans import map

__all__ = ["map"]
