"""check_trace: run a program and its trace again on the same inputs, trace it again, and report differences.

In: a program, its trace, and inputs. Out: nothing; TracerWarning for differing results, TracingCheckError for differing graphs.
"""

from __future__ import annotations

import copy
import difflib
import warnings

from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.ir.printer import graph_text, node_text
from rushlight.jit.operators.registry import RANDOM
from rushlight.jit.tracing.warning import TracerWarning
from rushlight.jit.types.kinds import TensorType
from rushlight.jit.types.relations import unshaped
from rushlight.ops.construct import tensor
from rushlight.testing import assert_close

_UNTRACEABLE = (
    "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer has "
    "encountered untraceable code."
)
_SAME_CONSTANT = (
    "Node:\n{node}\nSource Location:\n{place}\nComparison exception: {error}"
)


class TracingCheckError(Exception):
    """Tracing again gave a different graph: it depends on the values of example inputs, or on chance."""

    def __init__(self, graph_difference: str | None, constants: str | None):
        lines = ["Tracing failed sanity checks!"]
        if graph_difference is not None:
            lines.append("ERROR: Graphs differed across invocations!")
            lines.append(f"\tGraph diff:\n{_indent(graph_difference)}")
        if constants is not None:
            lines.append(_UNTRACEABLE)
            lines.append(_indent(constants))
        super().__init__("\n".join(lines))


def _indent(text: str) -> str:
    return "\n".join("\t\t" + line for line in text.splitlines())


def cloned(value: object) -> object:
    """Return a copy of example inputs with new tensors."""
    if isinstance(value, Tensor):
        made = value.detach().clone()
        return made.requires_grad_(value.requires_grad) if value.requires_grad else made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(cloned, value))
    if isinstance(value, list | tuple):
        return type(value)(map(cloned, value))
    if isinstance(value, dict):
        return {key: cloned(item) for key, item in value.items()}
    return copy.deepcopy(value)


def compare_graphs(first: Graph, second: Graph) -> None:
    """Raise TracingCheckError unless two graphs, inlined, are the same."""
    texts = [_without_numbers(graph) for graph in (first, second)]
    if texts[0] != texts[1]:
        lines = [text.splitlines(keepends=True) for text in texts]
        raise TracingCheckError("".join(difflib.ndiff(*lines)), None)
    for one, other in zip(first.all_nodes(), second.all_nodes(), strict=True):
        if one.kind == "prim::Constant" and isinstance(one.attributes.get("value"), Tensor):
            try:
                assert_close(one["value"], other["value"], equal_nan=True)
            except (AssertionError, RuntimeError) as error:
                place = one.source_range.highlight().rstrip()
                details = _SAME_CONSTANT.format(node=node_text(one), place=place, error=error)
                raise TracingCheckError(None, details) from None


def _without_numbers(graph: Graph) -> str:
    """Return a graph's text with renumbered values and without shapes, because the program may have changed its inputs'
    shapes.
    """
    copied = graph.copy()
    for node in [copied.block.param, *copied.all_nodes()]:
        for value in node.outputs:
            copied.names.release(value)
            if isinstance(value.type, TensorType):
                value.set_type(unshaped(value.type))
    renamed = copied.copy()
    return graph_text(renamed, show_ranges=False)


def _to_comparable(tensor: Tensor) -> Tensor:
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor if tensor.is_complex() else tensor.double()


def compare_results(
    expected: object, actual: object, graph: Graph, tolerance: float, has_warned: list[bool], what: str
) -> None:
    """Warn about differing results, and about random operators, which may explain them."""
    originals, references = list(_tensors(expected)), list(_tensors(actual))
    if len(originals) != len(references):
        message = f"the trace gives {len(references)} tensors, the {what} {len(originals)}"
        warnings.warn(message, TracerWarning, stacklevel=5)
        return
    for index, (original, reference) in enumerate(zip(originals, references, strict=True)):
        try:
            assert_close(_to_comparable(reference), _to_comparable(original), rtol=tolerance, atol=1e-5, equal_nan=True)
        except AssertionError as error:
            _warn_of_chance(graph, has_warned)
            warnings.warn(
                f"Output nr {index + 1}. of the traced function does not match the corresponding output of the {what}. "
                f"Detailed error:\n{error}", TracerWarning, stacklevel=5,
            )  # fmt: skip
            return


def _warn_of_chance(graph: Graph, has_warned: list[bool]) -> None:
    random = [node for node in graph.all_nodes() if _is_random(node)]
    if has_warned[0] or not random:
        return
    has_warned[0] = True
    shown = "\n".join("\t" + node_text(node) for node in random[:20])
    warnings.warn(
        f"Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n{shown}\nThis may cause errors "
        "in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()",
        TracerWarning, stacklevel=6,
    )  # fmt: skip


def _is_random(node: Node) -> bool:
    if node.kind.endswith("dropout"):
        return node.input(2).constant() is not False
    return node.kind.removeprefix("aten::").removesuffix("_") in RANDOM


def _tensors(value: object):
    """The tensors in a result; numbers are sizes, which traces return as 0-dim tensors."""
    if isinstance(value, Tensor):
        yield value.detach()
    elif isinstance(value, int | float):
        yield tensor(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _tensors(value[key])
