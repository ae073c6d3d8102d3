"""Writes one group as one C++ function.

A kernel is a function over pointers: it reads `in0, in1, ...` and writes `out0, ...`. Its text names no buffers of the graph,
so groups with the same computation share one function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rushlight.core.algebra import Var, to_cpp, unflatten_index
from rushlight.core.dtype import dtype, float32
from rushlight.core.storage import ALIGNMENT
from rushlight.inductor import costs
from rushlight.inductor.codegen.cpp.alike import merge
from rushlight.inductor.codegen.cpp.expressions import SCALAR, StatementWriter, looked_up, needs_branches, needs_scalar
from rushlight.inductor.codegen.cpp.runs import runs_of
from rushlight.inductor.codegen.cpp.segments import cuts_of
from rushlight.inductor.codegen.cpp.types import c_type, compute_type, size_operand, size_text
from rushlight.inductor.codegen.parameters import BufferParameters
from rushlight.inductor.codegen.passes import assign_passes
from rushlight.inductor.ir import (
    Buffer,
    Call,
    ComputedBuffer,
    Indirect,
    Load,
    Reduction,
    Search,
    Value,
    may_report,
    substitute,
    walk,
)
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, is_row_value, row_variables
from rushlight.inductor.sizes import Size, as_size, product, quotient, rounded_up, stride_along

ACCUMULATORS = {
    "sum": "rl::sum", "prod": "rl::prod", "max": "rl::max", "min": "rl::min", "any": "rl::any", "all": "rl::all",
    "argmax": "rl::argmax", "argmin": "rl::argmin",
}  # fmt: skip
STACK_BYTES = 1 << 18  # bytes of row buffers on each thread's stack; further row buffers go to the arena
OPERATIONS_PER_ELEMENT = 8  # floating-point operations that an element of a loop counts as, in estimates of work
MANY_ROWS = 64  # enough rows to keep all threads busy
MIN_STEPS_PER_LOOKUP = 2  # gathers pay off only if a loop has at least this many operations for each
CHUNK = 4096  # elements of a flat loop per work item
LINE = 16  # floats per cache line
MIN_PREFETCHED_ROW = 1024  # bytes; the hardware prefetches shorter rows well enough


@dataclass
class Kernel:
    """The text of a function without its name, and the buffers, size symbols and numbers to pass, in order.

    `work` estimates its operations. `streams` are streams of random words, one per thread. `header` is an additional header
    that it includes.
    """

    parameters: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    numbers: tuple[str, ...] = ()
    uses_status: bool = False
    work: Size = 0
    header: str = ""

    def text(self, name: str) -> str:
        """Return the function's definition."""
        parameters = [f"{kind} {parameter}" for kind, parameter in self.parameters]
        if self.uses_status:
            parameters.append("int* status")
        parameters += [f"int64_t {symbol}" for symbol in self.sizes]
        streams = [f"rl::philox_stream {name}({key});" for key, name in self.streams.items()]
        body = "\n".join(f"  {line}" for line in [*streams, *self.body])
        return f"static void {name}({', '.join(parameters)}) {{\n{body}\n}}"


class KernelWriter(BufferParameters):
    """Base of loop and template kernels; assigns parameters in order of first use.

    `scratch` is the name of the threads' scratch memory and its bytes per thread.
    """

    def __init__(self, group: Group, buffers: dict[str, Buffer], spilled: set[str] = frozenset()):
        super().__init__(buffers)
        self.group = group
        self.kernel = Kernel()
        self.stored = group.stored | set(spilled)
        self.scratch: tuple[str, str] | None = None

    def add_pointer(self, parameter: str, name: str, write: bool) -> None:
        """Add a parameter to the kernel."""
        kind = f"{'' if write else 'const '}{c_type(self.element_type(name))}*"
        self.kernel.parameters.append((kind, parameter))
        self.kernel.arguments.append(name)

    def stores_past_caches(self, name: str, domain: tuple[Size, Size]) -> bool:
        """Return whether a member's rows are contiguous and exceed the caches, so that they are written by non-temporal
        stores."""
        rows, columns = domain
        whole_lines = isinstance(rows, int) and isinstance(columns, int) and columns % LINE == 0
        return whole_lines and self.element_type(name) is float32 and 4 * rows * columns >= costs.core().stays

    def store(self, name: str, domain: tuple[Size, Size], value: str) -> str:
        """Return the statement that stores an element of a member."""
        method = "stream" if self.stores_past_caches(name, domain) else "store"
        return f"lane.{method}({self.pointer(name, True)} + {to_cpp(element_index(domain))}, {value});"

    def stream(self, seed: Load, offset: int) -> str:
        """Return the name of a stream of random words."""
        key = f"*({self.pointer(seed.buffer)} + {to_cpp(seed.index)}), {offset}"
        return self.kernel.streams.setdefault(key, f"stream{len(self.kernel.streams)}")

    def note_status(self, body: Value) -> None:
        """Record whether a body may report an index error, and the header that this needs."""
        for node in walk(body):
            if may_report(node):
                self.kernel.uses_status = True
            if isinstance(node, Search):
                self.kernel.header = "search"


class LoopKernel(KernelWriter):
    """Writes a group of loops: threads share the rows, and each row is computed in passes over its columns."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.domain = group.domain or choose_domain(group)
        self.flat = group.domain is None and self.domain[0] == 1 and not _is_at_most(self.domain[1], CHUNK)
        if self.flat:
            self.domain = (quotient(rounded_up(group.numel, CHUNK), CHUNK), CHUNK)
        self.x, self.r = row_variables(self.domain)
        self.bodies = {member.name: self._body(member) for member in group.members}
        self.passes, self.after = assign_passes(group.members, self._is_row_value)
        self.hosts: dict[str, str] = {}
        self.tables: list[str] = []

    def _body(self, member: ComputedBuffer) -> Value:
        if not self.flat:
            return body_in_domain(member, self.domain)
        linear, loop = element_index(self.domain), member.data
        return substitute(loop.body, dict(zip(loop.variables, unflatten_index(linear, loop.ranges), strict=True)))

    def _is_row_value(self, member: Buffer) -> bool:
        return not self.flat and self.group.domain is not None and is_row_value(member, self.domain)

    def write(self) -> Kernel:
        """Return the kernel."""
        rows = self._all_rows()
        self.kernel.body = [*self.tables, *rows]
        self.kernel.work = as_size(self.group.numel * (OPERATIONS_PER_ELEMENT * len(self.group.members)))
        return self.kernel

    def _all_rows(self) -> list[str]:
        return for_rows(self.domain[0], self._row())

    def _row(self) -> list[str]:
        scratch = self._scratch_rows()
        scalars: dict[str, str] = {}
        last = max([*self.passes.values(), *self.after.values()], default=0)
        lines = self._write_row_values(-1, scalars)
        for number in range(last + 1):
            lines += self._pass(number, scalars, scratch)
            lines += self._write_row_values(number, scalars)
        return [*([self._declare_columns_of_chunk()] if self.flat else []), *self._declare_rows(scratch), *lines]

    def _declare_columns_of_chunk(self) -> str:
        chunks, numel = self.domain[0], self.group.numel
        rest = numel - CHUNK * (chunks - 1) if isinstance(numel, int) else numel - self.x * CHUNK
        return f"const long columns = x + 1 < {size_text(chunks)} ? {CHUNK}L : {size_text(rest)};"

    def _declare_rows(self, scratch: dict[str, str]) -> list[str]:
        """Declare a thread's row buffers: in a result's memory; on the stack if the row length is known; else in the thread's
        scratch memory."""
        columns, lines, nbytes = self.domain[1], [], 0
        for name, row in scratch.items():
            kind = compute_type(self.element_type(name))
            if name in self.hosts:
                first = to_cpp(element_index(self.domain).substitute({self.r: 0}))
                lines.append(f"{kind}* {row} = {self.pointer(self.hosts[name], True)} + {first};")
            elif isinstance(columns, int):
                lines.append(f"alignas(64) {kind} {row}[{columns}L];")
            else:
                lines.append(f"{kind}* {row} = ({kind}*)(rows + {size_operand(nbytes)});")
                nbytes = nbytes + rounded_up(as_size(columns * _row_item_bytes(self.element_type(name))), ALIGNMENT)
        if nbytes == 0:
            return lines
        self.scratch = (f"rows_{self.group.members[0].name}", size_text(nbytes))
        self.kernel.parameters.append(("char*", "scratch"))
        self.kernel.arguments.append(self.scratch[0])
        return [f"char* rows = scratch + rl::thread_index() * {size_operand(nbytes)};", *lines]

    def _scratch_rows(self) -> dict[str, str]:
        """Return the row buffers for members that a later pass reads and that are not stored anyway. Members are stored if the
        row buffers would exceed STACK_BYTES."""
        needed: dict[str, str] = {}
        free = STACK_BYTES
        for member in self.group.members:
            number = self._pass_of(member)
            for name in member.reads():
                if name in self.passes and name not in self.stored and name not in needed and self.passes[name] < number:
                    host = self._find_host_row(name)
                    if host is not None:
                        self.hosts[name] = host
                    elif isinstance(self.domain[1], int):
                        free -= self.domain[1] * _row_item_bytes(self.element_type(name))
                    if host is None and free < 0:
                        self.stored = self.stored | {name}
                    else:
                        needed[name] = f"row{len(needed)}"
        return needed

    def _pass_of(self, member: ComputedBuffer) -> int:
        """Return the pass that computes a member, or after which its row value is known."""
        return self.passes.get(member.name, self.after.get(member.name, 0))

    def _find_host_row(self, name: str) -> str | None:
        """Return a result whose row can hold the values of `name` until the result overwrites them: it depends on nothing else
        that varies along the row, and nothing reads `name` after it."""
        readers = [member for member in self.group.members if name in member.reads()]
        last = max(map(self._pass_of, readers))
        kind = compute_type(self.element_type(name))
        for member in readers:
            others = [other for other in member.reads() if other != name and other not in self.after]
            fits = self.passes.get(member.name) == last and c_type(self.element_type(member.name)) == kind
            free = member.name in self.stored and member.name not in self.hosts.values()
            if fits and free and not others and not self._keeps_rows_on_stack(member.name):
                return member.name
        return None

    def stores_past_caches(self, name: str, domain: tuple[Size, Size]) -> bool:
        """Decide as in the base class, but never for results whose rows hold other values first, because those rows are in the
        cache."""
        return name not in self.hosts.values() and super().stores_past_caches(name, domain)

    def _keeps_rows_on_stack(self, name: str) -> bool:
        """Return whether row buffers should stay on the stack rather than in a result's memory, so that the result can use
        non-temporal stores."""
        columns = self.domain[1]
        fits = isinstance(columns, int) and columns * _row_item_bytes(float32) <= STACK_BYTES // 4
        return fits and self.stores_past_caches(name, self.domain)

    def _members_of_pass(self, number: int) -> list[ComputedBuffer]:
        found = []
        for member in self.group.members:
            if self.passes.get(member.name) == number:
                found.append(member)
            elif self.after.get(member.name) == number and isinstance(member.data, Reduction):
                found.append(member)
        return found

    def _pass(self, number: int, scalars: dict[str, str], scratch: dict[str, str]) -> list[str]:
        members = self._members_of_pass(number)
        if not members:
            return []
        lines, accumulators = [], {}
        for member in members:
            if isinstance(member.data, Reduction):
                accumulators[member.name] = f"total_{len(scalars) + len(accumulators)}"
                lines.append(_declare_accumulator(member.data, accumulators[member.name]))

        def statements(bodies: Sequence[Value], column: Var, gathers: bool = False) -> list[str]:
            writer = self._writer(column)
            writer.row_values, writer.gathers = scalars, gathers
            for member, body in zip(members, bodies, strict=True):
                self._write_element(member, body, writer, accumulators, scratch)
            return writer.lines

        loops = self._loops(number, [self.bodies[member.name] for member in members], lines, statements)
        tables, over_segments = merge(loops, {name: kind for kind, name in self.kernel.parameters}, len(self.tables))
        self.tables += tables
        lines += over_segments
        for name, accumulator in accumulators.items():
            scalars[name] = f"value_{len(scalars)}"
            lines.append(f"const auto {scalars[name]} = {accumulator}.finish();")
            lines += self._store_row_value(name, scalars[name])
        return lines

    def _loops(self, number: int, bodies: Sequence[Value], lines: list[str], statements: Callable) -> list[list[str]]:
        """Return the loops of a pass in order. Declarations before them are appended to `lines`."""
        runs = None if self.flat or cuts_of(bodies, self.r) is not None else runs_of(bodies, self.r)
        if runs is not None:
            head = f"for (long run = 0; run < {runs.count}L; ++run) rl::for_each({runs.length}L, [&](auto lane, long place) {{"
            column = f"const long r = {runs.length}L*run + place;"
            return [[head, *indented([column, *statements(runs.bodies, runs.place)]), "});"]]
        loops = []
        for first, end, settled in self._segments(number, bodies, lines):
            gathers = _is_worth_gathering(settled, self.r)
            scalar = not gathers and (any(needs_scalar(body, self.r) for body in settled) or _is_lookup(settled, self.r))
            head, tail = _loop(scalar, first, end)
            ahead = [] if scalar or number != 1 else self._prefetch_next_row()
            loops.append([head, *indented([*ahead, *statements(settled, self.r, gathers)]), tail])
        return loops

    def _prefetch_next_row(self) -> list[str]:
        """Prefetch the next row in the second pass over a row, because memory would otherwise be idle."""
        rows, columns = self.domain
        if self.flat or not isinstance(rows, int) or not isinstance(columns, int):
            return []
        own, loads = {member.name for member in self.group.members}, {}
        for node in (node for member in self._members_of_pass(0) for node in walk(self.bodies[member.name])):
            if not isinstance(node, Load) or node.buffer in own or not node.index.free_variables() <= {self.x, self.r}:
                continue
            step, nbytes = stride_along(node.index, self.x), columns * self.element_type(node.buffer).itemsize
            new = isinstance(step, int) and abs(step) >= columns and rows * nbytes >= costs.core().stays
            if new and nbytes >= MIN_PREFETCHED_ROW and stride_along(node.index, self.r) == 1:
                loads[node.buffer, node.index] = node
        following = {self.x: self.x + 1}
        return [
            f"__builtin_prefetch({self.pointer(load.buffer)} + {to_cpp(load.index.substitute(following))});"
            for load in loads.values()
        ]

    def _segments(self, number: int, bodies: Sequence[Value], lines: list[str]) -> list[tuple[str, str, Sequence[Value]]]:
        """Return the segments of a pass, from a first column to an end, with the bodies there. Declarations are appended to
        `lines`."""
        count = "columns" if self.flat else size_text(self.domain[1])
        cuts = cuts_of(bodies, self.r)
        if cuts is None:
            return [("0L", count, bodies)]
        width = None if self.flat or not isinstance(self.domain[1], int) else self.domain[1]
        if width is not None and all(isinstance(cut, int) for cut in cuts.positions):
            edges = [0, *(min(max(cut, 0), width) for cut in cuts.positions), width]
            found = zip(edges, edges[1:], cuts.bodies, strict=False)
            return [(f"{first}L", f"{end}L", settled) for first, end, settled in found if first < end]
        names = [f"cut{number}_{position}" for position in range(len(cuts.positions))]
        for name, cut in zip(names, cuts.positions, strict=True):
            lines.append(f"const long {name} = rl::within({size_text(cut)}, {count});")
        return list(zip(["0L", *names], [*names, count], cuts.bodies, strict=True))

    def _writer(self, column: Var) -> StatementWriter:
        return StatementWriter(column, self.pointer, self.element_type, self.stream)

    def _write_element(self, member, body: Value, writer: StatementWriter, accumulators: dict, scratch: dict[str, str]) -> None:
        self.note_status(body)
        for node in walk(body):
            if isinstance(node, Load) and node.buffer in scratch and node.buffer not in writer.local:
                writer.local[node.buffer] = writer.bind(f"lane.load({scratch[node.buffer]} + r)")
        result = writer.write(body)
        if member.name in accumulators:
            index = ", r" if member.data.reduction_type in ("argmax", "argmin") else ""
            writer.lines.append(f"{accumulators[member.name]}.add(lane, {result}{index});")
            return
        if member.name in self.stored:
            writer.lines.append(self.store(member.name, self.domain, result))
        if member.name in scratch:
            writer.lines.append(f"lane.store({scratch[member.name]} + r, {result});")
        writer.local[member.name] = result

    def _write_row_values(self, number: int, scalars: dict[str, str]) -> list[str]:
        """Compute the members with one value per row that are known after pass `number`, except its reductions."""
        lines: list[str] = []
        for member in self.group.members:
            if self.after.get(member.name) != number or isinstance(member.data, Reduction):
                continue
            self.note_status(self.bodies[member.name])
            name = f"value_{len(scalars)}"
            writer = StatementWriter(self.r, self.pointer, self.element_type, self.stream, lane=SCALAR, prefix=f"{name}_")
            writer.row_values = scalars
            result = writer.write(self.bodies[member.name])
            scalars[member.name] = result
            lines += [*writer.lines, *self._store_row_value(member.name, result)]
        return lines

    def _store_row_value(self, name: str, value: str) -> list[str]:
        if name not in self.stored:
            return []
        return [f"rl::scalar_lane{{}}.store({self.pointer(name, True)} + x, {value});"]


def for_rows(rows: Size, lines: list[str]) -> list[str]:
    """Wrap lines that compute row x in a loop over rows, which threads share."""
    if rows == 1:
        one = "for ([[maybe_unused]] const long only : rl::shared(1L)) {"
        return [one, "  [[maybe_unused]] constexpr long x = 0;", *indented(lines), "}"]
    return [f"for (const long x : rl::shared({size_text(rows)})) {{", *indented(lines), "}"]


def _loop(scalar: bool, first: str, end: str) -> tuple[str, str]:
    """Return the head and tail of a loop over columns, vectorized or scalar."""
    if scalar:
        return f"for (long r = {first.removesuffix('L')}; r < {end}; ++r) {{ const rl::scalar_lane lane;", "}"
    if first == "0L":
        return f"rl::for_each({end}, [&](auto lane, long r) {{", "});"
    return f"rl::for_each({end} - {first}, [&](auto lane, long column) {{ const long r = {first} + column;", "});"


def _is_worth_gathering(bodies: Sequence[Value], column: Var) -> bool:
    """Return whether vectorization by gathers is worthwhile: only loads prevent plain vectors, and the loop computes
    something."""
    if any(needs_branches(body, column) for body in bodies) or not any(needs_scalar(body, column) for body in bodies):
        return False
    return any(isinstance(node, Call) and node.name != "cast" for body in bodies for node in walk(body))


def _is_lookup(bodies: Sequence[Value], column: Var) -> bool:
    """Return whether a loop does little besides lookups, for which a scalar loop is as fast."""
    if not any(looked_up(body, column) for body in bodies):
        return False
    nodes = {id(node): node for body in bodies for node in walk(body)}.values()
    reads = sum(isinstance(node, Indirect) for node in nodes)
    return sum(isinstance(node, Call) and node.name != "cast" for node in nodes) < MIN_STEPS_PER_LOOKUP * reads


def _row_item_bytes(kind: dtype) -> int:
    return max(4, kind.itemsize)


def _is_at_most(size: Size, limit: int) -> bool:
    return isinstance(size, int) and size <= limit


def _declare_accumulator(loop: Reduction, name: str) -> str:
    kind = loop.body.dtype if loop.reduction_type in ("argmax", "argmin") else loop.dtype
    return f"rl::accumulator<{ACCUMULATORS[loop.reduction_type]}, {compute_type(kind)}> {name};"


def indented(lines: list[str], levels: int = 1) -> list[str]:
    """Indent lines by two blanks per level."""
    return [f"{'  ' * levels}{line}" for line in lines]


def choose_domain(group: Group) -> tuple[Size, Size]:
    """Return the rows and columns of a group of elementwise loops. Columns are the most trailing dimensions along which all
    loads have a stride."""
    widest = max(group.members, key=lambda member: len(member.data.ranges))
    ranges = widest.data.ranges
    candidates = [(product(ranges[:start]), product(ranges[start:])) for start in range(len(ranges))] or [(1, 1)]
    for domain in candidates:
        _, r = row_variables(domain)
        bodies = [body_in_domain(member, domain) for member in group.members]
        if not any(needs_scalar(body, r) for body in bodies) or (_is_shared(domain) and _can_vectorize_segments(bodies, r)):
            return domain
    return candidates[-1]


def _is_shared(domain: tuple[Size, Size]) -> bool:
    """Return whether a domain has enough rows for all threads, or a single row, which is split into chunks."""
    return domain[0] == 1 or not _is_at_most(domain[0], MANY_ROWS - 1)


def _can_vectorize_segments(bodies: list[Value], column: Var) -> bool:
    cuts = cuts_of(bodies, column)
    return cuts is not None and not any(needs_scalar(body, column) for segment in cuts.bodies for body in segment)
