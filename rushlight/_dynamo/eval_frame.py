"""What the frame hook knows of a function."""

from rushlight.compiler.compile import OptimizedModule
from rushlight.dynamo.frames import debug_cache_entries

__all__ = ["OptimizedModule", "_debug_get_cache_entry_list"]


def _debug_get_cache_entry_list(code):
    """The cache entries of a function, compiled module or code object, the latest first.

    Each has `check_fn` (the guard), `code` (what runs instead; `dis` shows it) and `guarded_code`, whose `source` is that code
    as Python text.
    """
    return debug_cache_entries(code._compiled if isinstance(code, OptimizedModule) else code)
