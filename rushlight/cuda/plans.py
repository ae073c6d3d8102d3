"""Launch plans: work on a device that C code repeats for tensors of the same sizes, strides, dtypes and alignment
(`csrc/gpu_plan.c`).

In: slots and steps. Out: a `LaunchPlan`. Slots are numbered: first the inputs, then the memory that the plan allocates. A value
is a pair of a slot and an offset in bytes there, or of `NUMBER` and a number.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import LaunchPlan
from rushlight.core.dtype import dtype
from rushlight.core.strides import storage_extent
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.cuda import runtime
from rushlight.cuda.driver import Kernel

NUMBER = -1  # stands for a slot in a pair with a number
Value = tuple[int, int]
Step = tuple[Kernel | None, tuple[int, int, int] | None, tuple[Value, ...], dict[str, int] | None]


def launch(kernel: Kernel, grid: Sequence[int], values: Sequence[Value], constants: dict[str, int]) -> Step:
    """Return the step that launches a kernel."""
    return kernel, (*grid, 1, 1)[:3], tuple(values), constants


def copy(target: Value, source: Value, nbytes: int) -> Step:
    """Return the step that copies bytes on the device."""
    return None, None, (target, source, (NUMBER, nbytes)), None


def make_plan(
    index: int, inputs: Sequence[Tensor], memory: Sequence[int], steps: Sequence[Step], outputs: Sequence[tuple],
    reason: str | None = None,
) -> LaunchPlan:  # fmt: skip
    """Return a plan for such inputs. `memory` has the bytes to allocate; `reason` says why a kernel may set the status word.
    Results are ("memory", slot, sizes, strides, offset, dtype), ("input", slot), ("view", slot, sizes, strides, offset) or
    ("object", value)."""
    found = runtime.device_at(index)
    return LaunchPlan(
        found, found.place, found.driver, found.allocator, index, found.may_have_failed, reason,
        tuple([reach(tensor._impl) for tensor in inputs]), tuple(memory), tuple(steps), tuple(outputs),
    )  # fmt: skip


def reach(impl: TensorImpl) -> int:
    """Return the bytes from a tensor's first element to its last one."""
    return storage_extent(impl.sizes, impl.strides, 0) * impl.dtype.itemsize if impl.numel else 0


def with_made(plan: LaunchPlan, sizes: Sequence[int], strides: Sequence[int], kind: dtype) -> LaunchPlan:
    """Return a plan that makes its first input, whose values the given one writes, and that returns it."""
    reaches, memory, steps, _ = plan.parts
    count = len(reaches)

    def moved(value: Value) -> Value:
        slot, offset = value
        return (count - 1 if slot == 0 else slot - 1 if 0 < slot < count else slot), offset

    steps = [(kernel, grid, tuple(map(moved, values)), constants) for kernel, grid, values, constants in steps]
    found = runtime.device_at(plan.index)
    return LaunchPlan(
        found, found.place, found.driver, found.allocator, plan.index, found.may_have_failed, plan.reason, reaches[1:],
        (reaches[0], *memory), tuple(steps), (("memory", count - 1, tuple(sizes), tuple(strides), 0, kind),),
    )  # fmt: skip
