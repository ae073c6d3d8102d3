"""dynamo: Python functions as graphs, captured from their bytecode while they run."""

from rushlight.dynamo.capture import GuardedCode, Unsupported
from rushlight.dynamo.frames import FrameCallback, debug_cache_entries, disable, optimize, reset

__all__ = ["FrameCallback", "GuardedCode", "Unsupported", "debug_cache_entries", "disable", "optimize", "reset"]
