"""`torch._higher_order_ops.scan`."""

from rushlight.func.scans import scan

__all__ = ["scan"]
