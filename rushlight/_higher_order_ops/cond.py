"""`torch._higher_order_ops.cond`."""

from rushlight.func.control_flow import cond

__all__ = ["cond"]
