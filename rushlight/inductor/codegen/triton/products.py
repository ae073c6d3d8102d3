"""Products of matrices as Triton kernels, with elementwise loops as epilogue.

A product is given by the values of its factors' elements, so that batched products, convolutions and their gradients share one
kernel: their factors only load at other places, and nothing outside of an image. Programs take tiles of results and pass over
the depth in blocks. Factors of 16-bit floats are multiplied in their own type and summed in float32. If there are too few tiles
for a device, programs share the depth of a tile, and a second kernel adds their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import dtype, float32
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term, operand_text
from rushlight.inductor.codegen.triton.kernels import Choice, Launch, LaunchWriter, Limits, indented, program_text, range_text
from rushlight.inductor.codegen.triton.loops import next_power
from rushlight.inductor.codegen.triton.tiles import Work, instructions_of, plan
from rushlight.inductor.codegen.triton.types import HALVES, compute_type, literal, memory_type, size_text
from rushlight.inductor.ir import Buffer, Load, Value, contiguous_layout, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, row_variables
from rushlight.inductor.sizes import Size, as_size, evaluate

TOGETHER = 8  # rows of tiles whose programs run together, so that they share loads
SUM_BLOCK = 32
PART_STEP = 256  # a part's depth is a multiple of this, and so of the depths of blocks


@dataclass(frozen=True)
class Product:
    """A batch of products of (rows, depth) and (depth, columns) matrices, and the places of results in a template's domain.

    `left(batch, row, step)` and `right(batch, step, column)` are the factors' elements; they only load, cast, and mask by
    zeros. `place(batch, row, column)` gives the row and column in the domain.
    """

    batch: Size
    rows: Size
    columns: Size
    depth: Size
    left: Callable[[Expr, Expr, Expr], Value]
    right: Callable[[Expr, Expr, Expr], Value]
    place: Callable[[Expr, Expr, Expr], tuple[Expr, Expr]] = field(default=lambda batch, row, column: (row, column))


TOTAL = Term("total", frozenset("xr"))


class Epilogue(LaunchWriter):
    """Base of writers for templates: writes the loops that follow a template's results."""

    def write_epilogue(self, writer: StatementWriter, total: Term, row: Expr, column: Expr) -> None:
        """Write the stores of the results and of the loops over them, at a row and column of the domain."""
        template, domain = self.group.template, self.group.domain
        x, r = row_variables(domain)
        here = {x: row, r: column}
        writer.local[template.name] = total
        for member in self.group.members:
            self.member = member
            value = total if member is template else writer.write(substitute(body_in_domain(member, domain), here))
            if member.name in self.group.stored:
                writer.store(self.pointer(member.name, True), element_index(domain).substitute(here), value)
            writer.local[member.name] = value


def product_launches(
    group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], product: Product, precision: str, limits: Limits
) -> list[Launch]:  # fmt: skip
    """Return the launches of a product."""
    first = ProductKernel(group, buffers, hints, product, precision, limits)
    if first.parts == 1:
        return [first.write()]
    rows, columns = group.domain
    name = first.sums_name
    sums = Buffer(name, contiguous_layout(float32, (first.parts, rows, columns)))

    def body(row: Expr, column: Expr, step: Expr) -> Load:
        return Load(float32, name, step * (rows * columns) + row * columns + column)

    made = [first.write(), SumKernel(group, {**buffers, name: sums}, hints, first.parts, body).write()]
    made[1].scratch = made[0].scratch
    return made


class ProductKernel(Epilogue):
    """Writes a product by `tl.dot`. `precision` is how float32 factors are multiplied: "ieee" or "tf32". If the depth is split
    into several `parts`, the kernel stores a sum for each of them, instead of results."""

    def __init__(
        self, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], product: Product, precision: str,
        limits: Limits,
    ):  # fmt: skip
        super().__init__("product", group, buffers, hints)
        self.sums_name = f"sums_{group.template.name}"
        self.product = product
        self.precision = precision
        self.x, self.r = Var("x", product.rows), Var("r", product.columns)
        self.across, self.down = Var("k_across", product.depth), Var("k_down", product.depth)
        self.batch = as_expr(0) if product.batch == 1 else Var("batch", product.batch)
        self.left, self.right = product.left(self.batch, self.x, self.across), product.right(self.batch, self.down, self.r)
        kinds = {self._loaded_type(self.left), self._loaded_type(self.right)}
        self.factors = kinds.pop() if len(kinds) == 1 else None
        self.launch.choice, self.parts, self.launch.candidates = plan(self._work(), limits)

    def _work(self) -> Work:
        """Return what the time of the product depends on, with the hints' sizes."""
        product, kind = self.product, self.factors
        sizes = [evaluate(size, self.hints) for size in (product.rows, product.columns, product.depth, product.batch)]
        domain, template = self.group.domain, self.group.template
        bodies = [body_in_domain(member, domain) for member in self.group.members if member is not template]
        itemsize = float32.itemsize if kind is None else kind.itemsize
        by_matrices = itemsize < float32.itemsize or (itemsize == float32.itemsize and self.precision == "tf32")
        is_split = all(
            each.is_floating_point and each.itemsize <= float32.itemsize
            for each in (self._loaded_type(self.left), self._loaded_type(self.right))
        )
        return Work(*sizes, itemsize, by_matrices, instructions_of(bodies), is_split)

    def write(self) -> Launch:
        """Return the launch."""
        product, kind, left, right = self.product, self.factors, self.left, self.right
        self.kind = self.index_type(*_with_product(product), as_size(self.group.numel * self.parts))
        element = "tl.float32" if kind is None else memory_type(kind)
        masks = self._masks()
        loop, terms = [], []
        for side, value, axes in (("left", left, ("x", "k_across")), ("right", right, ("k_down", "r"))):
            writer = self.writer({axis: masks[axis] for axis in axes}, f"{side}_")
            writer.widens, writer.other = kind is None or kind.name not in HALVES, "0"
            term = writer.write(value)
            loop += writer.lines
            text = self._whole(term, axes, masks)
            is_other = kind is None and compute_type(self._loaded_type(value)) != element
            terms.append(f"{text}.to({element})" if is_other else text)
        held = {"tl.int8": "tl.int32", "tl.float64": "tl.float64"}.get(element, "tl.float32")
        options = f', input_precision="{self.precision}"' if element == "tl.float32" else ""
        loop.append(f"total = tl.dot({terms[0]}, {terms[1]}, total{options}, out_dtype={held})")
        epilogue = self.writer({"x": masks["x"], "r": masks["r"]})
        epilogue.name_axes("batch", ())
        place = product.place(self.batch, self.x, self.r)
        if self.parts > 1:
            self._write_sum(epilogue, *place)
        else:
            self.write_epilogue(epilogue, TOTAL, *place)
        self.launch.body = [
            *self._head(masks),
            f"total = tl.zeros([ROWS, COLUMNS], {held})",
            f"for start in range({self._depth_range()}, DEPTH):",
            *indented([*self._steps(masks), *loop]),
            *epilogue.lines,
        ]
        grid = [(product.rows, "ROWS"), (product.columns, "COLUMNS")]
        more = [(count, "") for count in (product.batch, self.parts) if count != 1]
        self.launch.grid = ((*grid, *more),)
        if epilogue.unfused:
            self.launch.options["enable_fp_fusion"] = False
        return self.finish()

    def _depth_range(self) -> str:
        """Return the start and the end of a program's part of the depth."""
        depth = size_text(self.product.depth)
        if self.parts == 1:
            return f"0, {depth}"
        return f"part * each_part, tl.minimum({depth}, (part + 1) * each_part)"

    def _write_sum(self, writer: StatementWriter, row: Expr, column: Expr) -> None:
        """Write the store of a part's sums."""
        rows, columns = self.group.domain
        count = as_size(rows * columns)
        pointer = self.scratch(self.sums_name, "sums_ptr", "*fp32", as_size(count * (4 * self.parts)))
        writer.name_axes("part", ())
        writer.store(pointer, Var("part", self.parts) * count + row * columns + column, TOTAL)

    def _loaded_type(self, value: Value) -> dtype:
        """Return the type of a factor in memory if it is only loaded, else of its value."""
        loads = [node for node in walk(value) if isinstance(node, Load)]
        return self.element_type(loads[0].buffer) if loads and loads[0].dtype is value.dtype else value.dtype

    def _whole(self, term: Term, axes: tuple[str, str], masks: dict[str, str]) -> str:
        """Return a factor's tile with its full extent, and zeros past the depth even if its elements do not depend on it."""
        shape = {"x": "ROWS", "r": "COLUMNS", "k_across": "DEPTH", "k_down": "DEPTH"}
        if term.axes == set(axes):
            return term.text
        step = next(axis for axis in axes if axis.startswith("k_"))
        text = f"tl.where({masks[step]}, {term.text}, 0)" if masks[step] and step not in term.axes else term.text
        return f"tl.broadcast_to({text}, [{shape[axes[0]]}, {shape[axes[1]]}])"

    def _masks(self) -> dict[str, str]:
        """Return the masks along all axes; none along sizes that all candidates' tiles divide."""
        product = self.product
        sizes = {"x": (product.rows, "ROWS"), "r": (product.columns, "COLUMNS")}
        sizes |= dict.fromkeys(("k_across", "k_down"), (product.depth, "DEPTH"))
        masks = {}
        for axis, (size, block) in sizes.items():
            masks[axis] = "" if self.launch.divides(size, block) else f"{axis}_mask"
        return masks

    def _head(self, masks: dict[str, str]) -> list[str]:
        """Return the lines that find a program's tile. Programs of several rows of tiles take turns along the columns."""
        product, kind = self.product, self.kind
        rows, columns = size_text(product.rows), size_text(product.columns)
        lines = [
            f"program = {program_text(kind)}",
            f"row_tiles = tl.cdiv({rows}, ROWS)",
            f"column_tiles = tl.cdiv({columns}, COLUMNS)",
        ]
        if self.parts > 1:
            batch = "" if product.batch == 1 else f" * ({size_text(product.batch)})"
            lines.append(f"tiles = row_tiles * column_tiles{batch}")
            lines += ["part = program // tiles", "program = program % tiles"]
            each = f"tl.cdiv({size_text(product.depth)}, {self.parts * PART_STEP}) * {PART_STEP}"
            lines.append(f"each_part = {each}")
        if product.batch != 1:
            lines += ["batch = program // (row_tiles * column_tiles)", "program = program % (row_tiles * column_tiles)"]
        return [
            *lines,
            f"first_row = program // ({TOGETHER} * column_tiles) * {TOGETHER}",
            f"height = tl.minimum(row_tiles - first_row, {TOGETHER})",
            f"inside = program % ({TOGETHER} * column_tiles)",
            f"x = {range_text('(first_row + inside % height) * ROWS', 'ROWS', kind, '[:, None]')}",
            f"r = {range_text('(inside // height) * COLUMNS', 'COLUMNS', kind, '[None, :]')}",
            *([f"x_mask = x < {rows}"] if masks["x"] else []),
            *([f"r_mask = r < {columns}"] if masks["r"] else []),
        ]

    def _steps(self, masks: dict[str, str]) -> list[str]:
        """Return the lines that set a block of the depth."""
        depth = size_text(self.product.depth)
        lines = [f"k_across = {range_text('start', 'DEPTH', self.kind, '[None, :]')}"]
        lines.append(f"k_down = {range_text('start', 'DEPTH', self.kind, '[:, None]')}")
        if masks["k_down"]:
            lines += [f"k_across_mask = k_across < {depth}", f"k_down_mask = k_down < {depth}"]
        return lines


def _with_product(product: Product) -> tuple[Size, ...]:
    """Return the counts that a product's indices stay below."""
    counted = (product.rows * product.columns, product.rows * product.depth, product.depth * product.columns)
    return tuple(as_size(count * product.batch) for count in counted)


class SumKernel(Epilogue):
    """Writes results that are sums over a few steps, without `tl.dot`: `body(row, column, step)` is what each step adds."""

    def __init__(
        self, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], steps: Size,
        body: Callable[[Expr, Expr, Expr], Value],
    ):  # fmt: skip
        super().__init__("sums", group, buffers, hints)
        self.steps = steps
        self.body = body

    def write(self) -> Launch:
        """Return the launch."""
        rows, columns = self.group.domain
        kind = self.index_type(self.group.numel)
        x, r = row_variables(self.group.domain)
        value = self.body(x, r, Var("step", self.steps))
        masks = {"x": "x_mask", "r": "r_mask"}
        writer = self.writer(masks, "each_")
        writer.name_axes("step", ())
        term = writer.typed(writer.write(value), value.dtype)
        total = self.writer(masks)
        self.write_epilogue(total, TOTAL, x, r)
        wide = f"{program_text(kind)} // column_tiles * ROWS"
        self.launch.body = [
            f"column_tiles = tl.cdiv({size_text(columns)}, COLUMNS)",
            f"x = {range_text(wide, 'ROWS', kind, '[:, None]')}",
            f"r = {range_text(f'{program_text(kind)} % column_tiles * COLUMNS', 'COLUMNS', kind, '[None, :]')}",
            f"x_mask = x < {size_text(rows)}",
            f"r_mask = r < {size_text(columns)}",
            f"total = tl.full([ROWS, COLUMNS], {literal(0, value.dtype)}, {compute_type(value.dtype)})",
            f"for step in range({size_text(self.steps)}):",
            *indented([*writer.lines, f"total += {operand_text(term)}"]),
            *total.lines,
        ]
        height, width = (min(SUM_BLOCK, next_power(evaluate(size, self.hints))) for size in (rows, columns))
        self.launch.choice = Choice({"ROWS": height, "COLUMNS": width})
        self.launch.candidates = [self.launch.choice]
        self.launch.grid = (((rows, "ROWS"), (columns, "COLUMNS")),)
        return self.finish()
