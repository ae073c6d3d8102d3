"""Elementwise loops that transpose: they read one memory order and write another, for example channels-last to row-major.

In: a group whose results are contiguous along columns, and some of whose loads are contiguous along rows. Out: a kernel that
transposes blocks of these loads in registers and the L1 cache; `LoopKernel` would load their elements one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.algebra import Var, as_expr, to_cpp
from rushlight.core.dtype import bfloat16, float16, float32
from rushlight.inductor.codegen.cpp.expressions import StatementWriter, needs_scalar
from rushlight.inductor.codegen.cpp.kernels import OPERATIONS_PER_ELEMENT, Kernel, KernelWriter, choose_domain, indented
from rushlight.inductor.ir import Buffer, Call, Constant, IndexValue, Load, Pointwise, Value, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, row_variables
from rushlight.inductor.sizes import as_size, product, stride_along

LINE = 64  # bytes per cache line: a block has enough rows to use whole lines
BLOCK = 4096  # elements of a transposed block
MAX_TRANSPOSED = 4  # the blocks of more loads would not fit into the L1 cache together
TRANSPOSABLE = (float32, bfloat16, float16)  # only loads of these dtypes are transposed; kernels compute them in float32


@dataclass(frozen=True)
class Turning:
    """The domain as `outer` times `width` rows of `columns`, and each member's body in the variables o, c and r."""

    outer: int
    width: int
    columns: int
    bodies: tuple[Value, ...]

    @property
    def variables(self) -> tuple[Var, Var, Var]:
        """o and c count rows, r columns."""
        return Var("o", self.outer), Var("c", self.width), Var("r", self.columns)

    def turned(self, element_type) -> list[Load]:
        """Return the loads with unit stride along c and another stride along r, each once."""
        _, c, r = self.variables
        found = {}
        for node in (node for body in self.bodies for node in walk(body)):
            if isinstance(node, Load) and element_type(node.buffer) in TRANSPOSABLE and stride_along(node.index, c) == 1:
                if stride_along(node.index, r) not in (0, 1, None):
                    found.setdefault((node.buffer, to_cpp(node.index)), node)
        return list(found.values())


def turning_of(group: Group, buffers: dict[str, Buffer]) -> Turning | None:
    """Split the rows of a group whose loads should be transposed; None for other groups."""
    loops = [member.data for member in group.members]
    if group.domain is not None or not all(isinstance(loop, Pointwise) and loop.numel == group.numel for loop in loops):
        return None
    plain = (Load, Constant, IndexValue, Call)
    if not all(isinstance(node, plain) for loop in loops for node in walk(loop.body)):
        return None  # a masked load may be out of bounds, so it can't be moved into a block
    domain = choose_domain(group)
    narrowest = LINE // float32.itemsize
    if not isinstance(group.numel, int) or domain[0] < narrowest or domain[1] < narrowest:
        return None
    bodies = [body_in_domain(member, domain) for member in group.members]
    if any(needs_scalar(body, row_variables(domain)[1]) for body in bodies):
        return None
    ranges = max((loop.ranges for loop in loops), key=len)
    start = next(start for start in range(len(ranges) + 1) if product(ranges[start:]) == domain[1])
    for first in range(start):
        made = _split_rows(domain, product(ranges[first:start]), bodies)
        turned = made.turned(lambda name: buffers[name].layout.dtype)
        local = {member.name for member in group.members}
        if 0 < len(turned) <= MAX_TRANSPOSED and made.width >= narrowest and not any(load.buffer in local for load in turned):
            return made
    return None


def _split_rows(domain: tuple[int, int], width: int, bodies: list[Value]) -> Turning:
    x, _ = row_variables(domain)
    outer = domain[0] // width
    o, c = Var("o", outer), Var("c", width)
    return Turning(outer, width, domain[1], tuple(substitute(body, {x: o * width + c}) for body in bodies))


class TurningKernel(KernelWriter):
    """Writes a group for which `turning_of` returned a split."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], turning: Turning):
        super().__init__(group, buffers)
        self.turning = turning

    def write(self) -> Kernel:
        """Return the kernel."""
        turning, (_, c, r) = self.turning, self.turning.variables
        turned = turning.turned(self.element_type)
        names = {(load.buffer, to_cpp(load.index)): f"turned{number}" for number, load in enumerate(turned)}
        begin = {c: as_expr(Var("first", turning.width)), r: as_expr(Var("start", turning.columns))}
        high = LINE // min(self.element_type(load.buffer).itemsize for load in turned)
        wide = BLOCK // high
        copies = []
        for load, name in zip(turned, names.values(), strict=True):
            at = f"{self.pointer(load.buffer)} + {to_cpp(load.index.substitute(begin))}"
            copies.append(f"rl::turn({at}, {stride_along(load.index, r)}L, rows, count, {name}, {wide}L);")
        blocks, runs = -(-turning.width // high), -(-turning.columns // wide)
        self.kernel.body = [
            f"for (const long block : rl::shared({turning.outer * blocks * runs}L)) {{",
            f"  [[maybe_unused]] const long o = block / {blocks * runs}L, start = block % {runs}L * {wide}L;",
            f"  const long first = block / {runs}L % {blocks}L * {high}L;",
            f"  const long rows = first + {high}L < {turning.width}L ? {high}L : {turning.width}L - first;",
            f"  const long count = start + {wide}L < {turning.columns}L ? {wide}L : {turning.columns}L - start;",
            *[f"  alignas(64) float {name}[{BLOCK}];" for name in names.values()],
            *indented(copies),
            "  for (long c = first; c < first + rows; ++c) {",
            "    rl::for_each(count, [&](auto lane, long i) {",
            "      [[maybe_unused]] const long r = start + i;",
            *indented(self._write_elements(names, wide), 3),
            "    });",
            "  }",
            "}",
        ]
        self.kernel.header = "pack"
        self.kernel.work = as_size(self.group.numel * (OPERATIONS_PER_ELEMENT * len(self.group.members)))
        return self.kernel

    def _write_elements(self, names: dict[tuple[str, str], str], wide: int) -> list[str]:
        turning, (o, c, r) = self.turning, self.turning.variables
        writer = _TurnedWriter(r, self.pointer, self.element_type, self.stream)
        writer.turned, writer.wide = names, wide
        at = to_cpp((o * turning.width + c) * turning.columns + r)
        for member, body in zip(self.group.members, turning.bodies, strict=True):
            result = writer.write(body)
            if member.name in self.stored:
                writer.lines.append(f"lane.store({self.pointer(member.name, True)} + {at}, {result});")
            writer.local[member.name] = result
        return writer.lines


class _TurnedWriter(StatementWriter):
    """Reads transposed values from their block, whose rows have `wide` elements."""

    turned: dict[tuple[str, str], str]
    wide: int

    def _write_load(self, value: Load) -> str:
        name = self.turned.get((value.buffer, to_cpp(value.index)))
        if name is None:
            return super()._write_load(value)
        return self.bind(f"{self.lane}.load({name} + (c - first) * {self.wide}L + i)")
