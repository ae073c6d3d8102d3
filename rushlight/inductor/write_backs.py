"""Write-backs to mutated inputs: native code stores new values into the inputs, in place if nothing reads the old ones later.

In: graphs with `copy_` to inputs just before the output, as functionalization leaves them. Out: which of these nodes native
code covers; and, after scheduling, which values are computed in the input's memory. All other values are copied to the inputs
at the end. If a program may fail, it copies all values at the end, except partial writes to elements that nothing reads before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rushlight.core.algebra import Const, Expr, flatten_index
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node
from rushlight.inductor.ir import Buffer, ComputedBuffer, Load, Reduction, walk
from rushlight.inductor.ordered_loops import Scatter
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, is_ordered, is_row_value, row_variables
from rushlight.inductor.sizes import row_major
from rushlight.ops.registry import aten

_COPY = aten("copy_")


@dataclass(frozen=True, slots=True)
class WriteBack:
    """The value of `buffer` replaces an input. `alone` says that the input shares its memory with no other input."""

    target: str
    buffer: str
    alone: bool


def is_write_back(node: Node) -> bool:
    """Return whether a node replaces the whole content of a dense input by a value of the same dtype and size."""
    if node.target is not _COPY or node.users or len(node.args) < 2:
        return False
    target, source = node.args[:2]
    if not isinstance(source, Node) or target.op != "placeholder" or not isinstance(source.meta.get("val"), Tensor):
        return False
    old, new = target.meta["val"], source.meta["val"]
    same = old.dtype is new.dtype and not old.dtype.is_complex and tuple(old.shape) == tuple(new.shape)
    return same and _is_dense(old)


def _is_dense(value: Tensor) -> bool:
    numbers = (*value.shape, *value.stride())
    if not all(isinstance(number, int) for number in numbers):
        return value.is_contiguous()
    return 0 not in value.shape and is_non_overlapping_and_dense(tuple(value.shape), value.stride())


def written_in_place(groups: list[Group], writes: Iterable[WriteBack], outputs: set[str]) -> dict[str, str]:
    """Return the buffers that may be computed in the memory of the inputs that they replace."""

    places, readers = {group: place for place, group in enumerate(groups)}, _readers_of(groups)

    def is_safe(group: Group, write: WriteBack) -> bool:
        others = [other for other in readers.get(write.target, []) if other is not group]
        first = all(places[other] < places[group] and other not in group.together for other in others)
        return first and _reads_before_writing(group, write)

    return _place_in_targets(groups, writes, outputs, is_safe)


def changed_in_place(groups: list[Group], writes: Iterable[WriteBack], outputs: set[str]) -> dict[str, str]:
    """Scatter -> input, for scatters that change only some elements of an input, in place.

    Nothing else reads the old elements. So if the program fails and the interpreter runs it again, elements already stored are
    just stored again.
    """

    readers = _readers_of(groups)

    def is_safe(group: Group, write: WriteBack) -> bool:
        return readers.get(write.target) == [group] and _only_stores_into(group.members[0], write.target)

    return _place_in_targets(groups, writes, outputs, is_safe)


def _readers_of(groups: list[Group]) -> dict[str, list[Group]]:
    """Return for each buffer the groups that read it."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        for name in group.reads():
            found.setdefault(name, []).append(group)
    return found


def _place_in_targets(
    groups: list[Group], writes: Iterable[WriteBack], outputs: set[str], is_safe: Callable[[Group, WriteBack], bool]
) -> dict[str, str]:
    """Return buffer -> the input that it replaces, for buffers that may be computed in that input's memory."""
    homes = {member.name: group for group in groups for member in group.members}
    found: dict[str, str] = {}
    for write in writes:
        group = homes.get(write.buffer)
        if group is None or group.constant or write.buffer in outputs or write.buffer in found or not write.alone:
            continue
        if is_safe(group, write):
            found[write.buffer] = write.target
    return found


def _only_stores_into(member: Buffer, target: str) -> bool:
    """Return whether a scatter stores into the content of `target` and reads nothing else of it."""
    loop = member.data if isinstance(member, ComputedBuffer) else None
    if not isinstance(loop, Scatter) or loop.mode != "store":
        return False
    base, rest = loop.base, (loop.body, *(position.value for position in loop.positions))
    reads = (node for value in rest for node in walk(value) if isinstance(node, Load))
    if not isinstance(base.body, Load) or base.body.buffer != target or any(node.buffer == target for node in reads):
        return False
    first = {variable: Const(0) for variable, extent in zip(base.variables, base.ranges, strict=True) if extent == 1}
    indices = (base.body.index, flatten_index(base.variables, row_major(base.ranges)))
    return len({index.substitute(first) for index in indices}) == 1


def _reads_before_writing(group: Group, write: WriteBack) -> bool:
    """Return whether a group reads each old element only where it writes the new one, and before writing it."""
    readers = [member for member in group.members if write.target in member.reads()]
    if not readers:
        return True
    names = [member.name for member in group.members]
    own = group.members[names.index(write.buffer)]
    if not all(isinstance(member, ComputedBuffer) and not is_ordered(member) for member in (own, *readers)):
        return False
    domain = group.domain or (1, group.numel)
    if readers != [own] and _has_passes(group, domain):
        return False
    in_order = all(names.index(member.name) <= names.index(own.name) for member in readers)
    position = row_variables(domain)[0] if is_row_value(own, domain) else element_index(domain)
    return in_order and all(_reads_only_at(member, write.target, position, domain) for member in readers)


def _has_passes(group: Group, domain: tuple) -> bool:
    return any(is_row_value(member, domain) for member in group.members)


def _reads_only_at(member: Buffer, target: str, position: Expr, domain: tuple) -> bool:
    if isinstance(member.data, Reduction):
        return False
    if domain == (1, 1):
        return True
    loads = (node for node in walk(body_in_domain(member, domain)) if isinstance(node, Load) and node.buffer == target)
    return all(node.index == position for node in loads)
