"""`torch._functorch.partitioners`: ways to divide a joint graph."""

from rushlight.compiler.aot_function import default_partition, min_cut_rematerialization_partition

__all__ = ["default_partition", "min_cut_rematerialization_partition"]
