"""Sorts as C++ functions: calls of sort.h, row by row.

In: a group with a sort and, if needed, its indices. Out: a kernel whose rows are shared among threads. If a row is not
contiguous in memory, it is first computed into the thread's scratch memory.
"""

from __future__ import annotations

from rushlight.core.algebra import Var, to_cpp, unflatten_index
from rushlight.core.dtype import int64
from rushlight.core.storage import ALIGNMENT
from rushlight.inductor.codegen.cpp.expressions import StatementWriter, needs_scalar
from rushlight.inductor.codegen.cpp.kernels import OPERATIONS_PER_ELEMENT, Kernel, KernelWriter, for_rows, indented
from rushlight.inductor.codegen.cpp.types import c_type, size_operand, size_text
from rushlight.inductor.ir import Buffer, Load, Value, substitute
from rushlight.inductor.ordered_loops import Sort
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import as_size, product, rounded_up, stride_along


class SortKernel(KernelWriter):
    """Writes a sort: x counts rows, r the elements of a row."""

    def __init__(self, group: Group, buffers: dict[str, Buffer]):
        super().__init__(group, buffers)
        self.member: Buffer = group.members[0]
        loop = self.loop = self.member.data
        assert isinstance(loop, Sort)
        self.x, self.r = Var("x", product(loop.ranges[:-1])), Var("r", loop.ranges[-1])
        positions = [*unflatten_index(self.x, loop.ranges[:-1]), self.r]
        self.body: Value = substitute(loop.body, dict(zip(loop.variables, positions, strict=True)))
        self.note_status(self.body)
        self.type = c_type(loop.dtype)

    def write(self) -> Kernel:
        """Return the kernel."""
        kernel, rows = self.kernel, self.x.extent
        kernel.header, kernel.uses_status = "sort", True
        kernel.work = as_size(self.loop.numel * (2 * OPERATIONS_PER_ELEMENT))
        lines = [*self._row(), *self._sort()]
        kernel.body = for_rows(rows, lines)
        return kernel

    def _row(self) -> list[str]:
        """Return the row, in place or computed, and the scratch memory for sorting."""
        count, body = self.r.extent, self.body
        needed = f"rl::sort_scratch_bytes<{self.type}>({size_text(count)}, {size_text(self.loop.kept)})"
        lies = isinstance(body, Load) and stride_along(body.index, self.r) == 1
        lies = lies and self.element_type(body.buffer) is self.loop.dtype
        nbytes = 0 if lies else rounded_up(as_size(count * self.loop.dtype.itemsize), ALIGNMENT)
        self.scratch = (f"rows_{self.member.name}", needed if lies else f"{size_operand(nbytes)} + {needed}")
        self.kernel.parameters.append(("char*", "scratch"))
        self.kernel.arguments.append(self.scratch[0])
        lines = [f"char* own = scratch + rl::thread_index() * ({self.scratch[1]});"]
        if lies:
            first = body.index.substitute({self.r: 0})
            return [*lines, f"const {self.type}* row = {self.pointer(body.buffer)} + {to_cpp(first)};"]
        return [*lines, f"{self.type}* row = ({self.type}*)own;", f"own += {size_operand(nbytes)};", *self._compute_row()]

    def _compute_row(self) -> list[str]:
        scalar = needs_scalar(self.body, self.r)
        writer = StatementWriter(self.r, self.pointer, self.element_type, self.stream)
        value, count = writer.write(self.body), size_text(self.r.extent)
        if scalar:
            head, tail = f"for (long r = 0; r < {count}; ++r) {{ const rl::scalar_lane lane;", "}"
        else:
            head, tail = f"rl::for_each({count}, [&](auto lane, long r) {{", "});"
        return [head, *indented([*writer.lines, f"lane.store(row + r, {value});"]), tail]

    def _sort(self) -> list[str]:
        kept = self.loop.kept
        values = self._results(self.member, self.type)
        indices = next((self._results(member, c_type(int64)) for member in self.group.members[1:]), "(int64_t*)nullptr")
        descending = "true" if self.loop.descending else "false"
        sizes = f"{size_text(self.r.extent)}, {size_text(kept)}"
        return [f"rl::sort_row<{descending}>(row, {sizes}, {values}, {indices}, own, status);"]

    def _results(self, member: Buffer, kind: str) -> str:
        """Return the address of a row of results."""
        if member.name not in self.stored:
            return f"({kind}*)nullptr"
        return f"{self.pointer(member.name, True)} + {to_cpp(as_size(self.x * self.loop.kept))}"
