"""dynamo captures Python functions as graphs by following their bytecode while they run."""

from rushlight.dynamo.errors import BackendCompilerFailed
from rushlight.dynamo.frames import FrameCallback, debug_cache_entries, reset
from rushlight.dynamo.guarded_code import GuardedCode, Unsupported
from rushlight.dynamo.regions import disable, optimize

__all__ = [
    "BackendCompilerFailed", "FrameCallback", "GuardedCode", "Unsupported", "debug_cache_entries", "disable", "optimize",
    "reset",
]  # fmt: skip
