"""`torch._inductor.codegen.memory_planning`: how buffers lie in an arena."""

from rushlight.core.storage import aligned as _align

__all__ = ["_align"]
