"""The frame hook (PEP 523), which `compile` stands on, and what it knows of a function. It can be used alone.

`set_eval_frame(callback)` has every Python function that this thread calls go through
`callback(frame, cache_entry, frame_state)` before it begins, unless a cached entry of the same callback fits. It returns

- None: the function runs as it is, and the callback is asked again at the next call;
- False: it runs as it is from now on, without asking;
- a `GuardedCode(code, globals, check_fn)`: a function of this code and these globals runs in its place, now and at every
  later call for which `check_fn` is true. `code` takes what the function's own code takes. `torch._dynamo.types` has a
  `GuardedCode(code, check_fn, compile_id)` as in PyTorch, whose guard is given the arguments by name.

`frame` has `f_code`, `f_locals` (the arguments by name), `f_globals`, `f_builtins`, `f_func` and `closure`; `cache_entry` is
the code's latest entry or None, and its `next` the one before; `frame_state` is a dict that belongs to the code, for the
callback's own use. `check_fn` takes the parameters by position (`*args` as a tuple, `**kwargs` as a dict), then the function's
globals and its closure (None where it has none); where it raises an Exception, it does not hold. While the callback or a guard
runs, the hook is off.

`set_eval_frame(None)` ends the region; it returns the callback that was set. Generators, coroutines, class and module bodies,
and other threads are left alone. What a callback raises is raised by the call. `examples/frame_hook.py` is a complete program.
"""

from rushlight._C import CacheEntry, cache_entries, reset_code, set_eval_frame, skip_code
from rushlight.compiler.compile import OptimizedModule, innermost
from rushlight.dynamo.frames import debug_cache_entries
from rushlight.dynamo.guarded_code import GuardedCode

__all__ = [
    "CacheEntry", "GuardedCode", "OptimizedModule", "_debug_get_cache_entry_list", "cache_entries", "innermost_fn",
    "is_dynamo_supported", "reset_code", "set_eval_frame", "skip_code",
]  # fmt: skip


def is_dynamo_supported() -> bool:
    """Return True: every Python that this library runs on has the frame hook."""
    return True


def innermost_fn(fn):
    """Return the function or module that `torch.compile` was given, for what it returned; anything else as it is."""
    return innermost(fn)


def _debug_get_cache_entry_list(code):
    """Return the cache entries of a function, compiled module or code object, the latest first.

    Each has `check_fn` (the guard), `code` (what runs instead; `dis` shows it) and `guarded_code`, whose `source` is that code
    as Python text.
    """
    return debug_cache_entries(code._compiled if isinstance(code, OptimizedModule) else code)
