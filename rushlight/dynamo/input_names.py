"""Names of a graph's inputs, in PyTorch's format.

In: the source of a tensor. Out: its path in PyTorch's notation, `L['x']`, `G['table']` or
`L['self']._modules['linear']._parameters['weight']`, and a name made from it: `L_x_`, `G_table_`,
`L_self_modules_linear_parameters_weight_`. Stage: dynamo, capture.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from rushlight.dynamo.regions import only_calls_model
from rushlight.dynamo.sources import CLOSURE, GLOBALS, Content, FreeVariable, Global, Item, Local, Source
from rushlight.nn.modules.module import Module

_SEPARATORS = re.compile(r"[^a-zA-Z0-9]+")


class InputNames:
    """The names of the values that one frame reaches."""

    def __init__(self, frame: Any) -> None:
        self._free = frame.f_code.co_freevars
        self._called = _Called(frame.closure[0].cell_contents) if only_calls_model(frame.f_code) else None
        self._members: dict[str, Source] = {}

    def add_member(self, held: Source, place: Source) -> None:
        """Record where a module's member comes from that generated code holds under its own name."""
        self._members[held.text] = place

    def name(self, source: Source) -> str:
        """Return the name of an input: letters, digits and underscores."""
        name = _SEPARATORS.sub("_", self.path(source))
        return name if name[:1].isalpha() else f"L_{name.lstrip('_')}"

    def path(self, source: Source) -> str:
        """Return the path to a value."""
        place = self._members.get(source.text)
        if place is not None:
            return self.path(place)
        special = self._root_name(source)
        if special is not None:
            return special
        if source.base is None or not source.form.startswith("{}"):
            return source.label()
        return self.path(source.base) + source.form.removeprefix("{}").format(*_source_keys(source))

    def _root_name(self, source: Source) -> str | None:
        """Return the start of a path: a parameter, a closure variable or a global; None for other sources."""
        if self._called is not None:
            found = self._called.path(source)
            if found is not None:
                return found
        if isinstance(source, Local):
            return f"L[{source.key!r}]"
        if isinstance(source, Content) and isinstance(source.base, FreeVariable) and source.base.base == Local(CLOSURE):
            return f"L[{self._free[source.base.key]!r}]"
        if isinstance(source, Global) or (isinstance(source, Item) and source.base == Local(GLOBALS)):
            return f"G[{source.key!r}]"
        return None


def _source_keys(source: Source) -> tuple[Any, ...]:
    return () if source.key is None else (source.key,)


class _Called:
    """Names for the inputs of a frame that only calls a model: its arguments are named like the model's parameters."""

    def __init__(self, model: Callable) -> None:
        self._positional, self._named, self._rest, self._options = [], set(), "args", "kwargs"
        try:
            parameters = inspect.signature(model.forward if isinstance(model, Module) else model).parameters.values()
        except (TypeError, ValueError):  # builtins have no signature
            parameters = ()
        for each in parameters:
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
                self._positional.append(each.name)
            if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD):
                self._named.add(each.name)
            if each.kind is each.VAR_POSITIONAL:
                self._rest = each.name
            if each.kind is each.VAR_KEYWORD:
                self._options = each.name

    def path(self, source: Source) -> str | None:
        """Return the path of the model or of one of its parameters; None for anything else."""
        if isinstance(source, Content) and source.base == FreeVariable(0):
            return "L['self']"
        if not isinstance(source, Item):
            return None
        if source.base == Local("args"):
            beyond = source.key - len(self._positional)
            return f"L[{self._rest!r}][{beyond}]" if beyond >= 0 else f"L[{self._positional[source.key]!r}]"
        if source.base == Local("kwargs"):
            return f"L[{source.key!r}]" if source.key in self._named else f"L[{self._options!r}][{source.key!r}]"
        return None
