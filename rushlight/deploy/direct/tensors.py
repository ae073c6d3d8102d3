"""Tensors in direct programs: pieces, views, single elements, and writes.

In: nodes on tensors. Out: nodes collected into pieces, which run as graphs, and calls of
`include/rushlight/deployed_tensors.h`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.execution import FAILURES, OF_AUTOGRAD
from rushlight.compiler.scripted.regions import Unsupported, function_of
from rushlight.compiler.scripted.scalars import READS
from rushlight.compiler.scripted.typed import takes_number
from rushlight.core.dtype import bool_, get_default_dtype, int64
from rushlight.core.tensor_impl import DataDependentError
from rushlight.deploy.direct.language import Language
from rushlight.deploy.direct.pieces import ComputedInside, Given, Key, Piece, Sizes, collect, kinds_of, variants
from rushlight.deploy.direct.statements import dtype_named
from rushlight.deploy.direct.values import MISSING, Kind, Operand, Shape, line_of, size_of, unboxed
from rushlight.deploy.graph_form import graph_form
from rushlight.deploy.model import Model
from rushlight.deploy.refusals import MAY_FAIL, refuse_unsupported
from rushlight.deploy.spelling import c_constant, c_string
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes, written_constants
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types
from rushlight.ops.registry import aten

_QUESTIONS = {"aten::dim": "rank", "aten::len": "length", "aten::size": "size", "aten::numel": "count"}
_OF_KIND = frozenset(
    "prim::dtype prim::device prim::layout aten::is_floating_point aten::is_complex prim::is_cuda prim::is_cpu prim::is_meta "
    "prim::is_sparse prim::is_quantized prim::is_nested aten::element_size prim::itemsize aten::get_device "
    "prim::is_mkldnn prim::is_mps prim::is_xpu prim::is_xla prim::is_ipu prim::is_vulkan prim::is_maia".split()
)
"""Operators whose result depends only on a tensor's dtype or device."""
_VIEWS = {
    "aten::select": "select({0}, {1:int}, {2:int})", "aten::slice": "tensor_slice({0}, {1:int}, {2}, {3}, {4:int})",
    "aten::narrow": "narrow({0}, {1:int}, {2:int}, {3:int})", "aten::unsqueeze": "unsqueeze({0}, {1:int})",
    "aten::transpose": "transpose({0}, {1:int}, {2:int})", "aten::permute": "permute({0}, {1})",
    "aten::expand": "expand({0}, {1})", "aten::view": "reshape({0}, {1})", "aten::reshape": "reshape({0}, {1})",
    "aten::chunk": "chunk({0}, {1:int}, {2:int})", "aten::split": "tensor_split({0}, {1}, {2:int})",
    "aten::split_with_sizes": "tensor_split({0}, {1}, {2:int})", "aten::unbind": "unbind({0}, {1:int})",
    "aten::contiguous": "contiguous({0})", "aten::unsafe_chunk": "chunk({0}, {1:int}, {2:int})",
}  # fmt: skip
"""Views that share memory, and what they are in C++."""
_ALWAYS = frozenset(("aten::select", "aten::slice", "aten::narrow"))
"""Views whose places may be numbers that only a run knows: those are no part of a piece then."""
_PASSED = frozenset(("aten::detach", "aten::alias", "aten::detach_", "aten::requires_grad_", "prim::data", "aten::data"))
"""Operators that return their argument."""
_PARTS = frozenset(("aten::chunk", "aten::split", "aten::split_with_sizes", "aten::unbind", "aten::unsafe_chunk"))


class Tensors(Language):
    """Writes nodes on tensors. `pending` holds the nodes of the open piece."""

    def __init__(self, *given: object):
        super().__init__(*given)
        self.pending: list[Node] = []
        self.arguments: dict[Node, list[object]] = {}
        self.made: dict[Operand, Key] = {}
        self.model: Model | None = None  # the model that gets the pieces as graphs; None during the analysis

    def drop_piece(self) -> None:
        """Discard the open piece."""
        self.pending, self.arguments, self.made = [], {}, {}

    # Dispatch

    def write_tensors(self, node: Node) -> None:
        """Write a node with tensor inputs or results."""
        kind = node.kind
        if kind in OF_AUTOGRAD - _PASSED:
            raise Unsupported(f"{kind}, which asks what autograd has recorded")
        if kind in _PASSED:
            self.values[node.output] = self.operand(node.input())
        elif kind in READS or kind == "aten::ScalarImplicit":
            self._emit_item(node)
        elif self._write_query(node):
            return
        elif kind in ("aten::cat", "aten::stack", "aten::concat") and self._concatenate(node):
            return
        elif kind in ("aten::tensor", "aten::as_tensor") and self._make_tensor_of_numbers(node):
            return
        elif kind == "prim::tolist":
            self._write_tolist(node)
        elif kind in ("aten::index", "aten::masked_select", "aten::nonzero") and self._data_dependent(node):
            return
        elif self._is_write(node):
            self._write(node)
        elif kind in _VIEWS and self._must_be_view(node):
            self._view(node)
        else:
            self._add_to_piece(node)

    def settle(self, *values: Value) -> list[Operand]:
        """Return the operands of values for use in statements. If the open piece computes one of them, write the piece
        first."""
        operands = [self.operand(value) for value in values]
        if any(self._is_pending(each) for each in operands):
            self.flush()
        return operands

    def _is_pending(self, operand: Operand) -> bool:
        return operand in self.made or any(map(self._is_pending, operand.list or ()))

    # Queries

    def _write_query(self, node: Node) -> bool:
        if not node.inputs or not isinstance(node.input().type, types.TensorType | types.OptionalType):
            return False
        given = self.operand(node.input())
        shape = given.kind.shape
        if shape is None or len(node.outputs) != 1 or isinstance(node.output.type, types.TensorType):
            return False
        if node.kind in _OF_KIND:
            from_example = function_of(node)
            self.set_known(node.output, from_example(_empty_tensor(shape)))
            return True
        if node.kind not in _QUESTIONS:
            return False
        if node.kind == "aten::dim":
            self.set_known(node.output, len(shape.sizes))
            return True
        sizes = shape.sizes
        if node.kind == "aten::size" and node.input_count == 1:
            self._bind_all_sizes(node, given, shape)
            return True
        if node.kind == "aten::numel":
            found = 1
            for size in sizes:
                found = size * found
            self._bind_size(node, size_of(found), lambda text: f"count_of(*{text}.as.held)")
            return True
        dim = self.operand(node.input(1)) if node.kind == "aten::size" else self.constant(0, types.INT)
        if dim.is_known and -len(sizes) <= dim.value < len(sizes):
            position = dim.value % len(sizes)
            self._bind_size(node, sizes[position], lambda text: f"{text}.as.held->sizes[{position}]")
            return True
        (given,) = self.settle(node.input())
        call = f"run.size({self.boxed(given)}, {self.spelled(dim, types.INT)})" if node.kind == "aten::size" else \
            f"run.tensor_length({self.boxed(given)})"  # fmt: skip
        self.bind(node.output, call)
        self.check(node)
        return True

    def _bind_size(self, node: Node, size: object, read) -> None:
        if isinstance(size, int):
            self.set_known(node.output, size)
            return
        (given,) = self.settle(node.input())
        self.bind(node.output, read(self.boxed(given)), Kind(size=size))

    def _bind_all_sizes(self, node: Node, given: Operand, shape: Shape) -> None:
        if all(isinstance(size, int) for size in shape.sizes) and not self.has_writers(node.output):
            self.set_known(node.output, list(shape.sizes))
            return
        (given,) = self.settle(node.input())
        items = []
        for position, size in enumerate(shape.sizes):
            variable = self.name("n")
            self.emit(f"const int64_t {variable} = {self.boxed(given)}.as.held->sizes[{position}];")
            items.append(Operand(types.INT, Kind(size=size), variable))
        kind = self.list_kind(items, node)
        if self.has_writers(node.output):
            text = self.new_items("LIST", [self.boxed(each) for each in items])
            self.values[node.output] = Operand(node.output.type, kind, text)
        else:
            self.values[node.output] = Operand(node.output.type, kind, list=items)

    # Elements

    def _emit_item(self, node: Node) -> None:
        (given,) = self.settle(node.input())
        kind = node.output.type
        word = {types.INT: "integer_in", types.FLOAT: "real_in_item", types.BOOL: "truth_in"}.get(kind, "item")
        self.bind(node.output, f"run.{word}({self.boxed(given)})", None)
        self.check(node)

    def _make_tensor_of_numbers(self, node: Node) -> bool:
        given = self.operand(node.input())
        if given.is_known or isinstance(node.input().type, types.TensorType):
            return False
        if given.type in (types.INT, types.FLOAT, types.BOOL):
            return False
        if given.kind.shape is not None:
            return False
        (given,) = self.settle(node.input())
        kind = self.known(node.input(1))
        if kind is MISSING:
            raise Unsupported(f"{node.kind} of a dtype that only a run knows")
        depth, element = 0, given.type
        while isinstance(element, types.ListType):
            depth, element = depth + 1, element.element
        natural = {types.INT: int64, types.BOOL: bool_, types.FLOAT: get_default_dtype()}.get(element)
        if natural is None:
            raise Unsupported(f"{node.kind} of {given.type}")
        found = dtype_named(kind) if kind is not None else natural
        sizes, at = [], given
        for position in range(depth):
            known = at.list is not None
            sizes.append(len(at.list) if known else self.plan.symbol((node, position), None, (0, 1)))
            at = at.list[0] if known and at.list else Operand(types.ANY)
        self.bind(node.output, f"run.tensor_from({self.boxed(given)}, {c_constant(found)})", Kind(Shape(found, tuple(sizes))))
        self.check(node)
        return True

    def _write_tolist(self, node: Node) -> None:
        (given,) = self.settle(node.input())
        depth, kind = 0, node.output.type
        while isinstance(kind, types.ListType):
            depth, kind = depth + 1, kind.element
        text = f"run.numbers_in({self.boxed(given)}, {depth})"
        self.bind(node.output, text if depth else unboxed(text, node.output.type))
        self.check(node)

    def _data_dependent(self, node: Node) -> bool:
        """Write an operator whose result size depends on elements: `x[mask]`, `masked_select` or `nonzero`. Return False for
        other indices."""
        given = self.operand(node.input())
        if given.kind.shape is None:
            return False
        count = self.plan.symbol((node, "count"), None, (0, 1))
        if node.kind == "aten::nonzero":
            (given,) = self.settle(node.input())
            kind = Kind(Shape(int64, (count, len(given.kind.shape.sizes))))
            self.bind(node.output, f"run.nonzero({self.boxed(given)})", kind)
            self.check(node)
            return True
        indices = self.operand(node.input(1))
        masks = [indices] if node.kind == "aten::masked_select" else list(indices.list or ())
        if len(masks) != 1 or masks[0].kind.shape is None or masks[0].kind.shape.dtype is not bool_:
            return False
        lead, sizes = len(masks[0].kind.shape.sizes), given.kind.shape.sizes
        if lead == 0 or lead > len(sizes) or (node.kind == "aten::masked_select" and lead != len(sizes)):
            return False
        self.settle(*node.inputs)
        text = f"run.masked({self.boxed(given)}, {self.boxed(masks[0])})"
        self.bind(node.output, text, Kind(Shape(given.kind.shape.dtype, (count, *sizes[lead:]))))
        self.check(node)
        return True

    # Views and writes

    def _must_be_view(self, node: Node) -> bool:
        """Return whether a node must be a real view, because something writes to it, or because its position is known only at
        run time."""
        if any(self.has_writers(value) for value in node.outputs):
            return True
        if node.kind in _ALWAYS:
            return any(not self.operand(value).is_known for value in node.inputs[1:])
        if node.kind in _PARTS:
            return not all(use.user.kind == "prim::ListUnpack" for use in node.output.uses) or not self._has_known_parts(node)
        return False

    def _has_known_parts(self, node: Node) -> bool:
        return all(isinstance(each, list) for each in self._kinds_of_results(node, self._operator_arguments(node)))

    def _view(self, node: Node) -> None:
        self.settle(*node.inputs)
        kinds = self._view_kind(node)
        row = _VIEWS[node.kind]
        text, _ = self._call(node, row)
        self.bind(node.output, f"run.{text}", kinds)
        self.check(node)

    def _view_kind(self, node: Node) -> Kind:
        shape = self.operand(node.input()).kind.shape
        if shape is None:
            raise Unsupported(f"{node.kind} of a tensor of unknown dtype")
        if node.kind in _ALWAYS:
            return self._kind_of_run_time_part(node, shape)
        if node.kind in _PARTS:
            return self._kind_of_parts(node, shape)
        found = self._kinds_of_results(node, self._operator_arguments(node))[0]
        if not isinstance(found, Kind):
            raise Unsupported(f"{node.kind} with a result that is no tensor")
        return found

    def _kind_of_run_time_part(self, node: Node, shape: Shape) -> Kind:
        """Return the kind of a part at a position known only at run time."""
        dim = self.known(node.input(1))
        if dim is MISSING or not -len(shape.sizes) <= dim < len(shape.sizes):
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        dim %= len(shape.sizes)
        rest = list(shape.sizes)
        if node.kind == "aten::select":
            del rest[dim]
            return Kind(Shape(shape.dtype, tuple(rest)))
        if node.kind == "aten::narrow":
            length = self.operand(node.input(3)).kind.size
        else:
            length = self._slice_length(node, rest[dim])
        rest[dim] = self.plan.symbol((node, "length"), None, (0, 1)) if length is None else length
        return Kind(Shape(shape.dtype, tuple(rest)))

    def _slice_length(self, node: Node, size: object) -> object:
        """Return the length of a slice if it is the same in every run, else None."""
        start, end, step = (self.operand(value) for value in node.inputs[2:])
        if all(each.is_known for each in (start, end, step)) and isinstance(size, int):
            return len(range(size)[start.value : end.value : step.value])
        is_whole = start.is_known and start.value in (None, 0) and step.is_known and step.value == 1
        if is_whole and end.is_known and (end.value is None or end.value >= 1 << 62):
            return size
        return None

    def _kind_of_parts(self, node: Node, shape: Shape) -> Kind:
        cell, rest = self.plan.cell((node, "parts")), list(shape.sizes)
        dim = self.known(node.inputs[-1])
        if dim is MISSING:
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        dim %= max(len(rest), 1)
        if node.kind == "aten::unbind":
            del rest[dim]
        else:
            rest[dim] = self.plan.symbol((node, "length"), None, (0, 1))
        self.plan.put(cell, Kind(Shape(shape.dtype, tuple(rest))), node)
        return Kind(items=cell)

    @staticmethod
    def _is_write(node: Node) -> bool:
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        return operator is not None and any(argument.is_write for argument in operator.schema.arguments)

    def _write(self, node: Node) -> None:
        """Write an in-place operator: a piece computes the result, which is then copied into the memory."""
        if not isinstance(node.input().type, types.TensorType):
            raise Unsupported(f"{node.kind}, which writes to what is no tensor")
        (target,) = self.settle(node.input())
        text = self.boxed(target)
        if target.is_known:
            raise Unsupported(f"{node.kind}, which writes to a constant")
        self.flush()
        self._add_to_piece(node)
        made = self.operand(node.output)
        made.text = made.text or self.name("t")
        self.flush(wanted=[made])
        self.emit(f"run.write({text}, {made.text});")
        self.check(node)
        self.values[node.output] = target

    def _concatenate(self, node: Node) -> bool:
        """Write `cat` or `stack` of a list whose length is known only at run time."""
        given = self.operand(node.input())
        if given.list is not None:
            return False
        given, dim = self.settle(*node.inputs)
        item = self.item_of(given.kind).shape
        if item is None:
            raise Unsupported(f"{node.kind} of a list of tensors whose sizes are never found")
        if not dim.is_known:
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        is_stack = node.kind == "aten::stack"
        rank = len(item.sizes) + is_stack
        sizes, position = list(item.sizes), dim.value % max(rank, 1)
        whole = self.plan.symbol((node, "whole"), None, (0, 1))
        if is_stack:
            sizes.insert(position, whole)
        else:
            sizes[position] = whole
        text = f"run.{'stack' if is_stack else 'cat'}({self.boxed(given)}, {dim.value})"
        self.bind(node.output, text, Kind(Shape(item.dtype, tuple(sizes))))
        self.check(node)
        return True

    # Pieces

    def _add_to_piece(self, node: Node) -> None:
        """Add an operator to the open piece."""
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if operator is not None and operator.has_side_effects:
            raise Unsupported(f"{node.kind}, which has effects")
        arguments = self._operator_arguments(node)
        found = self._kinds_of_results(node, arguments)
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

    def _operator_arguments(self, node: Node) -> list[object]:
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

    def _kinds_of_results(self, node: Node, arguments: list[object]) -> list[object]:
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


def _empty_tensor(shape: Shape):
    return aten("empty.memory_format")([1] * len(shape.sizes), dtype=shape.dtype)
