"""The scheduler: fuses buffers into groups, each of which becomes one kernel.

In: buffers in order. Out: a list of `Group`s in an order that respects all reads. A group is a template with pointwise
epilogues, or loops over common rows: its *domain* is (rows, columns), and every member has a value per element or per row.
Members read one another only at the same element or row, so values pass in registers or in a row buffer. Independent recurrent
layers form a group of several templates without epilogues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rushlight.core.algebra import Expr, Var, unflatten_index
from rushlight.inductor.ir import (
    Buffer,
    ComputedBuffer,
    ConstantBuffer,
    Load,
    Masked,
    Pointwise,
    Reduction,
    Search,
    TemplateBuffer,
    Value,
    may_report,
    substitute,
    walk,
)
from rushlight.inductor.ordered_loops import Scan, Scatter, Sort, SortedPlaces
from rushlight.inductor.origins import origins_of, union
from rushlight.inductor.sizes import Size, as_size, is_symbol, product, stride_along

EPILOGUE_TEMPLATES = (
    "gemm", "word_gemm", "bgemm", "convolution", "direct_convolution", "winograd", "convolution_input", "convolution_weight",
    "depthwise", "depthwise_input", "depthwise_weight", "grouped", "grouped_input", "volumes", "volumes_input",
    "block_gemm", "block_rows", "byte_layer", "word_convolution",
)  # fmt: skip
MAX_GROUP_MEMBERS = 64
MAX_FOLDED_ELEMENTS = 1 << 26  # larger loops over parameters are not folded, to save memory


@dataclass(eq=False)
class Group:
    """Members that one kernel computes. `domain` is None while the group only has elementwise loops over `numel` elements.
    `apart` says why the first member was not fused into an earlier group. `together` are the groups that one launch
    computes, this one among them, if there are several.

    Sizes are compared as expressions: sizes that are equal only for the example are not fused.
    """

    members: list[Buffer]
    order: int
    numel: Size
    domain: tuple[Size, Size] | None
    stored: set[str] = field(default_factory=set)
    constant: bool = False
    apart: str = ""
    together: list[Group] = field(default_factory=list)

    @property
    def template(self) -> TemplateBuffer | None:
        """The group's template, its first member, if there is one."""
        first = self.members[0]
        return first if isinstance(first, TemplateBuffer) else None

    @property
    def names(self) -> set[str]:
        """The members' names."""
        return {member.name for member in self.members}

    def reads(self) -> set[str]:
        """Return the buffers outside the group that it reads."""
        return set().union(*(member.reads() for member in self.members)) - self.names

    def origins(self) -> tuple[str, ...]:
        """Return the graph's nodes that it computes."""
        return union(*map(origins_of, self.members))

    def lines(self) -> tuple[str, ...]:
        """Return the user's lines that it comes from."""
        return union(*(member.lines for member in self.members))

    def __str__(self) -> str:
        kind = f"template {self.template.kind}" if self.template else "loops"
        rows, columns = self.domain or (1, self.numel)
        lines = [f"group {self.order}: {kind} over {rows} x {columns}", f"  begins here: {self.apart}"]
        if self.together:
            others = ", ".join(str(group.order) for group in self.together if group is not self)
            lines.append(f"  launched together with group {others}")
        for member in self.members:
            kept = "" if member.name in self.stored else " (not stored)"
            what = type(member.data).__name__ if isinstance(member, ComputedBuffer) else "Template"
            origins, reads = ", ".join(origins_of(member)), ", ".join(sorted(member.reads())) or "nothing"
            lines.append(f"  {member.name}: {what} {origins}{kept}, reads {reads}")
            lines += [f"    # {line}" for line in member.lines]
        return "\n".join(lines)


def row_variables(domain: tuple[Size, Size]) -> tuple[Var, Var]:
    """Return the loop variables of a kernel: x counts rows, r counts columns."""
    return Var("x", domain[0]), Var("r", domain[1])


def body_in_domain(member: ComputedBuffer, domain: tuple[Size, Size]) -> Value:
    """Return a member's body in terms of the domain's row x and column r."""
    loop, (x, r) = member.data, row_variables(domain)
    if isinstance(loop, Reduction):
        replacements = dict(zip(loop.variables, unflatten_index(x, loop.ranges), strict=True))
        inner = unflatten_index(r, loop.reduction_ranges)
        replacements |= dict(zip(loop.reduction_variables, inner, strict=True))
        return substitute(loop.body, replacements)
    linear = x if loop.numel != product(domain) else x * domain[1] + r
    return substitute(loop.body, dict(zip(loop.variables, unflatten_index(linear, loop.ranges), strict=True)))


def is_row_value(member: Buffer, domain: tuple[Size, Size]) -> bool:
    """Return whether a member has one value per row rather than one per element."""
    if not isinstance(member, ComputedBuffer):
        return False
    return isinstance(member.data, Reduction) or member.data.numel != product(domain)


def element_index(domain: tuple[Size, Size]) -> Expr:
    """Return the position of the element at row x and column r."""
    x, r = row_variables(domain)
    return x * domain[1] + r


def schedule(buffers: list[Buffer], outputs: set[str], fuses_by_numbers: bool = True) -> list[Group]:
    """Group the computed buffers; drop those that nothing needs and those without elements.

    With `fuses_by_numbers`, outputs of equal size also share a loop if all that they read in common is a number. On a GPU they
    had better not: equal loops share a launch there, and loops with different sets of members are not equal.
    """
    computed = _select_needed(buffers, outputs)
    ignored = set() if fuses_by_numbers else {buffer.name for buffer in buffers if buffer.layout.numel == 1}
    constant = constants_among(buffers) - outputs
    groups: list[Group] = []
    homes: dict[bool, dict[str, Group]] = {False: {}, True: {}}  # constant loops only fuse with each other
    for buffer in computed:
        home = homes[buffer.name in constant]
        group = joined = _fuse_into_producer(buffer, home, groups)
        if isinstance(joined, str):
            beside = _fuse_horizontally(buffer, home, ignored) if buffer.name in outputs else None
            group = beside or _group_independent_recurrences(buffer, groups)
        if group is None:
            group = _new_group(buffer, len(groups))
            group.constant, group.apart = buffer.name in constant, joined
            groups.append(group)
        home[buffer.name] = group
    _mark_stored(groups, outputs)
    return groups


def constants_among(buffers: list[Buffer]) -> set[str]:
    """Return the names of loops that only depend on parameters, so that they can be folded: computed when parameters are
    packed."""
    known = {buffer.name for buffer in buffers if isinstance(buffer, ConstantBuffer)}
    found: set[str] = set()
    for buffer in buffers:
        if is_foldable(buffer, lambda name: name in known or name in found):
            found.add(buffer.name)
    return found


def is_foldable(buffer: Buffer, is_constant: Callable[[str], bool]) -> bool:
    """Return whether a buffer is an elementwise loop over constants alone, without open sizes, and small enough to keep."""
    if not isinstance(buffer, ComputedBuffer) or not isinstance(buffer.data, Pointwise) or not buffer.reads():
        return False
    numel = buffer.layout.numel
    if not isinstance(numel, int) or not 0 < numel <= MAX_FOLDED_ELEMENTS or not all(map(is_constant, buffer.reads())):
        return False
    return not any(may_report(value) or _names_open_sizes(value) for value in walk(buffer.data.body))


def _names_open_sizes(value: Value) -> bool:
    """Return whether a value itself, apart from its operands, contains size symbols."""
    named = (getattr(value, name, None) for name in ("index", "size", "step", "count"))
    return any(is_symbol(variable) for size in named if isinstance(size, Expr) for variable in size.free_variables())


def _select_needed(buffers: list[Buffer], outputs: set[str]) -> list[Buffer]:
    wanted, kept = set(outputs), []
    for buffer in reversed(buffers):
        if isinstance(buffer, ComputedBuffer | TemplateBuffer) and buffer.name in wanted and buffer.layout.numel != 0:
            wanted |= buffer.reads()
            kept.append(buffer)
    return kept[::-1]


def _new_group(buffer: Buffer, order: int) -> Group:
    if isinstance(buffer, TemplateBuffer):
        return Group([buffer], order, as_size(buffer.rows * buffer.columns), (buffer.rows, buffer.columns))
    loop = buffer.data
    if isinstance(loop, Reduction):
        domain = (loop.numel, loop.reduction_numel)
        return Group([buffer], order, product(domain), domain)
    return Group([buffer], order, loop.numel, None)


def _fuse_into_producer(buffer: Buffer, home: dict[str, Group], groups: list[Group]) -> Group | str:
    """Fuse `buffer` into the last group that it reads from whose accesses allow it. If there is none, return the reason against
    the last one that it reads from."""
    if is_further_result(buffer):
        (name,) = buffer.reads()
        home[name].members.append(buffer)
        return home[name]
    if not isinstance(buffer, ComputedBuffer):
        return f"a {buffer.kind} is never part of another kernel"
    if isinstance(buffer.data, SortedPlaces):
        (name,) = buffer.reads()
        home[name].members.append(buffer)
        return home[name]
    if is_ordered(buffer):
        return f"the points of a {type(buffer.data).__name__.lower()} act one after the other"
    producers = [home[name] for name in buffer.reads() if name in home]
    if not producers:
        return "it reads nothing that another kernel calculates"
    producers = list({id(group): group for group in producers}.values())
    group = max(producers, key=lambda candidate: candidate.order)
    hindrance = _append_to_producer(buffer, group)
    if not hindrance:
        return group
    earlier = [each for each in producers if each is not group and each.template is None and _candidate_domains(buffer, each)]
    return _fuse_into_earlier(buffer, earlier, groups) or hindrance


def _append_to_producer(buffer: ComputedBuffer, group: Group) -> str:
    """Add `buffer` to a group that it reads from; return the reason if that is impossible."""
    other = f"group {group.order}, the last that it reads from,"
    if len(group.members) >= MAX_GROUP_MEMBERS:
        return f"{other} has {MAX_GROUP_MEMBERS} members, the most"
    if is_ordered(group.members[0]):
        return f"the points of {other} act one after the other"
    if group.template is not None:
        hindrance = _reason_against_epilogue(buffer, group)
        if not hindrance and _append(buffer, group, group.domain):
            return ""
        return f"{other} is a {group.template.kind}, and {hindrance or 'it reads that at other places than it calculates'}"
    domains = _candidate_domains(buffer, group)
    if any(_append(buffer, group, domain) for domain in domains):
        return ""
    return f"it reads {other} at other places than it calculates" if domains else f"{other} has loops of other sizes"


def _fuse_into_earlier(buffer: ComputedBuffer, candidates: list[Group], groups: list[Group]) -> Group | None:
    """Fuse `buffer` into the last of some groups that it reads from whose accesses allow it. Other groups that it reads from
    move before that one; they must not depend on it."""
    for group in sorted(candidates, key=lambda candidate: candidate.order, reverse=True):
        position = groups.index(group)
        moved = _split_by_need(groups[position + 1 :], buffer.reads())
        if group.names & moved.before or _append_to_producer(buffer, group):
            continue
        _reorder(groups, position, [*moved.needed, group, *moved.others])
        return group
    return None


class _Split(NamedTuple):
    """Groups that a buffer needs, and others. `before` are the buffers that the former read, and `wanted` also those that the
    buffer itself reads."""

    needed: list[Group]
    others: list[Group]
    wanted: set[str]
    before: set[str]


def _split_by_need(later: list[Group], reads: set[str]) -> _Split:
    """Split groups into those that something needs that reads these buffers, and others."""
    wanted, before = set(reads), set[str]()
    needed, others = [], []
    for group in reversed(later):
        if group.names.isdisjoint(wanted):
            others.append(group)
            continue
        needed.append(group)
        before |= group.reads()
        wanted |= before
    return _Split(needed[::-1], others[::-1], wanted, before)


def _reorder(groups: list[Group], position: int, rest: list[Group]) -> None:
    """Replace the groups from a position on by the same ones in another order."""
    groups[position:] = rest
    for order, group in enumerate(groups):
        group.order = order


def _fuse_horizontally(buffer: Buffer, home: dict[str, Group], ignored: set[str]) -> Group | None:
    """Fuse a loop over inputs into the latest elementwise group of equal size that reads the same buffers: updates of a
    parameter and its state. Only outputs are fused so, because other values are better computed where they are used. Buffers
    to be `ignored` are no reason to share a loop."""
    if not isinstance(buffer, ComputedBuffer) or not isinstance(buffer.data, Pointwise) or is_ordered(buffer):
        return None
    reads, fitting = buffer.reads(), []
    if reads & home.keys():
        return None
    for group in {id(group): group for group in home.values()}.values():
        if group.domain is None and group.numel == buffer.data.numel and (reads & group.reads()) - ignored:
            fitting.append(group)
    group = max(fitting, key=lambda candidate: candidate.order, default=None)
    if group is None or len(group.members) >= MAX_GROUP_MEMBERS or is_ordered(group.members[0]):
        return None
    return group if _append(buffer, group, (1, group.numel)) else None


def _group_independent_recurrences(buffer: Buffer, groups: list[Group]) -> Group | None:
    """Group a recurrent layer with an independent one of the same kind and sizes, such as the other direction.

    Each step of a layer waits for the one before, so threads take one layer each. Groups that the buffer needs move before
    both.
    """
    if not _is_recurrent(buffer):
        return None
    same = ("layer", "steps", "batch", "hidden")
    for position, group in reversed([*enumerate(groups)]):
        first = group.template
        if first is None or first.kind != buffer.kind or len(group.members) > 1:
            continue
        if any(first.parameters[name] != buffer.parameters[name] for name in same):
            continue
        moved = _split_by_need(groups[position + 1 :], buffer.reads())
        if group.names & moved.wanted:
            continue
        _reorder(groups, position, [*moved.needed, group, *moved.others])
        group.members.append(buffer)
        return group
    return None


def _is_recurrent(buffer: Buffer) -> bool:
    return isinstance(buffer, TemplateBuffer) and buffer.kind in ("recurrent", "recurrent_backward")


def is_ordered(buffer: Buffer) -> bool:
    """Return whether a buffer is a kernel of its own, because its loop's points act one after the other."""
    return isinstance(buffer, ComputedBuffer) and isinstance(buffer.data, Scan | Scatter | Sort | SortedPlaces)


def is_further_result(buffer: Buffer) -> bool:
    """Return whether a buffer is filled by the library call that fills the buffer it reads."""
    return isinstance(buffer, TemplateBuffer) and buffer.kind == "further_result"


def _candidate_domains(buffer: ComputedBuffer, group: Group) -> list[tuple[Size, Size]]:
    loop = buffer.data
    if isinstance(loop, Reduction):
        domain = (loop.numel, loop.reduction_numel)
        fits = domain == group.domain or (group.domain is None and group.numel == product(domain))
        return [domain] if fits and loop.reduction_numel not in (0, 1) else []
    if group.domain is not None:
        return [group.domain] if loop.numel in (group.numel, group.domain[0]) else []
    return [(1, group.numel)] if loop.numel == group.numel else []


def _append(buffer: ComputedBuffer, group: Group, domain: tuple[Size, Size]) -> bool:
    """Add `buffer` to the group under `domain` if it reads the other members only at its own element or row. If the domain
    changes, the same must hold for every member."""
    members = [*group.members, buffer]
    changed = group.domain is None and isinstance(buffer.data, Reduction)
    for member in members if changed else [buffer]:
        if isinstance(member, ComputedBuffer) and not _reads_members_in_step(member, members, domain):
            return False
    group.members.append(buffer)
    if changed:
        group.domain = domain
    return True


def _reads_members_in_step(member: ComputedBuffer, members: list[Buffer], domain: tuple[Size, Size]) -> bool:
    rows = {other.name: is_row_value(other, domain) for other in members}
    if domain == (1, 1):
        return not any(isinstance(node, Search) and node.row.buffer in rows for node in walk(member.data.body))
    x, _ = row_variables(domain)
    element = element_index(domain)
    for node in walk(body_in_domain(member, domain)):
        if isinstance(node, Search) and node.row.buffer in rows:
            return False
        if isinstance(node, Load) and node.buffer in rows:
            expected = x if rows[node.buffer] else element
            if node.index != expected or (is_row_value(member, domain) and not _is_reduction(member) and not rows[node.buffer]):
                return False
    return True


def _is_reduction(member: ComputedBuffer) -> bool:
    return isinstance(member.data, Reduction)


def _reason_against_epilogue(buffer: ComputedBuffer, group: Group) -> str:
    """Return the reason why a loop cannot be an epilogue of the template; empty if it can. Epilogues are elementwise and read
    with a constant stride along the columns."""
    if group.template.kind not in EPILOGUE_TEMPLATES:
        return "nothing is fused into that"
    if isinstance(buffer.data, Reduction):
        return "a reduction needs whole rows"
    if buffer.data.numel != group.numel:
        return "this has another number of elements"
    _, r = row_variables(group.domain)
    for node in walk(body_in_domain(buffer, group.domain)):
        if isinstance(node, Masked):
            return "this loads only where a condition holds"
        if may_report(node):
            return "this may end in an error"
        index = getattr(node, "index", None)
        if isinstance(index, Expr) and stride_along(index, r) is None:
            return "this does not read with one stride along the columns"
    return ""


def _mark_stored(groups: list[Group], outputs: set[str]) -> None:
    wanted = outputs.union(*(group.reads() for group in groups))  # reads() excludes a group's own members
    for group in groups:
        is_library_call = group.template is not None and group.template.kind == "library"
        group.stored = group.names if is_library_call else group.names & wanted
