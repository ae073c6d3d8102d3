"""`torch._C._dynamo.eval_frame`: the frame hook itself. `rushlight/_dynamo/eval_frame.py` says how it is used."""

from rushlight._C import CacheEntry, reset_code, set_eval_frame, skip_code
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list

_CacheEntry = CacheEntry

__all__ = ["_CacheEntry", "_debug_get_cache_entry_list", "reset_code", "set_eval_frame", "skip_code"]
