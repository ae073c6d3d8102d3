"""Work of a kernel: the minimal bytes and floating-point operations, independent of its code.

In: a group of buffers, and the values of the size symbols. Out: counts. Stage: inductor, measuring.
"""

from __future__ import annotations

from collections.abc import Mapping

from rushlight.core.algebra import Var
from rushlight.inductor.codegen.cpp.kernels import Kernel
from rushlight.inductor.ir import Buffer, Call, ComputedBuffer, Load, Reduction, walk
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import evaluate


def bytes_of(group: Group, buffers: Mapping[str, Buffer], sizes: Mapping[Var, int]) -> int:
    """Return the bytes that a kernel reads and writes, each once. A buffer that is read in part counts for at most the number
    of its loads."""
    points = evaluate(group.numel, sizes)
    total = 0
    for name in group.reads():
        layout = buffers[name].layout
        count, loads = evaluate(layout.numel, sizes), _loads(group, name)
        total += min(count, loads * points if loads else count) * layout.dtype.itemsize
    for name in group.stored & group.names:
        total += evaluate(buffers[name].layout.numel, sizes) * buffers[name].layout.dtype.itemsize
    return total


def _loads(group: Group, name: str) -> int:
    """Return the number of loads of a buffer per element in a group's loops; 0 if a template reads it."""
    if group.template is not None and name in group.template.reads():
        return 0
    bodies = [member.data.body for member in group.members if isinstance(member, ComputedBuffer)]
    return sum(isinstance(node, Load) and node.buffer == name for body in bodies for node in walk(body))


def flops_of(group: Group, kernel: Kernel, sizes: Mapping[Var, int]) -> int:
    """Return the operations of a kernel: those of its product, and one for each scalar function."""
    total = evaluate(kernel.work, sizes) if group.template is not None else 0
    for member in group.members:
        if isinstance(member, ComputedBuffer):
            loop = member.data
            each = sum(isinstance(node, Call) and node.name != "cast" for node in walk(loop.body))
            count = evaluate(loop.numel, sizes)
            if isinstance(loop, Reduction):
                each, count = each + 1, count * evaluate(loop.reduction_numel, sizes)
            total += each * count
    return total
