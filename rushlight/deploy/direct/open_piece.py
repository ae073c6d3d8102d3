"""The open piece of a direct program: operators on tensors that are collected, and then written as one graph.

In: nodes. Out: graphs of the model, and the statements that call them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.execution import FAILURES
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.typed import takes_number
from rushlight.core.tensor_impl import DataDependentError
from rushlight.deploy.direct.language import Language
from rushlight.deploy.direct.pieces import ComputedInside, Given, Key, Piece, Sizes, collect, kinds_of, variants
from rushlight.deploy.direct.values import Kind, Operand, line_of
from rushlight.deploy.graph_form import graph_form
from rushlight.deploy.model import Model
from rushlight.deploy.refusals import MAY_FAIL, refuse_unsupported
from rushlight.deploy.spelling import c_string
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes, written_constants
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types


class OpenPiece(Language):
    """Collects operators. `pending` holds the nodes of the open piece."""

    def __init__(self, *given: object):
        super().__init__(*given)
        self.pending: list[Node] = []
        self.arguments: dict[Node, list[object]] = {}
        self.made: dict[Operand, Key] = {}
        self.model: Model | None = None  # the model that gets the pieces as graphs; None during the analysis

    def drop_piece(self) -> None:
        """Discard the open piece."""
        self.pending, self.arguments, self.made = [], {}, {}

    def settle(self, *values: Value) -> list[Operand]:
        """Return the operands of values for use in statements. If the open piece computes one of them, write the piece
        first."""
        operands = [self.operand(value) for value in values]
        if any(self._is_pending(each) for each in operands):
            self.flush()
        return operands

    def _is_pending(self, operand: Operand) -> bool:
        return operand in self.made or any(map(self._is_pending, operand.list or ()))

    def add_to_piece(self, node: Node) -> None:
        """Add an operator to the open piece."""
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if operator is not None and operator.has_side_effects:
            raise Unsupported(f"{node.kind}, which has effects")
        arguments = self.operator_arguments(node)
        found = self.kinds_of_results(node, arguments)
        self.pending.append(node)
        self.arguments[node] = arguments
        for value, each in zip(node.outputs, found, strict=True):
            self.values[value] = self._make_result(value, each)

    def _make_result(self, value: Value, found: object) -> Operand:
        if isinstance(found, list):
            items = [self._make_piece_result(types.TENSOR, each, (value, position)) for position, each in enumerate(found)]
            return Operand(value.type, self.list_kind(items, value), list=items)
        if isinstance(found, Kind) and found.shape is not None:
            return self._make_piece_result(value.type, found, value)
        if isinstance(found, Kind):
            raise Unsupported("an operator on tensors that gives a number")
        return self.constant(found, value.type)

    def _make_piece_result(self, kind: types.Type, found: object, key: Key) -> Operand:
        if not isinstance(found, Kind) or found.shape is None:
            raise Unsupported("an operator with a result that is no tensor")
        made = Operand(kind, found, self.name("t"))
        self.made[made] = key
        return made

    def operator_arguments(self, node: Node) -> list[object]:
        """Return a node's arguments in the form of its operator: known values, values given at run time, and values that the
        piece computes."""
        return [self._operator_argument(node, position, self.operand(value)) for position, value in enumerate(node.inputs)]

    def _operator_argument(self, node: Node, position: int, operand: Operand) -> object:
        if operand in self.made:
            return ComputedInside(self.made[operand])
        if operand.list is not None and not operand.is_known:
            return [self._operator_argument(node, position, each) for each in operand.list]
        if operand.is_known:
            return operand.value
        if operand.kind.shape is not None:
            return Given(operand)
        if operand.type in (types.INT, types.FLOAT, types.BOOL) and takes_number(node, position):
            return Given(operand, as_tensor=True)
        if operand.type is types.INT:
            return Given(operand)
        if operand.kind.items is not None and isinstance(operand.type, types.ListType) and operand.type.element is types.INT:
            raise Unsupported(f"{node.kind} with a list of numbers whose length only a run knows")
        raise Unsupported(f"{node.kind} of a {operand.type} that only a run knows")

    def kinds_of_results(self, node: Node, arguments: list[object]) -> list[object]:
        """Return the kinds of an operator's results. Unsupported if it fails on such arguments."""
        operands = {key: operand for operand, key in self.made.items()}

        def given(argument: object) -> object:
            if isinstance(argument, list):
                return [given(each) for each in argument]
            return Given(operands[argument.key]) if isinstance(argument, ComputedInside) else argument

        try:
            return kinds_of(node, [given(each) for each in arguments], self.plan)
        except DataDependentError as error:
            raise Unsupported(f"{node.kind} depends on the elements of a tensor") from error
        except Unsupported:
            raise
        except FAILURES as error:
            raise Unsupported(f"{node.kind} at {line_of(node)} fails: {str(error)[:200]}") from error

    def flush(self, wanted: Sequence[Operand] = ()) -> None:
        """Write the open piece."""
        nodes, self.pending = self.pending, []
        if not nodes:
            return
        arguments, self.arguments = self.arguments, {}
        made, self.made = self.made, {}
        inside = set(nodes)
        needed = {operand: key for operand, key in made.items() if operand in wanted or _is_used(key, inside)}
        if not needed:
            return
        inputs: dict[object, Given] = {}
        for node in nodes:
            for argument in arguments[node]:
                collect(argument, inputs)
        piece = Piece(nodes, inputs, arguments)
        names = [operand.text for operand in needed]
        self.emit(*(f"any {name};" for name in names))
        if self.model is not None:
            self._write_piece(piece, list(needed.values()), names)

    def _write_piece(self, piece: Piece, wanted: list[Key], names: list[str]) -> None:
        line = line_of(piece.nodes[0])
        given, called, conditions = [], [], {}
        for each in piece.inputs.values():
            called.append(f"a tensor at {line}" if each.operand.kind.shape is not None else f"a number at {line}")
            given.append(self._given_text(each))
            conditions[len(given) - 1] = each
        values = self.name("values")
        self.emit("{", f"const value {values}[] = {{{', '.join(given) or 'none()'}}};", f"value made[{len(names)}];",
                  "int status = unfit;")  # fmt: skip
        try:
            general = self._add_graph(piece, wanted, {}, called)
        except MAY_FAIL as error:
            raise Unsupported(f"{line}: {error}") from error
        for fixed in ({}, *variants(general[2])):
            try:
                with self.model.whole():
                    text, seeds, _ = self._add_graph(piece, wanted, fixed, called) if fixed else general
            except MAY_FAIL:  # this size may be impossible, so specialising for it may fail
                continue
            positions = [position for position, each in conditions.items() if not _is_fixed(each, fixed)]
            texts = [f"&{values}[{position}]" for position in positions] + [f"&seed_{number}" for number in range(seeds)]
            tests = [
                f"{values}[{position}].as.integer == {fixed[each.operand.kind.size]}L"
                for position, each in conditions.items() if _is_fixed(each, fixed)
            ]  # fmt: skip
            if fixed:  # the general graph's error is the one to report
                self.emit(f"if ({' && '.join(['status == unfit', *tests])}) {{", "const complaint first = self;")
            else:
                self.emit("{")
            self.emit(*(f"const value seed_{number} = self.next_seed();" for number in range(seeds)))
            self.emit(
                f"const value* const given[] = {{{', '.join(texts) or 'nullptr'}}};",
                f"status = {text}(self, given, nullptr, made);",
            )
            self.emit(*(["if (status == unfit) static_cast<complaint&>(self) = first;"] if fixed else []), "}")
        self.emit(f"if (status) {{ run.status = status; return run.at({c_string(line)}); }}")
        self.emit(*(f"{name} = run.tensor_like(made[{position}].as.tensor);" for position, name in enumerate(names)))
        self.emit(f"if (run.status) return run.at({c_string(line)});", "}")

    def _add_graph(self, piece: Piece, wanted: list[Key], fixed: dict, called: list[str]) -> tuple[str, int, Sizes]:
        """Add a graph of the model for a piece; returns the function's name, its number of seeds, and its sizes."""
        module, sizes = piece.captured(wanted, self.plan, fixed)
        if written_constants(module):
            raise Unsupported("a write to a constant")
        seeds = seed_nodes(module)
        module = as_last_inputs(module, seeds)
        refuse_unsupported(module, "a piece")
        names = [name for name, each in zip(called, piece.inputs.values(), strict=True) if not _is_fixed(each, fixed)]
        form = graph_form(self.model.programs, module, [*names, *("the seed" for _ in seeds)], self.model.weights, {})
        self.model.add_graph(form)
        return f"graph_{form.number}", len(seeds), sizes

    def _given_text(self, given: Given) -> str:
        operand = given.operand
        if operand.kind.shape is not None:
            text = self.boxed(operand)
            if isinstance(operand.type, types.OptionalType):
                said = c_string("an optional tensor is None, where the model is exported for one")
                self.emit(
                    f"if ({text}.kind != RL_CONSTANT(TENSOR)) run.fail(failed, {said});", 'if (run.status) return run.at("");'
                )
            return f"of_tensor(*{text}.as.held)"
        if not given.as_tensor:
            return f"of_integer({self.spelled(operand, types.INT)})"
        word = {types.INT: "INT64", types.FLOAT: "FLOAT64", types.BOOL: "BOOLEAN"}[operand.type]
        held = self.name("number")
        target = {types.INT: "int64_t", types.FLOAT: "double", types.BOOL: "bool"}[operand.type]
        self.emit(f"const {target} {held} = {self.spelled(operand, operand.type)};")
        return f"of_tensor(tensor_of((void*)&{held}, RL_CONSTANT({word}), 0, nullptr, nullptr))"


def _is_fixed(given: Given, fixed: dict) -> bool:
    """Return whether a graph of the piece treats this number as a constant, so that the number is no input of the graph."""
    return given.operand.kind.shape is None and not given.as_tensor and given.operand.kind.size in fixed


def _is_used(key: Key, inside: set[Node]) -> bool:
    if isinstance(key, Value):
        return any(_is_outside(use.user, inside) for use in key.uses)
    value, position = key
    unpacked = [use.user.outputs[position] for use in value.uses if use.user.kind == "prim::ListUnpack"]
    others = [use for use in value.uses if use.user.kind != "prim::ListUnpack"]
    return any(_is_outside(use.user, inside) for use in others) or any(
        _is_outside(use.user, inside) for each in unpacked for use in each.uses
    )


def _is_outside(user: Node, inside: set[Node]) -> bool:
    """Return whether a value's user is outside of the piece. A list that only the piece reads counts as inside."""
    if user in inside:
        return False
    return user.kind != "prim::ListConstruct" or any(use.user not in inside for use in user.output.uses)
