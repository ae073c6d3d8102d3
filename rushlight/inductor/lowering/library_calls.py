"""Library calls: operators as calls of hand-written functions over whole buffers; `library_call` makes the templates.

In: boxes, which are made row-major, and numbers. Out: a box for each result, each in its own buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.core.dtype import dtype
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Operand, TemplateBuffer, contiguous_layout
from rushlight.inductor.lowering.builder import GraphBuilder, as_parameter
from rushlight.inductor.sizes import as_size, as_sizes
from rushlight.inductor.tensor_box import StorageBox, TensorBox

Sizes = Sequence[int | SymInt]


@dataclass(frozen=True)
class Function:
    """A function of a native header. The function `scratch` computes the scratch bytes per thread from the call's numbers at
    the positions `scratch_of`. With `reports` it may report failure. In both names `{type}` stands for the element type."""

    header: str
    name: str
    scratch: str = ""
    scratch_of: tuple[int, ...] = ()
    reports: bool = False


def library_call(
    graph: GraphBuilder, function: Function, kind: dtype, operands: Sequence[TensorBox], results: Sequence[tuple[Sizes, dtype]],
    numbers: Sequence[object], work: int | SymInt,
) -> list[TensorBox]:  # fmt: skip
    """Return the boxes of a call's results. `kind` instantiates the function's C++ template; `work` counts its operations."""
    given = {f"in{place}": in_one_piece(graph, box) for place, box in enumerate(operands)}
    first, made = "", []
    for place, (size, element) in enumerate(results):
        if place == 0:
            parameters = {
                "function": function.name, "type": kind, "header": function.header, "place": 0,
                "numbers": tuple(map(as_parameter, numbers)),
                "results": len(results), "scratch": function.scratch, "scratch_of": function.scratch_of,
                "reports": function.reports, "work": as_size(work),
            }  # fmt: skip
            buffer = _make_template(graph, "library", given, size, element, parameters)
            first = buffer.name
        else:
            buffer = _make_template(graph, "further_result", {"of": Operand(first, 0, ())}, size, element, {"place": place})
        made.append(TensorBox(StorageBox(None, buffer), size, element))
    return made


def _make_template(
    graph: GraphBuilder, kind: str, operands: dict[str, Operand], size: Sizes, element: dtype, parameters: dict
) -> TemplateBuffer:  # fmt: skip
    layout = contiguous_layout(element, as_sizes(size))
    buffer = TemplateBuffer(
        graph.fresh_name(), layout, graph.lines, kind=kind, operands=operands, parameters=parameters, rows=1,
        columns=layout.numel, origin=graph.origin,
    )  # fmt: skip
    return graph.add(buffer)


def in_one_piece(graph: GraphBuilder, box: TensorBox) -> Operand:
    """Return the box as a dense row-major operand; copies if necessary."""
    return graph.row_major_operand(box) or graph.row_major_operand(graph.copy(box))


def transposed(box: TensorBox) -> TensorBox:
    """Transpose the last two dimensions."""
    *batch, rows, columns = box.size
    return box.view((*batch, columns, rows), lambda index: [*index[:-2], index[-1], index[-2]])
