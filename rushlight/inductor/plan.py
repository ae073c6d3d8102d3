"""What calls of a compiled graph need besides its native code: inputs, constants, memory, and how results lie in it.

In: a lowered graph and its program; or the text of a plan that was kept. Out: a `Plan`; or its text, where all sizes are known.
Stage: inductor, calling.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from rushlight.core.dtype import dtype, from_name
from rushlight.inductor.sizes import Size, as_size, product

if TYPE_CHECKING:
    from rushlight.inductor.codegen.program import Program
    from rushlight.inductor.graph import LoweredGraph
    from rushlight.inductor.ir import Buffer

# Steps of loops from which on other threads get the interpreter meanwhile: letting go of it costs what some thousand take.
LONG_WORK = 20_000


class OutputView(NamedTuple):
    """A graph output: a strided view of a buffer, or a plain Python value. `is_whole`: an input or constant as it is."""

    buffer: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    offset: Size
    value: object = None
    is_whole: bool = False


class Given(NamedTuple):
    """A tensor that a graph reads: an input, or a constant, which is the module's attribute `target`."""

    name: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: dtype
    target: str = ""


class Plan(NamedTuple):
    """`folded` and `packed` are the bytes of what is made of constants, `outputs` those of the memory that results lie in.

    `panel_bytes` is the memory that a run needs which packs constants itself, and `passing_bytes` what packing them needs.
    """

    inputs: tuple[Given, ...]
    constants: tuple[Given, ...]
    folded: tuple[int, ...]
    packed: tuple[int, ...]
    passing_bytes: int
    panel_bytes: int
    outputs: dict[str, Size]
    dtypes: dict[str, dtype]
    views: tuple[OutputView, ...]
    written: tuple[int, ...] = ()
    is_long: bool = False

    @property
    def kept(self) -> int:
        """How many of the program's slots stay the same from call to call: constants, what is made of them, and `panels`."""
        return len(self.constants) + len(self.folded) + len(self.packed) + bool(self.packed)


def plan_of(lowered: LoweredGraph, program: Program) -> Plan:
    """The plan of a graph."""
    buffers = {buffer.name: buffer for buffer in lowered.buffers}
    names = [buffer.name for buffer in lowered.inputs]
    return Plan(
        inputs=tuple(map(_given, lowered.inputs)),
        constants=tuple(map(_given, program.constants)),
        folded=tuple(map(_bytes_of, program.folded)),
        packed=tuple(operand.nbytes for operand in program.packed),
        passing_bytes=program.passing_bytes,
        panel_bytes=program.panel_bytes,
        outputs={name: _bytes_of(buffers[name]) for name in program.outputs},
        dtypes={view.buffer: buffers[view.buffer].layout.dtype for view in lowered.outputs if view.buffer},
        views=tuple(lowered.outputs),
        written=tuple(names.index(write.target) for write in lowered.writes),
        is_long=_is_long(program),
    )


def _given(buffer: Buffer) -> Given:
    layout = buffer.layout
    return Given(buffer.name, tuple(layout.size), tuple(layout.stride), layout.dtype, getattr(buffer, "target", ""))


def _bytes_of(buffer: Buffer) -> Size:
    return as_size(buffer.layout.numel * buffer.layout.dtype.itemsize)


def work_of(program: Program) -> Size | None:
    """How many steps a program takes; None where templates make it many."""
    groups = [group for group in program.groups if not group.constant]
    if any(group.template is not None for group in groups):
        return None
    return as_size(sum(product(group.domain or (group.numel,)) * len(group.members) for group in groups))


def _is_long(program: Program) -> bool:
    """Whether a program of fixed sizes runs so long that other threads should go on meanwhile."""
    work = work_of(program)
    return not isinstance(work, int) or work > LONG_WORK


# Text

_PLAIN = (type(None), bool, int, float, str)


def to_text(plan: Plan) -> str | None:
    """The plan as text; None where results hold values that no text says."""
    if not all(type(view.value) in _PLAIN for view in plan.views):
        return None
    return json.dumps([
        [_listed(given) for given in plan.inputs], [_listed(given) for given in plan.constants], plan.folded, plan.packed,
        plan.passing_bytes, plan.panel_bytes, plan.outputs, {name: kind.name for name, kind in plan.dtypes.items()},
        [[view.buffer, view.size, view.stride, view.offset, view.value, view.is_whole] for view in plan.views],
        plan.written, plan.is_long,
    ])  # fmt: skip


def from_text(text: str) -> Plan:
    """What `to_text` wrote."""
    inputs, constants, folded, packed, passing_bytes, panel_bytes, outputs, kinds, views, written, is_long = json.loads(text)
    return Plan(
        inputs=tuple(_read(given) for given in inputs),
        constants=tuple(_read(given) for given in constants),
        folded=tuple(folded),
        packed=tuple(packed),
        passing_bytes=passing_bytes,
        panel_bytes=panel_bytes,
        outputs=outputs,
        dtypes={name: from_name(kind) for name, kind in kinds.items()},
        views=tuple(
            OutputView(buffer, tuple(size), tuple(stride), offset, value, whole)
            for buffer, size, stride, offset, value, whole in views
        ),
        written=tuple(written),
        is_long=is_long,
    )


def with_targets(text: str, targets: dict[str, str]) -> str:
    """The text of the same plan for a module in which constants are attributes of other names."""
    inputs, constants, *rest = json.loads(text)
    return json.dumps([inputs, [[*given, targets[target]] for *given, target in constants], *rest])


def _listed(given: Given) -> list:
    return [given.name, given.size, given.stride, given.dtype.name, given.target]


def _read(listed: list) -> Given:
    name, size, stride, kind, target = listed
    return Given(name, tuple(size), tuple(stride), from_name(kind), target)
