"""External calls: jit operators that a structured program calls in Python, because they have no native form or are random.

In: a node, and what is known about its arguments. Out: an `External`. Result types are found by running it on ones. Random
numbers come from the library's generator, in the interpreter's order.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.regions import Unsupported, function_of
from rushlight.core.tensor import Tensor
from rushlight.inductor.structured import External, Scalar, TensorOf, Var
from rushlight.jit.ir.graph import Node
from rushlight.jit.operators.lookup import operator_of, writes
from rushlight.jit.operators.registry import RANDOM
from rushlight.jit.types.kinds import TensorType
from rushlight.ops.packet import find_packet
from rushlight.random import fork_rng

_WHOLE = {"int": 1, "float": 1.0, "bool": True}


def is_random(node: Node) -> bool:
    """Return whether a node draws random numbers; dropout known to be off does not."""
    if node.kind.removeprefix("aten::") not in RANDOM or writes(node):
        return False
    return not (node.kind.endswith("dropout") and node.input(2).constant() is False)


def may_be_external(node: Node) -> bool:
    """Return whether a program may call a node in Python: an operator on tensors and numbers, with tensors as results."""
    values = [*node.inputs, *node.outputs]
    has_lists = any(isinstance(part, TensorType) for value in values for part in value.type.contained())
    return operator_of(node) is not None and not has_lists and not writes(node)


def external_call(node: Node, found: Sequence[object]) -> External:
    """Return the call for a node with arguments `found`: variables, or known values. Unsupported if it fails on ones."""
    if not may_be_external(node) or not all(isinstance(value.type, TensorType) for value in node.outputs):
        raise Unsupported(f"{node.kind}, which only the interpreter runs")
    function = function_of(node)
    fixed = [None if isinstance(each, Var) else each.value for each in found]
    places = [place for place, each in enumerate(found) if isinstance(each, Var)]

    def run(*values: object) -> Sequence[Tensor]:
        arguments = list(fixed)
        for place, value in zip(places, values, strict=True):
            arguments[place] = value
        result = function(*arguments)
        return (result,) if len(node.outputs) == 1 else result

    kinds = tuple(found[place].kind for place in places)
    results = _results_on_ones(node, run, kinds)
    return External(node.kind, run, kinds, tuple(TensorOf(each._impl.dtype, tuple(each._impl.sizes)) for each in results))


def _results_on_ones(node: Node, run, kinds: Sequence[Scalar | TensorOf]) -> Sequence[Tensor]:
    """Run the operator on tensors of ones, to find the types of its results."""
    ones = find_packet("aten::ones")
    examples = [
        ones(list(kind.size), dtype=kind.dtype) if isinstance(kind, TensorOf) else _WHOLE[kind.name] for kind in kinds
    ]  # fmt: skip
    try:
        with fork_rng(devices=[]):
            return run(*examples)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise Unsupported(f"{node.kind} fails: {error}") from error
