"""The node of an operator in the derivative table: it saves tensors and evaluates the formulas."""

from __future__ import annotations

from collections.abc import Callable

import rushlight._C as _C
from rushlight._C import OperatorNode
from rushlight.autograd.derivative_table import Derivative, Formula
from rushlight.autograd.node import NO_EDGE, Edge, Node, geometry_of
from rushlight.autograd.saved_tensor import FREED, SavedTensor, keeps_tensors, save, unpack
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.schema import NO_DEFAULT, FunctionSchema

_FROM_BACKWARD = ("grad", "grads", "needs")


class Recipe:
    """The inputs and outputs that an operator's formulas need, computed once per operator: positions of inputs, and the tensors
    that each formula saves.

    `node_type` is the class of the operator's nodes. `plan` holds all of this for C code, which records and evaluates with it
    (`csrc/record.h`).
    """

    __slots__ = ("op", "derivative", "inputs", "saved_inputs", "saved_outputs", "node_type", "plan")

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
        self.node_type = type(_node_name(schema.name), (OperatorBackward,), {})
        self.plan = self._plan(schema)

    def _plan(self, schema: FunctionSchema) -> tuple:
        arguments = schema.arguments
        formulas = zip(self.derivative.formulas, self.inputs, self.saved_inputs, self.saved_outputs, strict=True)
        return (
            self,
            tuple(argument.name for argument in arguments),
            tuple(argument.default for argument in arguments),
            NO_DEFAULT,
            tuple(position for position, _ in self.op._fixed_lists),
            tuple(_plan_of_formula(*parts) for parts in formulas),
            tuple(self.derivative.non_differentiable_outputs),
            self.node_type,
        )


def _node_name(operator: str) -> str:
    """Return an operator's name in camel case, as "AddBackward0"; "NllLossBackward0" for `nll_loss_forward`."""
    if operator == "copy_":
        return "CopyBackwards"
    words = operator.strip("_").removesuffix("_forward").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Backward0"


def _plan_of_formula(formula: Formula, positions: tuple, saved_inputs: tuple, saved_outputs: tuple) -> tuple:
    kept = tuple((name, position, None if keep is save else keep) for name, position, keep in saved_inputs)
    sources = tuple(_FROM_BACKWARD.index(name) if name in _FROM_BACKWARD else name for name in formula.names)
    return (formula.function, positions, kept, saved_outputs, sources)


def _inputs_named(formula: Formula, schema: FunctionSchema) -> tuple[tuple[str, int, Callable], ...]:
    """Return the triple (name, position, conversion) for each input among the formula's parameters."""
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


def _sizes_of(value: object) -> object:
    if isinstance(value, Tensor):
        return value._impl.sizes
    return [item._impl.sizes for item in value] if isinstance(value, list | tuple) else ()


_FACTS = {
    "sizes": _sizes_of,
    "dtype": lambda value: getattr(value, "dtype", None),
    "geometry": lambda value: geometry_of(value._impl),
    "unchecked": lambda value: value,
}


def _add_edges(value: object, edges: list[Edge]) -> bool | list[bool]:
    """Append the edges of an input. Returns whether it has an edge: a bool, or a list of bools for a list."""
    if isinstance(value, list | tuple):
        return [_add_edges(item, edges) for item in value]
    edge = gradient_edge(value) if isinstance(value, Tensor) else NO_EDGE
    edges.append(edge)
    return edge[0] is not None


class OperatorBackward(OperatorNode, Node):
    """Evaluates the formulas of an operator whose inputs have edges into the tape.

    `needs` says per formula and input whether its gradient is needed, as a list of bools where the input is a list. Every
    operator has a subclass, named like its node (`Recipe.node_type`).
    """

    def __init__(self, recipe: Recipe, stack: list):
        super().__init__()
        self.recipe = recipe
        self.plan = recipe.plan
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
        """Whether any gradient is needed."""
        return any(self._wanted)

    def save_inputs(self, stack: list, written: int | None = None) -> None:
        """Save the inputs that the needed formulas name; the one at position `written` is copied."""
        for wanted, entries in zip(self._wanted, self.recipe.saved_inputs, strict=True):
            if wanted:
                for name, position, keep in entries:
                    if name not in self.saved:
                        value = stack[position]
                        copied = position == written and keep is save
                        self.saved[name] = keep(value.clone() if copied else value)  # the copy keeps the history

    def save_outputs(self, outputs: tuple) -> None:
        """Save the outputs that the needed formulas name."""
        for wanted, entries in zip(self._wanted, self.recipe.saved_outputs, strict=True):
            if wanted:
                for name, index in entries:
                    self.saved[name] = SavedTensor(outputs[index], index)

    def _apply_freed(self):
        raise RuntimeError(FREED)

    def __getattr__(self, name: str):
        if name.startswith("_saved_"):
            if self.saved is None:
                raise RuntimeError(FREED)
            if name[7:] in self.saved:
                return unpack(self.saved[name[7:]], self)
        if name.startswith("_raw_saved_") and self.saved is not None and name[11:] in self.saved:
            return self.saved[name[11:]]
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def release(self) -> None:
        """Drop the saved tensors. A graph that saved none can be run again, as in torch."""
        if self.saved is not None and any(map(keeps_tensors, self.saved.values())):
            self.saved = None


_C.configure(node_type=OperatorBackward, no_edge=NO_EDGE, gradient_edge=gradient_edge)


class NotImplementedBackward(Node):
    """The node of an operator without a derivative: it raises when a gradient reaches it."""

    def __init__(self, op: OpOverload, inputs: list[Tensor]):
        super().__init__()
        self.op = op
        self.next_functions = tuple(gradient_edge(value) for value in inputs)

    def apply(self, grads):
        raise NotImplementedError(f"derivative for {self.op.name} is not implemented")
