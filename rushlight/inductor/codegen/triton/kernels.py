"""Writes one group as one Triton kernel, or as a few that follow each other.

A kernel is a function over pointers: it reads `in_ptr0, in_ptr1, ...` and writes `out_ptr0, ...`. Its text names no buffers of
the graph, so groups with the same computation share one function. A `Launch` says how to call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rushlight.core.algebra import Expr, Var
from rushlight.inductor.codegen.parameters import BufferParameters
from rushlight.inductor.codegen.triton.expressions import Places, StatementWriter
from rushlight.inductor.codegen.triton.types import LIMIT, pointer_type
from rushlight.inductor.ir import Buffer
from rushlight.inductor.origins import origins_of
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import Size, as_size, evaluate

STATUS = "<status>"  # the buffer in which kernels report errors: one int32, not 0 after an error
INDEX = "INDEX"  # the constant that gives the bits of indices
MAX_NAMED = 5  # operators in a kernel's name
MAX_NAME = 80  # letters of a kernel's name

# One axis of a grid: the product of these factors, each a size divided by a constant of the kernel, rounded up. An empty name
# stands for 1.
Axis = tuple[tuple[Size, str], ...]


@dataclass(frozen=True)
class Choice:
    """Constants of a kernel, and how its programs run: `warps` of 32 threads, and `stages` of loads ahead in loops."""

    constants: dict[str, int]
    warps: int = 4
    stages: int = 2


@dataclass(frozen=True)
class Limits:
    """What a device has: bytes of shared memory that a program may take, and multiprocessors. The defaults are the least of
    devices since 2020, and an H100's."""

    shared: int = 99 << 10
    processors: int = 132


@dataclass
class Launch:
    """A kernel and its call. `arguments` are buffers and sizes, in the order of `parameters`, which name them with their types.

    `grid` gives the numbers of programs from the constants. `choice` is the default; `candidates` are worth timing on a device.
    `options` go to Triton's compiler. `scratch` are buffers with their bytes that only this group of launches uses. If any of
    `open`, which are sizes, exceeds 32 bits, the constant INDEX is 64, else 32; without `open` there is no such constant.
    A launch that combines others has them as `members`, and as many programs as all of them.
    """

    kind: str
    group: Group
    parameters: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[str | Size] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    grid: tuple[Axis, ...] = ()
    choice: Choice = field(default_factory=lambda: Choice({}))
    candidates: list[Choice] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    scratch: dict[str, Size] = field(default_factory=dict)
    open: list[Size] = field(default_factory=list)
    members: list[Launch] = field(default_factory=list)
    kernel: str = ""

    def text(self, name: str) -> str:
        """Return the kernel's definition."""
        constants = [f"{constant}: tl.constexpr" for constant in (*self.choice.constants, *([INDEX] if self.open else []))]
        head = ", ".join([*(name for name, _ in self.parameters), *constants])
        body = "\n".join(f"    {line}" for line in self.body)
        return f"@triton.jit\ndef {name}({head}):\n{body}"

    def constants(self, values: Mapping[Var, int], choice: Choice | None = None) -> dict[str, int]:
        """Return the kernel's constants for these values of the size symbols, with its choice unless another is given."""
        chosen = (choice or self.choice).constants
        is_wide = any(evaluate(size, values) >= LIMIT for size in self.open)
        return {**chosen, INDEX: 64 if is_wide else 32} if self.open else dict(chosen)

    def divides(self, size: Size, constant: str) -> bool:
        """Return whether a constant divides a size in all candidates, so that no mask is needed."""
        return isinstance(size, int) and all(size % choice.constants[constant] == 0 for choice in self.candidates)

    def title(self) -> str:
        """Return the kernel's name without its number."""
        names = [re.sub(r"_\d+$", "", origin) for origin in self.group.origins()]
        shown = "_".join([self.kind, *list(dict.fromkeys(names))[:MAX_NAMED]])
        return re.sub(r"\W", "_", shown)[:MAX_NAME].rstrip("_")


class LaunchWriter(BufferParameters):
    """Base of all kernel writers."""

    READ, WRITTEN = "in_ptr", "out_ptr"

    def __init__(self, kind: str, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int]):
        """`hints` gives an example's value for each size symbol of the graph."""
        super().__init__(buffers)
        self.hints = hints
        self.group = group
        self.member: Buffer = group.members[0]
        self.launch = Launch(kind, group)

    def origins(self) -> tuple[str, ...]:
        """Return the graph's nodes behind the member that is being written, for errors."""
        return origins_of(self.member)

    def add_pointer(self, parameter: str, name: str, write: bool) -> None:
        """Add a parameter to the kernel."""
        self._add(parameter, pointer_type(self.element_type(name)), name)

    def _add(self, parameter: str, kind: str, argument: str | Size) -> str:
        self.launch.parameters.append((parameter, kind))
        self.launch.arguments.append(argument)
        return parameter

    def scratch(self, name: str, parameter: str, kind: str, nbytes: Size) -> str:
        """Add a parameter for memory that only this group uses."""
        self.launch.scratch[name] = nbytes
        return self._add(parameter, kind, name)

    def status(self) -> str:
        """Return the parameter for the buffer of errors."""
        if STATUS not in self.launch.arguments:
            self._add("status_ptr", "*i32", STATUS)
        return "status_ptr"

    def places(self) -> Places:
        """Return what statements refer to."""
        return Places(self.pointer, self.element_type, self.status, self.origins)

    def writer(self, masks: dict[str, str], prefix: str = "tmp") -> StatementWriter:
        """Return a writer of statements."""
        return StatementWriter(self.places(), masks, prefix)

    def finish(self) -> Launch:
        """Add the size symbols that the text names as parameters."""
        words = set(re.findall(r"\w+", "\n".join(self.launch.body)))
        symbols = [symbol for symbol in self.hints if symbol.name in words]
        for symbol in symbols:
            self._add(symbol.name, "i64", symbol)
        if self.launch.open:
            self.launch.open = list(dict.fromkeys([*self.launch.open, *symbols]))
            narrowed = [f"{symbol.name} = {index_text(symbol.name, INDEX)}" for symbol in symbols]
            self.launch.body = [*narrowed, *self.launch.body]
        return self.launch

    def index_type(self, *extents: Size) -> str:
        """Return the type of all indices, "tl.int32" if they fit, else "tl.int64". With open sizes the kernel is compiled for
        both: then the type is INDEX, a constant of the kernel that is 32 or 64."""
        names = self.group.names | self.group.reads()
        reach = [extent_of(self.buffers[name]) for name in names if name in self.buffers]
        sizes = (*reach, *extents, self.group.numel)
        if any(isinstance(size, int) and size >= LIMIT for size in sizes):
            return "tl.int64"
        self.launch.open = list(dict.fromkeys(size for size in sizes if not isinstance(size, int)))
        return INDEX if self.launch.open else "tl.int32"


def extent_of(buffer: Buffer) -> Size:
    """Return the number of elements from a buffer's first to its last."""
    layout = buffer.layout
    reach: Size = 1
    for size, stride in zip(layout.size, layout.stride, strict=True):
        reach = as_size(reach + (size - 1) * stride)
    return reach if isinstance(reach, Expr) else max(reach, 0)


def range_text(start: str, block: str, kind: str, spread: str = "") -> str:
    """Return the text of a block of indices."""
    return f"{start} + {index_text(f'tl.arange(0, {block}){spread}', kind)}"


def program_text(kind: str, axis: int = 0) -> str:
    """Return the text of a program's number."""
    return index_text(f"tl.program_id({axis})", kind)


def index_text(text: str, kind: str) -> str:
    """Return an integer's text, converted to the type of indices unless that is the type of 32 bits."""
    if kind == INDEX:
        return f"as_index({text}, {INDEX})"
    return text if kind == "tl.int32" else f"{text}.to({kind})"


def indented(lines: list[str], levels: int = 1) -> list[str]:
    """Indent lines by four blanks per level."""
    return [f"{'    ' * levels}{line}" for line in lines]
