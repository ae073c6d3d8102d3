"""`torch.distributed.algorithms.ddp_comm_hooks.default_hooks`: averages of gradients, as they are or sent as 16-bit floats.

    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import bfloat16, dtype, float16
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import default_group
from rushlight.distributed.reducer.buckets import GradBucket
from rushlight.futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average the bucket over the ranks of the group, None for all: what happens without a hook."""
    return _average(process_group or default_group(), bucket.buffer())


def _average(group: ProcessGroup, flat: Tensor) -> Future[Tensor]:
    with no_grad():
        flat.div_(group.size())
    return all_reduce(flat, group=group, async_op=True).get_future().then(lambda future: future.value()[0])


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average the bucket as float16: half of the bytes of float32. The group is `process_group`, or what it has by
    that name; None stands for all ranks."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average the bucket as bfloat16: half of the bytes of float32. The group is `process_group`, or what it has by
    that name; None stands for all ranks."""
    return _compressed(process_group, bucket, bfloat16)


def _compressed(state: Any, bucket: GradBucket, kind: dtype) -> Future[Tensor]:
    group = getattr(state, "process_group", state) or default_group()
    with no_grad():
        future = _average(group, bucket.buffer().to(kind))
    return future.then(lambda future: _into(bucket.buffer(), future.value()))


def _into(buffer: Tensor, values: Any) -> Tensor:
    with no_grad():
        return buffer.copy_(values[0] if isinstance(values, list) else values)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives `hook` the bucket as float16, and makes its result the gradients' dtype again."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives `hook` the bucket as bfloat16, and makes its result the gradients' dtype again."""
    return _wrapper(hook, bfloat16)


def _wrapper(hook: Hook, kind: dtype) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Tensor]:
        whole = bucket.buffer()
        with no_grad():
            bucket.set_buffer(whole.to(kind))
        return hook(state, bucket).then(lambda future: _into(whole, future.value()))

    return wrapped
