"""`torch._higher_order_ops`: operators that take functions."""

from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._higher_order_ops.cond import cond
from rushlight._higher_order_ops.map import map
from rushlight._higher_order_ops.scan import scan
from rushlight._higher_order_ops.while_loop import while_loop
from rushlight.nn.attention.flex_attention import flex_attention

__all__ = ["associative_scan", "cond", "flex_attention", "map", "scan", "while_loop"]
