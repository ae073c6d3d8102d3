"""The node of an operator with a row in the derivative table: what it saves, and how it evaluates the formulas."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.derivative_table import Derivative, Formula
from rushlight.autograd.node import NO_EDGE, Edge, Node, geometry_of
from rushlight.autograd.saved_tensor import FREED, SavedTensor, keeps_tensors, save, unpack
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.schema import FunctionSchema

_FROM_BACKWARD = ("grad", "grads", "needs")


class Recipe:
    """What the formulas of an operator need, worked out once: positions of inputs, and per formula what to save."""

    __slots__ = ("op", "derivative", "inputs", "saved_inputs", "saved_outputs")

    def __init__(self, op: OpOverload, derivative: Derivative):
        schema = op._schema
        self.op = op
        self.derivative = derivative
        self.inputs = tuple(tuple(schema.positions[name] for name in f.inputs) for f in derivative.formulas)
        self.saved_inputs = tuple(_inputs_named(formula, schema) for formula in derivative.formulas)
        self.saved_outputs = tuple(
            tuple((name, int(name[6:] or 0)) for name in formula.names if name.startswith("result"))
            for formula in derivative.formulas
        )


def _inputs_named(formula: Formula, schema: FunctionSchema) -> tuple[tuple[str, int, Callable], ...]:
    """(name, position, how to keep it) for each input that the formula's parameters name."""
    found = []
    for name in formula.names:
        plain, _, kind = name.rpartition("_")
        if name in schema.positions:
            found.append((name, schema.positions[name], save))
        elif kind in _FACTS and plain in schema.positions:
            found.append((name, schema.positions[plain], _FACTS[kind]))
        elif name not in _FROM_BACKWARD and not name.startswith("result"):
            raise ValueError(f"derivative of {schema}: a formula asks for {name!r}, which is no input, result or fact of one")
    return tuple(found)


def _sizes(value: object) -> object:
    if isinstance(value, Tensor):
        return value._impl.sizes
    return [item._impl.sizes for item in value] if isinstance(value, list | tuple) else ()


_FACTS = {
    "sizes": _sizes,
    "dtype": lambda value: getattr(value, "dtype", None),
    "geometry": lambda value: geometry_of(value._impl),
}


def _add_edges(value: object, edges: list[Edge]) -> bool | list[bool]:
    """Append the edges of an input, and tell whether they lead anywhere: one answer, or a list of them for a list."""
    if isinstance(value, list | tuple):
        return [_add_edges(item, edges) for item in value]
    edge = gradient_edge(value) if isinstance(value, Tensor) else NO_EDGE
    edges.append(edge)
    return edge[0] is not None


class OperatorBackward(Node):
    """Evaluates the formulas of an operator whose inputs have edges into the tape.

    `needs` says per formula and input whether its gradient goes anywhere, as a list of answers where the input is a list.
    """

    def __init__(self, recipe: Recipe, stack: list):
        super().__init__()
        self.recipe = recipe
        self.saved: dict | None = {}
        self.needs = []
        self._wanted = []
        edges: list[Edge] = []
        for positions in self.recipe.inputs:
            row = [_add_edges(stack[position], edges) for position in positions]
            self.needs.append(row)
            self._wanted.append(True in row or any(isinstance(flag, list) and True in flag for flag in row))
        self.next_functions = tuple(edges)

    @property
    def is_wanted(self) -> bool:
        """Whether any gradient goes anywhere."""
        return any(self._wanted)

    def name(self) -> str:
        """The operator's name in camel case, as "AddBackward0"."""
        words = self.recipe.op._schema.name.strip("_").split("_")
        return "".join(word[:1].upper() + word[1:] for word in words) + "Backward0"

    def save_inputs(self, stack: list, written: int | None = None) -> None:
        """Keep what the wanted formulas name among the inputs; a copy of the one at position `written`."""
        for wanted, entries in zip(self._wanted, self.recipe.saved_inputs, strict=True):
            if wanted:
                for name, position, keep in entries:
                    if name not in self.saved:
                        value = stack[position]
                        copied = position == written and keep is save
                        self.saved[name] = keep(value.detach().clone() if copied else value)

    def save_outputs(self, outputs: tuple) -> None:
        """Keep what the wanted formulas name among the outputs."""
        for wanted, entries in zip(self._wanted, self.recipe.saved_outputs, strict=True):
            if wanted:
                for name, index in entries:
                    self.saved[name] = SavedTensor(outputs[index], index)

    def apply(self, grads):
        if self.saved is None:
            raise RuntimeError(FREED)
        results: list[Tensor | None] = []
        for formula, needs, wanted in zip(self.recipe.derivative.formulas, self.needs, self._wanted, strict=True):
            results += self._evaluate(formula, grads, needs) if wanted else _nothing(needs)
        return tuple(results)

    def _evaluate(self, formula: Formula, grads: tuple, needs: list) -> list[Tensor | None]:
        values = [self._value(name, grads, needs) for name in formula.names]
        results = formula.function(*values)
        results = (results,) if len(formula.inputs) == 1 else results
        flat: list[Tensor | None] = []
        for result, flag in zip(results, needs, strict=True):
            if isinstance(flag, list):
                flat += [None] * len(flag) if result is None else list(result)
            else:
                flat.append(result if flag else None)
        return flat

    def _value(self, name: str, grads: tuple, needs: list) -> object:
        if name == "grad":
            return grads[0]
        if name == "grads":
            return grads
        if name == "needs":
            return tuple(any(flag) if isinstance(flag, list) else flag for flag in needs)
        return unpack(self.saved[name], self)

    def __getattr__(self, name: str):
        if name.startswith("_saved_"):
            if self.saved is None:
                raise RuntimeError(FREED)
            if name[7:] in self.saved:
                return unpack(self.saved[name[7:]], self)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def release(self) -> None:
        """Drop what was saved. A graph that keeps no tensors can be run again, as in torch."""
        if self.saved is not None and any(map(keeps_tensors, self.saved.values())):
            self.saved = None


def _nothing(needs: list) -> list[None]:
    return [None] * sum(len(flag) if isinstance(flag, list) else 1 for flag in needs)


class NotImplementedBackward(Node):
    """The node of an operator that nobody gave a derivative: it raises when a gradient reaches it."""

    def __init__(self, op: OpOverload, inputs: list[Tensor]):
        super().__init__()
        self.op = op
        self.next_functions = tuple(gradient_edge(value) for value in inputs)

    def apply(self, grads):
        raise RuntimeError(f"derivative for {self.op.name} is not implemented")
