"""Captured graphs whose Python numbers become inputs.

In: a graph that was captured with Python numbers. Out: what it does without these numbers, the numbers, and a run of the graph
with tensors in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.compiler.open_numbers import open_form_in_graphs
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node


class OpenNumbers(Interpreter):
    """Runs a graph with other numbers, or tensors in place of them."""

    def __init__(self, module: GraphModule, numbers: Iterator[Tensor | float]):
        super().__init__(module)
        self._numbers = numbers

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run an operator."""
        function = open_form_in_graphs(target)
        if function is None:
            return super().call_function(target, args, kwargs)
        opened = [next(self._numbers) if type(value) is float else value for value in args]
        return function(*opened, **{
            name: next(self._numbers) if type(value) is float else value for name, value in kwargs.items()
        })  # fmt: skip


def numbers_of(module: GraphModule) -> list[float]:
    """Return the numbers of a graph that may be tensors, in the order in which they are read."""
    return [
        value for node in module.graph.nodes if node.op == "call_function" and open_form_in_graphs(node.target) is not None
        for value in (*node.args, *node.kwargs.values()) if type(value) is float
    ]  # fmt: skip


def form_of(module: GraphModule) -> tuple:
    """Return what a graph does, without the numbers that may be tensors."""
    places: dict[Node, int] = {}
    form = []
    for node in module.graph.nodes:
        is_open = node.op == "call_function" and open_form_in_graphs(node.target) is not None
        facts = [_fact(value, places, is_open) for value in (*node.args, *node.kwargs.values())]
        form.append((node.op, node.target, tuple(node.kwargs), repr(facts)))
        places[node] = len(places)
    return tuple(form)


def _fact(value: object, places: dict[Node, int], is_open: bool) -> object:
    if isinstance(value, Node):
        return "node", places[value]
    if isinstance(value, list | tuple):
        return [_fact(item, places, is_open) for item in value]
    return "number" if is_open and type(value) is float else (type(value).__name__, value)
