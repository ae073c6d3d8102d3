"""Products of matrices as Triton kernels, with elementwise loops as epilogue.

A product is given by the values of its factors' elements, so that batched products, convolutions and their gradients share one
kernel: their factors only load at other places, and nothing outside of an image. Programs take tiles of results and pass over
the depth in blocks. Factors of 16-bit floats are multiplied in their own type and summed in float32. If there are too few tiles
for a device, programs share the depth of a tile, and a second kernel adds their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import dtype, float32
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term, operand_text
from rushlight.inductor.codegen.triton.kernels import Choice, Launch, LaunchWriter, Limits, indented, program_text, range_text
from rushlight.inductor.codegen.triton.loops import next_power
from rushlight.inductor.codegen.triton.types import HALVES, compute_type, literal, memory_type, size_text
from rushlight.inductor.ir import Buffer, Load, Value, contiguous_layout, substitute, walk
from rushlight.inductor.scheduler import Group, body_in_domain, element_index, row_variables
from rushlight.inductor.sizes import Size, as_size, evaluate

MIN_SIDE = 16  # the least height, width and depth of a tile
TOGETHER = 8  # rows of tiles whose programs run together, so that they share loads
SUM_BLOCK = 32
FEW_RESULTS = 64 * 64  # tiles of at most this size take four warps
LARGE_SIDE = 128  # rows and columns of a tile that keeps a multiprocessor busy
MIN_PART = 512  # the depth of a part that is worth a program
PART_STEP = 256  # a part's depth is a multiple of this, and so of the depths of blocks


class Tile(NamedTuple):
    """The height and width of a tile of results, the depth of a block in bytes, warps, and stages of loads ahead."""

    height: int
    width: int
    depth: int
    warps: int
    stages: int


TILES = (
    Tile(128, 256, 128, 8, 3), Tile(256, 128, 128, 8, 3), Tile(128, 128, 128, 8, 3), Tile(128, 128, 128, 4, 3),
    Tile(128, 128, 64, 4, 4), Tile(128, 64, 128, 4, 3), Tile(64, 128, 128, 4, 3), Tile(64, 64, 128, 4, 4),
    Tile(64, 32, 128, 4, 4), Tile(32, 64, 128, 4, 4), Tile(32, 32, 256, 4, 4), Tile(16, 32, 256, 4, 4), Tile(16, 16, 256, 4, 4),
)  # fmt: skip
SMALL_TILES = (Tile(64, 64, 128, 4, 2), Tile(32, 32, 128, 4, 2), Tile(16, 16, 128, 4, 2))  # for 64-bit numbers


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
    parts = _parts_of(product, hints, limits)
    first = ProductKernel(group, buffers, hints, product, precision, limits, parts)
    if parts == 1:
        return [first.write()]
    rows, columns = group.domain
    name = first.sums_name
    sums = Buffer(name, contiguous_layout(float32, (parts, rows, columns)))

    def body(row: Expr, column: Expr, step: Expr) -> Load:
        return Load(float32, name, step * (rows * columns) + row * columns + column)

    made = [first.write(), SumKernel(group, {**buffers, name: sums}, hints, parts, body).write()]
    made[1].scratch = made[0].scratch
    return made


def _parts_of(product: Product, hints: Mapping[Var, int], limits: Limits) -> int:
    """Return the number of programs that share the depth of a tile."""
    zero = as_expr(0)
    kinds = {product.left(zero, zero, zero).dtype, product.right(zero, zero, zero).dtype}
    if not all(kind.is_floating_point and kind.itemsize <= float32.itemsize for kind in kinds):
        return 1
    rows, columns, depth, batch = (
        evaluate(size, hints) for size in (product.rows, product.columns, product.depth, product.batch)
    )  # fmt: skip
    tiles = -(-rows // LARGE_SIDE) * -(-columns // LARGE_SIDE) * batch
    most = min(limits.processors // max(tiles, 1), depth // MIN_PART)
    return 1 << max(most, 1).bit_length() - 1


class ProductKernel(Epilogue):
    """Writes a product by `tl.dot`. `precision` is how float32 factors are multiplied: "ieee" or "tf32". With several `parts`
    the kernel stores a sum for each part of the depth, instead of results."""

    def __init__(
        self, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], product: Product, precision: str,
        limits: Limits, parts: int,
    ):  # fmt: skip
        super().__init__("product", group, buffers, hints)
        self.limits = limits
        self.parts = parts
        self.sums_name = f"sums_{group.template.name}"
        self.product = product
        self.precision = precision
        self.x, self.r = Var("x", product.rows), Var("r", product.columns)
        self.across, self.down = Var("k_across", product.depth), Var("k_down", product.depth)
        self.batch = as_expr(0) if product.batch == 1 else Var("batch", product.batch)

    def write(self) -> Launch:
        """Return the launch."""
        product = self.product
        self.kind = self.index_type(*_with_product(product), as_size(self.group.numel * self.parts))
        left, right = product.left(self.batch, self.x, self.across), product.right(self.batch, self.down, self.r)
        kinds = {self._loaded_type(left), self._loaded_type(right)}
        kind = kinds.pop() if len(kinds) == 1 else None
        element = "tl.float32" if kind is None else memory_type(kind)
        self.launch.choice, self.launch.candidates = self._choices(4 if kind is None else kind.itemsize)
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

    def _tiles(self, itemsize: int) -> tuple[Tile, ...]:
        """Return the tiles for factors of a size. Without matrix instructions, factors take registers, too."""
        if itemsize == 8:
            return SMALL_TILES
        return TILES if itemsize < 4 or self.precision == "tf32" else TILES[2:]

    def _choices(self, itemsize: int) -> tuple[Choice, list[Choice]]:
        """Return the default choice and all candidates. The default is the first one that keeps all multiprocessors busy, and
        whose blocks fit in shared memory."""
        product = self.product
        sizes = [evaluate(size, self.hints) for size in (product.rows, product.columns, product.depth, product.batch)]
        rows, columns, depth = (max(MIN_SIDE, next_power(size)) for size in sizes[:3])
        made = {}
        for tile in self._tiles(itemsize):
            height, width = min(tile.height, rows), min(tile.width, columns)
            block = min(tile.depth // itemsize, max(depth, 32 if itemsize == 1 else MIN_SIDE))
            warps = tile.warps if height * width > FEW_RESULTS else 4
            choice = Choice({"ROWS": height, "COLUMNS": width, "DEPTH": block}, warps, tile.stages)
            made.setdefault((height, width, block, choice.warps), choice)
        found = list(made.values())
        fitting = [choice for choice in found if _shared_bytes(choice, itemsize) <= self.limits.shared] or found[-1:]
        enough = [choice for choice in fitting if _programs(sizes, choice) * self.parts >= self.limits.processors]
        return (enough or fitting[-2:])[0], found


def _with_product(product: Product) -> tuple[Size, ...]:
    """Return the counts that a product's indices stay below."""
    counted = (product.rows * product.columns, product.rows * product.depth, product.depth * product.columns)
    return tuple(as_size(count * product.batch) for count in counted)


def _shared_bytes(choice: Choice, itemsize: int) -> int:
    """Return the bytes of the factors' blocks that are loaded ahead."""
    height, width, depth = (choice.constants[name] for name in ("ROWS", "COLUMNS", "DEPTH"))
    return (height + width) * depth * itemsize * choice.stages


def _programs(sizes: list[int], choice: Choice) -> int:
    rows, columns, _, batch = sizes
    return -(-rows // choice.constants["ROWS"]) * -(-columns // choice.constants["COLUMNS"]) * batch


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
