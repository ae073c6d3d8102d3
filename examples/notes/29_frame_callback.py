"""Note 5, "The Final Secret: ConvertFrameAssert": a callback of the frame hook that is told of each call, as the note has it."""

import torch

# Let's try it!
from typing import Optional
from torch._dynamo.types import (
    CacheEntry,
    DynamoFrameType,
    FrameState,
    GuardedCode,
)
from torch._guards import CompileId

hit = 0

def callback(
    frame: DynamoFrameType,
    cache: Optional[CacheEntry],
    frame_state: FrameState
):
    global hit, frame_id
    hit += 1
    function_name = frame.f_code.co_name
    print(f"calling {function_name}")
    return GuardedCode(code=frame.f_code, check_fn=lambda local: hit, compile_id=CompileId(frame_id=1, frame_compile_id=1))

from torch._C._dynamo.eval_frame import set_eval_frame

def foo(x, y):
    return x+y

prior = set_eval_frame(callback)
print(foo(1, 2))
print(foo(3, 4))  # its cached entry holds: the callback is not asked again
set_eval_frame(prior)
print(foo(5, 6), "asked", hit, "time")
