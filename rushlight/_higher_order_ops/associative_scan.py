"""`torch._higher_order_ops.associative_scan`."""

from rushlight.func.scans import associative_scan

__all__ = ["associative_scan"]
