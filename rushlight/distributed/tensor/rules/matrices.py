"""Rules of matrix products: cut along rows or columns, or along the dimension that is summed over."""

from __future__ import annotations

from rushlight.distributed.tensor.placement_types import Placement, Shard
from rushlight.distributed.tensor.rules.strategies import Call, P, R, Strategy, everywhere, rule


@rule("mm")
def mm(call: Call) -> list[Strategy]:
    """(m, k) times (k, n)."""
    rows, columns = Shard(0), Shard(1)
    return [
        everywhere(call), Strategy((rows, R), (rows,)), Strategy((R, columns), (columns,)), Strategy((columns, rows), (P,)),
        Strategy((P, R), (P,)), Strategy((R, P), (P,)),
    ]  # fmt: skip


@rule("addmm", "addmm_")
def addmm(call: Call) -> list[Strategy]:
    """What is added, of shape (m, n) or (n) or less, and mm."""
    return [Strategy((_added(call, each.outputs[0]), *each.inputs), each.outputs) for each in mm(call)[1:]] + [everywhere(call)]


def _added(call: Call, output: Placement) -> Placement:
    shape, result = call.specs[0].shape, call.outputs[0]
    if not isinstance(output, Shard):
        return output
    dim = output.dim - (len(result) - len(shape))
    return R if dim < 0 or shape[dim] != result[output.dim] else Shard(dim)


@rule("bmm")
def bmm(call: Call) -> list[Strategy]:
    """(b, m, k) times (b, k, n)."""
    batch, rows, columns = Shard(0), Shard(1), Shard(2)
    return [
        everywhere(call), Strategy((batch, batch), (batch,)), Strategy((rows, R), (rows,)),
        Strategy((R, columns), (columns,)), Strategy((columns, rows), (P,)), Strategy((P, R), (P,)), Strategy((R, P), (P,)),
    ]  # fmt: skip


@rule("mv", "dot")
def vectors(call: Call) -> list[Strategy]:
    """(m, k) times (k), or (k) times (k)."""
    last = Shard(len(call.specs[0].shape) - 1)
    found = [everywhere(call), Strategy((last, Shard(0)), (P,)), Strategy((P, R), (P,)), Strategy((R, P), (P,))]
    return found if last.dim == 0 else [*found, Strategy((Shard(0), R), (Shard(0),))]
