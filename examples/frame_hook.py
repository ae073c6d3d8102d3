"""The frame hook on its own: a callback that has other bytecode run in a function's place.

`python -m examples.frame_hook` counts how often the hook asks about each function, and has `double` multiply by 10 as long as
its argument is positive.
"""

from __future__ import annotations

import collections
import types

from rushlight._dynamo.eval_frame import CacheEntry, GuardedCode, set_eval_frame

calls: collections.Counter[str] = collections.Counter()


def double(x: float) -> float:
    return x * 2


def describe(x: float) -> str:
    return f"double({x}) = {double(x)}"


def with_constant(code: types.CodeType, old: object, new: object) -> types.CodeType:
    """The same code with one constant replaced."""
    return code.replace(co_consts=tuple(new if constant == old else constant for constant in code.co_consts))


def replace_twos(frame, cache_entry: CacheEntry | None, frame_state: dict) -> GuardedCode | None:
    """Called for a function that is about to run and has no cached code whose guard holds. None: it runs as it is."""
    calls[frame.f_code.co_name] += 1
    if frame.f_code.co_name != "double":
        return None
    if not frame.f_locals["x"] > 0:
        return None

    def is_positive(x: float, module_globals: dict, closure: tuple | None) -> bool:
        return x > 0

    return GuardedCode(with_constant(frame.f_code, 2, 10), frame.f_globals, is_positive)


def main() -> None:
    before = set_eval_frame(replace_twos)
    try:
        lines = [describe(x) for x in (1, 2, -3, 4)]
    finally:
        set_eval_frame(before)
    print("\n".join(lines))
    print(f"outside of the region: {describe(4)}")
    print(f"asked about describe {calls['describe']} times, about double {calls['double']} times")


if __name__ == "__main__":
    main()
