"""Write C++ statements, and the operands used in them.

In: operands. Out: lines of C++ in the current block.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

import numpy as np

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.deploy.direct.values import MISSING, PLAIN, Kind, Operand, Plan, Shape, kind_of_type, line_of, representation
from rushlight.deploy.model import check_tensor, tensor_text
from rushlight.deploy.spelling import c_string, integer_text, real_text
from rushlight.deploy.weights import Weights
from rushlight.jit.enumerations import dtype_of_number
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types


class Statements:
    """Writes C++. `values` maps graph values to operands."""

    def __init__(self, plan: Plan, weights: Weights | None):
        self.plan = plan
        self.weights = weights
        self.lines: list[str] = []
        self.values: dict[Value, Operand] = {}
        self.numbers = itertools.count()
        self.classes: dict[types.Type, int] = {}

    def emit(self, *lines: str) -> None:
        """Add statements."""
        self.lines += lines

    def name(self, word: str = "v") -> str:
        """Return a fresh C++ name."""
        return f"{word}{next(self.numbers)}"

    def check(self, node: Node) -> None:
        """Write a check that leaves the function after an error."""
        self.emit(f"if (run.status) return run.at({c_string(line_of(node))});")

    def class_number(self, kind: types.Type) -> int:
        """Return the number that identifies a class at run time."""
        return self.classes.setdefault(kind, len(self.classes) + 1)

    # Operands

    def operand(self, value: Value) -> Operand:
        """Return the operand of a graph value."""
        if value.is_constant and value not in self.values:
            self.values[value] = self.constant(value.constant(), value.type)
        return self.values[value]

    def constant(self, value: object, kind: types.Type) -> Operand:
        """Return a known value as an operand."""
        if isinstance(value, Tensor):
            impl = value._impl
            if impl.device.type != "cpu":
                raise Unsupported(f"a constant on {impl.device}")
            return Operand(types.TENSOR, Kind(Shape(impl.dtype, tuple(impl.sizes))), value=value)
        if isinstance(value, bool | float | str) or value is None:
            return Operand(kind, PLAIN, value=value)
        if isinstance(value, int):
            return Operand(kind, Kind(size=value), value=value)
        if isinstance(value, list | tuple):
            is_list = isinstance(value, list)
            parts = kind.element if isinstance(kind, types.ListType) else None
            inner = (
                [parts] * len(value) if parts is not None else list(getattr(kind, "elements", ())) or [types.ANY] * len(value)
            )
            made = [self.constant(each, each_type) for each, each_type in zip(value, inner, strict=True)]
            known = MISSING if any(isinstance(each.value, Tensor) or not each.is_known for each in made) else value
            if not is_list:
                return Operand(kind, Kind(parts=tuple(each.kind for each in made)), list=made, value=known)
            return Operand(kind, self.known_list_kind(made, ("constant", _key_of(value))), list=made, value=known)
        return Operand(kind, PLAIN, value=value)

    def list_kind(self, items: Sequence[Operand], key: object) -> Kind:
        """Return the kind of a list of operands."""
        cell = self.plan.cell(key)
        for item in items:
            self.plan.put(cell, item.kind, key)
        return Kind(items=cell)

    def known_list_kind(self, items: Sequence[Operand], key: object) -> Kind:
        """Return the kind of a list whose items stay known. Its tensors may differ in rank, such as a layer's weights."""
        shapes = [each.kind.shape for each in items]
        are_alike = len({shape and (shape.dtype, len(shape.sizes)) for shape in shapes}) <= 1
        return self.list_kind(items, key) if are_alike else PLAIN

    def known(self, value: Value) -> object:
        """Return the value itself if it is known at export; else MISSING."""
        return self.operand(value).value

    # Spelling

    def boxed(self, operand: Operand) -> str:
        """Return an operand converted to an `any`."""
        if operand.text is not None:
            return operand.text if representation(operand.type) == "any" else f"any_of({operand.text})"
        if operand.list is not None:
            return self._boxed_items(operand)
        if not operand.is_known:
            raise Unsupported("a module, or another object that is no value of the program")
        value = operand.value
        if value is None:
            return "any{}"
        if isinstance(value, bool):
            return f"any_of({str(value).lower()})"
        if isinstance(value, int):
            return f"any_of((int64_t){integer_text(value)})"
        if isinstance(value, float):
            return f"any_of({real_text(value)})"
        if isinstance(value, str):
            return f"run.text_of({c_string(value)}, {len(value.encode())})"
        if isinstance(value, complex):
            return self._boxed_tensor(tensor_from_array(np.array(value)))
        if isinstance(value, Tensor):
            return self._boxed_tensor(value)
        if isinstance(value, dict):
            return self._boxed_dict(operand)
        member = self.member_number(operand.type, value)
        if member is not None:
            return f"run.member_of({self.class_number(operand.type)}, {member})"
        raise Unsupported(f"a value of type {type(value).__name__}, which has no form in C")

    @staticmethod
    def member_number(kind: types.Type, value: object) -> int | None:
        """Return the number of a value among its enumeration's members."""
        if not isinstance(kind, types.EnumType) or isinstance(value, ScriptObject):
            return None
        return next((position for position, (name, _) in enumerate(kind.members) if name == getattr(value, "name", None)), None)

    def _boxed_tensor(self, value: Tensor) -> str:
        check_tensor("a constant", value.dtype, value.shape)
        return "any{}" if self.weights is None else f"run.taken_from({tensor_text(value, self.weights)})"

    def _boxed_dict(self, operand: Operand) -> str:
        made, kind = self.name("dict"), operand.type
        self.emit(f"const any {made} = run.new_items(RL_CONSTANT(DICT), 0);")
        for key, item in operand.value.items():
            parts = [self.boxed(self.constant(key, kind.key)), self.boxed(self.constant(item, kind.value))]
            self.emit(f"if (!run.status) run.put({made}, {', '.join(parts)});")
        return made

    def _boxed_items(self, operand: Operand) -> str:
        parts = [self.boxed(each) for each in operand.list]
        kind = "LIST" if isinstance(operand.type, types.ListType) else "TUPLE"
        return self.new_items(kind, parts)

    def new_items(self, kind: str, parts: Sequence[str], number: int = 0) -> str:
        """Return a new list, tuple or object of these values."""
        made = self.name("items")
        if parts:
            self.emit(f"const any parts_of_{made}[] = {{{', '.join(parts)}}};")
        tag = kind if kind == "OBJECT" else f"RL_CONSTANT({kind})"
        given = f"parts_of_{made}" if parts else "nullptr"
        self.emit(f"const any {made} = run.items_of({tag}, {given}, {len(parts)}, {number});")
        self.emit('if (run.status) return run.at("");')
        return made

    def spelled(self, operand: Operand, wanted: types.Type) -> str:
        """Return an operand converted to the C++ representation of a type."""
        target = representation(wanted)
        if target == "any":
            return self.boxed(operand)
        if operand.is_known and isinstance(operand.value, bool | int | float):
            value = operand.value
            if target == "bool":
                return str(bool(value)).lower()
            return real_text(float(value)) if target == "double" else f"(int64_t){integer_text(int(value))}"
        if operand.text is None:
            raise Unsupported(f"a value of type {operand.type} where one of {wanted} is needed")
        own = representation(operand.type)
        if own == "any":
            return {"int64_t": f"({operand.text}).as.integer", "double": f"real_in({operand.text})",
                    "bool": f"(({operand.text}).as.integer != 0)"}[target]  # fmt: skip
        return operand.text if own == target else f"({target}){operand.text}"

    # Results

    def bind(self, value: Value, text: str, kind: Kind | None = None) -> Operand:
        """Bind a value to a new variable."""
        variable = self.name()
        kind = self.kind_or_default(value, kind)
        self.emit(f"const {representation(value.type)} {variable} = {text};")
        self.emit(f"(void){variable};")
        made = self.values[value] = Operand(value.type, kind, variable)
        return made

    def kind_or_default(self, value: Value, kind: Kind | None) -> Kind:
        """Return the kind, or the kind of the type for None; ints get symbols."""
        if kind is None:
            return kind_of_type(value.type, self.plan, value)
        if kind.size is None and value.type in (types.INT, types.NUMBER):
            return kind_of_type(value.type, self.plan, value)
        return kind

    def set_known(self, value: Value, known: object) -> None:
        """Bind a graph value to a known value."""
        self.values[value] = self.constant(known, value.type)


def _key_of(value: object) -> Hashable:
    """Return a key for a constant that is the same in every round of the analysis."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, *map(_key_of, value))
    return id(value._impl) if isinstance(value, Tensor) else repr(value)


def dtype_named(value: object):
    """Return the dtype that the jit represents by this number."""
    return dtype_of_number(value)
