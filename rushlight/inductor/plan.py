"""Plans: all that calls of a compiled graph need besides native code: inputs, constants, memory, and the layout of results.

In: a kept plan's text, or a `Plan`. Out: the other one. Only plans of known sizes have a text. Stage: inductor, calling.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from rushlight.core.dtype import dtype, from_name
from rushlight.inductor.sizes import Size


class OutputView(NamedTuple):
    """A graph output: a strided view of a buffer, or a plain Python value. `is_whole`: the input or constant itself."""

    buffer: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    offset: Size
    value: object = None
    is_whole: bool = False


class Given(NamedTuple):
    """A tensor that a graph reads: an input, or a constant with the module's attribute name `target`."""

    name: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: dtype
    target: str = ""


class Plan(NamedTuple):
    """`folded`, `packed` and `outputs` hold sizes in bytes: of folded constants, of packed constants, and of the results'
    memory. `panel_bytes` is the memory for a run that packs constants itself, `passing_bytes` the scratch memory of packing."""

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
        """The number of program slots that stay the same between calls: constants, folded and packed ones, and `panels`."""
        return len(self.constants) + len(self.folded) + len(self.packed) + bool(self.packed)


# Text

_PLAIN = (type(None), bool, int, float, str)


def to_text(plan: Plan) -> str | None:
    """Return the plan as text; None if results hold values that have no text."""
    if not all(type(view.value) in _PLAIN for view in plan.views):
        return None
    return json.dumps([
        [_given_to_list(given) for given in plan.inputs], [_given_to_list(given) for given in plan.constants],
        plan.folded, plan.packed,
        plan.passing_bytes, plan.panel_bytes, plan.outputs, {name: kind.name for name, kind in plan.dtypes.items()},
        [[view.buffer, view.size, view.stride, view.offset, view.value, view.is_whole] for view in plan.views],
        plan.written, plan.is_long,
    ])  # fmt: skip


def from_text(text: str) -> Plan:
    """Read the text of `to_text`."""
    inputs, constants, folded, packed, passing_bytes, panel_bytes, outputs, kinds, views, written, is_long = json.loads(text)
    return Plan(
        inputs=tuple(_given_from_list(given) for given in inputs),
        constants=tuple(_given_from_list(given) for given in constants),
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
    """Return the text of a plan with other attribute names for the constants."""
    inputs, constants, *rest = json.loads(text)
    return json.dumps([inputs, [[*given, targets[target]] for *given, target in constants], *rest])


def _given_to_list(given: Given) -> list:
    return [given.name, given.size, given.stride, given.dtype.name, given.target]


def _given_from_list(listed: list) -> Given:
    name, size, stride, kind, target = listed
    return Given(name, tuple(size), tuple(stride), from_name(kind), target)
