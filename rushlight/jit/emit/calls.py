"""Calls: operators, functions, methods, and functions with compiler rules. Part of the emitter."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.emit.builtin_functions import emit_number_first
from rushlight.jit.emit.callables import SpecialForm, SpecialMethod
from rushlight.jit.emit.iterables import EnumerateValue, RangeValue, ReversedValue, ZipValue
from rushlight.jit.emit.matching import Match
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.errors import ErrorReport
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.operators.registry import Operator, operators_named, with_out_forms
from rushlight.jit.schema import FunctionSchema
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Apply, ListComp, ListLiteral, Select, Starred, StringLiteral, Tree, Var
from rushlight.jit.types.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    STRING,
    ClassType,
    DictType,
    FutureType,
    ListType,
    TensorType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import NoMatch, is_subtype, unshaped

_TOLIST_KINDS = (INT, FLOAT, COMPLEX, BOOL)
_FAMILIES = {"list": ListType, "tuple": TupleType, "dict": DictType}


def _unknown_operator_message(name: str) -> str:
    """Return the error message for an unknown operator; those of other projects can be registered."""
    namespace = name.partition("::")[0]
    said = f"Unknown builtin op: {name}.\nCould not find any similar ops to {name}"
    if namespace in ("aten", "prim"):
        return said
    return (
        f"{said}. Operators of other projects are registered before the code that calls them is compiled: "
        f"rushlight.jit.register_operator('{name}(Tensor x) -> Tensor', function), with its own schema; "
        f"rushlight.library.custom_op also serves eager calls"
    )


def _no_signature_message(reasons: Sequence[str], count: int) -> str:
    """Return the error message for a call that none of `count` signatures accepts."""
    head = "Arguments for call are not valid.\nThe following variants are available:\n\n" if count > 1 else ""
    return head + "\n\n".join(dict.fromkeys(reasons))


class CallEmitter:
    """The emitter's rules for calls."""

    def emit_apply(self, tree: Apply, hint: Type | None = None) -> SugaredValue:
        """Emit `callee(arguments)`."""
        try:
            return self._emit_call_of(tree, hint)
        except ErrorReport as error:
            error.add_call(self.full_name, tree.range)
            raise

    def _emit_call_of(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if isinstance(tree.callee, Var) and self.environment.find(tree.callee.name) is None:
            special = _SPECIAL.get(tree.callee.name)
            if special is not None and not self.is_shadowed(tree.callee.name):
                return special(self, tree, hint)
        callee = self.emit_sugared(tree.callee)
        if isinstance(callee, SpecialForm):
            return callee.emit(self, tree)
        if isinstance(callee, SpecialMethod) and callee.name == "tolist":
            return self.emit_tolist(tree.range, callee.value, hint)
        form = getattr(callee, "form", None)
        if form is not None:
            return _FORMS[form](self, tree, hint)
        return callee.call(tree.range, self, self.emit_arguments(tree.inputs), self.emit_keywords(tree))

    def form_of(self, callee: Tree) -> str | None:
        """Return the compiler rule for a callee such as `torch.jit.isinstance`; None for any other callee."""
        root = callee
        while isinstance(root, Select):
            root = root.value
        if root is callee or not isinstance(root, Var) or self.environment.find(root.name) is not None:
            return None
        return getattr(self.emit_sugared(callee), "form", None)

    def is_shadowed(self, name: str) -> bool:
        """Return whether the user's program redefines a built-in name."""
        return self.resolver.shadows(name) if hasattr(self.resolver, "shadows") else False

    def emit_arguments(self, trees: list[Tree]) -> list[NamedValue]:
        """Return positional arguments, with starred ones unpacked."""
        found: list[NamedValue] = []
        for tree in trees:
            if isinstance(tree, Starred):
                parts = self.emit_sugared(tree.value).as_tuple(tree.range, self)
                found += [NamedValue(tree.range, part.as_value(tree.range, self)) for part in parts]
            else:
                found.append(NamedValue(tree.range, self.emit_expression(tree)))
        return found

    def emit_keywords(self, tree: Apply) -> list[NamedValue]:
        """Return keyword arguments."""
        return [NamedValue(each.range, self.emit_expression(each.value), each.ident.name) for each in tree.attributes]

    def named_values(self, values: Sequence[Value], where: SourceRange) -> list[NamedValue]:
        """Return graph values as arguments."""
        return [NamedValue(where, value) for value in values]

    # Call operators

    def call_operator(self, name: str, where: SourceRange, values: Sequence[Value]) -> SugaredValue:
        """Return an operator on graph values, by position."""
        return self.emit_operator(name, where, self.named_values(values, where), [])

    def emit_operator(
        self, name: str, where: SourceRange, args: Sequence[NamedValue], keywords: Sequence[NamedValue],
        self_value: NamedValue | None = None, overload: str | None = None,
    ) -> SugaredValue:  # fmt: skip
        """Emit the overload of an operator that fits the arguments; only the one named `overload`, if given."""
        has_out = any(each.name == "out" for each in keywords)
        operators = with_out_forms(name) if has_out else operators_named(name)
        if overload is not None:
            operators = [each for each in operators if each.schema.overload == overload]
        if not operators:
            raise ErrorReport(where, _unknown_operator_message(name))
        with self.graph.source(where):
            if self_value is None:
                swapped = emit_number_first(self, name, where, args, keywords)
                if swapped is not None:
                    return swapped
            operator, match = self.matcher.match_operators(operators, where, args, keywords, self_value, name)
            return self.insert_operator(operator, match, where)

    def insert_operator(self, operator: Operator, match: Match, where: SourceRange) -> SugaredValue:
        """Insert the node of an operator whose arguments matched."""
        schema = operator.schema
        node = self.graph.insert(schema.name, match.inputs, 0)
        node.source_range = where
        outputs = [node.add_output(kind) for kind in match.return_types]
        if not outputs:
            return SimpleValue(self.constant(None, where))
        if len(outputs) == 1:
            return SimpleValue(outputs[0])
        fields = tuple(result.name for result in schema.returns)
        kind = TupleType(tuple(match.return_types), f"__torch__.{schema.name.partition('::')[2]}", fields) if all(fields) else \
            TupleType(tuple(match.return_types))  # fmt: skip
        return SimpleValue(self.insert("prim::TupleConstruct", outputs, kind, where))

    # Call functions and methods

    def emit_call(
        self, functions: Sequence[Function], where: SourceRange, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        """Emit a call of the first overload that fits."""
        reasons = []
        for convert in (False, True):
            for function in functions:
                try:
                    with self.matcher.tentative():
                        match = self.matcher.match(function.schema, where, args, keywords, convert)
                except NoMatch as error:
                    reasons.append(f"{function.schema}:\n{error}")
                    continue
                callee = self.function_constant(function, where)
                return SimpleValue(
                    self.insert("prim::CallFunction", [callee, *match.inputs], function.schema.return_type, where)
                )
        raise ErrorReport(where, _no_signature_message(reasons[len(functions) :], len(functions)))

    def emit_method_call(
        self, schema: FunctionSchema, name: str, target: Value, where: SourceRange, args: Sequence[NamedValue],
        keywords: Sequence[NamedValue],
    ) -> SugaredValue:  # fmt: skip
        """Emit a call of a method of an object or an interface."""
        return self.emit_overloaded_method_call([(schema, name)], target, where, args, keywords)

    def emit_overloaded_method_call(
        self, signatures: Sequence[tuple[FunctionSchema, str]], target: Value, where: SourceRange, args: Sequence[NamedValue],
        keywords: Sequence[NamedValue],
    ) -> SugaredValue:  # fmt: skip
        """Emit a call of the first method whose parameters have the arguments' types; else of the first that accepts them after
        conversion."""
        reasons = []
        for convert in (False, True):
            for schema, name in signatures:
                try:
                    with self.matcher.tentative():
                        match = self.matcher.match(schema, where, args, keywords, convert, NamedValue(where, target, "self"))
                except NoMatch as error:
                    reasons.append(f"{schema}:\n{error}")
                    continue
                node = self.graph.insert("prim::CallMethod", match.inputs).set("name", name)
                node.source_range = where
                return SimpleValue(node.output.set_type(schema.return_type))
        raise ErrorReport(where, _no_signature_message(reasons[len(signatures) :], len(signatures)))

    def emit_tolist(self, where: SourceRange, value: Value, hint: Type | None = None) -> SugaredValue:
        """Emit `tensor.tolist()`, which needs an annotated type."""
        if hint is None:
            raise ErrorReport(where, "Expected type hint for result of tolist(). Write e.g. x: List[float] = tensor.tolist()")
        element, depth = hint, 0
        while isinstance(element, ListType):
            element, depth = element.element, depth + 1
        if element not in _TOLIST_KINDS:
            problem = f"{element} is not one of the supported element types for tolist: int, float, complex and bool"
            raise ErrorReport(where, problem)
        numbers = [self.constant(number, where) for number in (depth, _TOLIST_KINDS.index(element))]
        return SimpleValue(self.insert("prim::tolist", [value, *numbers], hint, where))

    def type_family(self, tree: Tree) -> type | None:
        """Return the types for which isinstance tests with `list`, `tuple` or `dict`."""
        return _FAMILIES.get(tree.name) if isinstance(tree, Var) else None

    # Call functions that have a compiler rule

    def _emit_print(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if tree.attributes:
            raise ErrorReport(tree.range, "print doesn't accept any keyword arguments")
        values = [each.value for each in self.emit_arguments(tree.inputs)]
        self.graph.insert("prim::Print", values, 0).source_range = tree.range
        return SimpleValue(self.constant(None, tree.range))

    def _emit_isinstance(self, tree: Apply, hint: Type | None) -> SugaredValue:
        return SimpleValue(self.condition_value(tree))

    def _emit_getattr(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if len(tree.inputs) not in (2, 3) or not isinstance(tree.inputs[1], StringLiteral):
            raise ErrorReport(tree.range, "getattr's second argument must be a string literal")
        target = self.emit_sugared(tree.inputs[0])
        name = tree.inputs[1].text
        if len(tree.inputs) == 3 and not target.has_attribute(tree.range, self, name):
            return self.emit_sugared(tree.inputs[2])
        return target.attribute(tree.range, self, name)

    def _emit_range(self, tree: Apply, hint: Type | None) -> SugaredValue:
        values = [self._int_of(index, each) for index, each in enumerate(self.emit_arguments(tree.inputs))]
        if not 1 <= len(values) <= 3 or tree.attributes:
            limit = "at least 1" if len(values) < 1 else "at most 3"
            raise ErrorReport(tree.range, f"range expected {limit} arguments, got {len(values)}")
        if len(values) == 1:
            return RangeValue(None, values[0], None)
        step = values[2] if len(values) == 3 else self.constant(1, tree.range)
        return RangeValue(values[0], values[1], step)

    def _int_of(self, index: int, given: NamedValue) -> Value:
        value = self.value_of(given)
        if value.type != INT:
            raise ErrorReport(given.range, f"all inputs of range must be ints, found {value.type} in argument {index}")
        return value

    def _sugared_arguments(self, tree: Apply) -> list[SugaredValue]:
        return [self.iterable(self.emit_sugared(each), each.range) for each in tree.inputs]

    def _emit_zip(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if not tree.inputs:
            raise ErrorReport(tree.range, "zip expected at least 1 arguments, got 0")
        parts: list[SugaredValue] = []
        for each in tree.inputs:
            part = self.iterable(self.emit_sugared(each), each.range)
            elements = part.static_elements(tree.range, self)
            parts.append(part if elements is None else TupleOfSugared(elements))
        return ZipValue(parts)

    def _emit_enumerate(self, tree: Apply, hint: Type | None) -> SugaredValue:
        start = [self.emit_expression(each.value) for each in tree.attributes if each.ident.name == "start"]
        start += [self.emit_expression(each) for each in tree.inputs[1:2]]
        if not 1 <= len(tree.inputs) <= 2:
            limit = "at least 1" if not tree.inputs else "at most 2"
            raise ErrorReport(tree.range, f"enumerate expected {limit} arguments, got {len(tree.inputs)}")
        if len(start) != len(tree.inputs) - 1 + len(tree.attributes):
            raise ErrorReport(tree.range, "enumerate expected an iterable and at most a start")
        return EnumerateValue(self.iterable(self.emit_sugared(tree.inputs[0]), tree.range), start[0] if start else None)

    def _emit_reversed(self, tree: Apply, hint: Type | None) -> SugaredValue:
        return ReversedValue(self._sugared_arguments(tree)[0])

    def _emit_len(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if len(tree.inputs) != 1 or tree.attributes:
            raise ErrorReport(tree.range, "len expects exactly one argument")
        target = self.emit_sugared(tree.inputs[0])
        value = target.simple_value()
        if target.has_own_length:
            return target.attribute(tree.range, self, "__len__").call(tree.range, self, [], [])
        if value is not None and isinstance(value.type, ClassType):
            return self.simple.attribute(tree.range, value, "__len__").call(tree.range, self, [], [])
        return SimpleValue(target.length(tree.range, self))

    def _emit_list(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if not tree.inputs:
            kind = hint if isinstance(hint, ListType) else ListType(_emit_tensor())
            return SimpleValue(self.insert("prim::ListConstruct", [], kind, tree.range))
        part = self._sugared_arguments(tree)[0]
        value = part.simple_value()
        if value is not None and (isinstance(value.type, ListType) or value.type == STRING):
            return self.call_operator("aten::list", tree.range, [value])
        if value is not None and isinstance(value.type, TensorType):
            return SimpleValue(self.call_operator("aten::unbind", tree.range, [value]).as_value(tree.range, self))
        return SimpleValue(self._collect(part, tree.range, hint))

    def _collect(self, part: SugaredValue, where: SourceRange, hint: Type | None) -> Value:
        """Return a list of an iterable's elements."""
        elements = part.static_elements(where, self)
        if elements is not None:
            values = [each.as_value(where, self) for each in elements]
            kind = hint if isinstance(hint, ListType) else ListType(unshaped(values[0].type) if values else _emit_tensor())
            return self.insert("prim::ListConstruct", values, kind, where)
        listed = self.graph.insert("prim::ListConstruct")
        loop = self.graph.insert("prim::Loop", [part.length(where, self)], 0)
        position = loop.add_block().add_input(kind=INT)
        with self.graph.inserting(at_end_of=loop.blocks[0]):
            item = part.item(where, self, position).as_value(where, self)
            listed.output.type = ListType(unshaped(item.type))
            self.insert("aten::append", [listed.output, item], listed.output.type, where)
        return listed.output

    def _emit_tuple(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if not tree.inputs:
            return TupleOfSugared([])
        if len(tree.inputs) > 1 or tree.attributes:
            given = len(tree.inputs) + len(tree.attributes)
            raise ErrorReport(tree.range, f"tuple expected at most 1 argument, got {given}")
        part = self.emit_sugared(tree.inputs[0])
        return TupleOfSugared(part.static_elements(tree.range, self) or part.as_tuple(tree.range, self))

    def _emit_dict(self, tree: Apply, hint: Type | None) -> SugaredValue:
        if tree.attributes and tree.inputs:
            return SimpleValue(self._emit_dict_with(tree, hint))
        if tree.attributes:
            pairs = [
                self.make_tuple([self.constant(each.ident.name, each.range), self.emit_expression(each.value)], each.range)
                for each in tree.attributes
            ]
            listed = self.insert("prim::ListConstruct", pairs, ListType(unshaped(pairs[0].type)), tree.range)
            return SimpleValue(self.collect_pairs(SimpleValue(listed), tree.range, hint))
        if not tree.inputs:
            kind = hint if isinstance(hint, DictType) else DictType(STRING, _emit_tensor())
            return SimpleValue(self.insert("prim::DictConstruct", [], kind, tree.range))
        part = self.emit_sugared(tree.inputs[0])
        value = part.simple_value()
        if value is not None and isinstance(value.type, DictType):
            return self.call_operator("aten::dict", tree.range, [value])
        return SimpleValue(self.collect_pairs(part, tree.range, hint))

    def _emit_dict_with(self, tree: Apply, hint: Type | None) -> Value:
        """Emit `dict(first, key=value)`: a dict of the first argument, with the pairs added."""
        if isinstance(tree.inputs[0], ListLiteral) and not tree.inputs[0].items:
            return self._emit_dict(Apply(tree.range, tree.callee, [], tree.attributes), hint).as_value(tree.range, self)
        made = self._emit_dict(Apply(tree.range, tree.callee, tree.inputs, []), hint).as_value(tree.range, self)
        for each in tree.attributes:
            pair = [self.constant(each.ident.name, each.range), self.emit_expression(each.value)]
            self.call_operator("aten::_set_item", tree.range, [made, *pair])
        return made

    # Functions of torch.jit

    def _emit_annotate(self, tree: Apply, hint: Type | None) -> SugaredValue:
        kind = self.type_of_tree(tree.inputs[0])
        value = self.matcher.convert_value(self.emit_expression(tree.inputs[1], kind), kind, True)
        if not is_subtype(value.type, kind):
            if isinstance(tree.inputs[1], ListComp | ListLiteral):
                raise ErrorReport(tree.range, f"Expected an annotation of type List, got {kind}")
            raise ErrorReport(tree.range, f"expected an expression of type {kind} but found {value.type}")
        if value.type is NONE and kind is not NONE:
            value = self.constant(None, tree.range).set_type(kind)
        elif value.type != kind and not isinstance(kind, TensorType):
            value = self.insert("prim::unchecked_cast", [value], kind, tree.range)
        return SimpleValue(value)

    def _emit_unchecked_cast(self, tree: Apply, hint: Type | None) -> SugaredValue:
        kind = self.type_of_tree(tree.inputs[0])
        return SimpleValue(self.insert("prim::unchecked_cast", [self.emit_expression(tree.inputs[1])], kind, tree.range))

    def _emit_uninitialized(self, tree: Apply, hint: Type | None) -> SugaredValue:
        return SimpleValue(self.insert("prim::Uninitialized", [], self.type_of_tree(tree.inputs[0]), tree.range))

    def _emit_unwrap(self, tree: Apply, hint: Type | None) -> SugaredValue:
        return self.call_operator("aten::_unwrap_optional", tree.range, [self.emit_expression(tree.inputs[0])])

    def _emit_fork(self, tree: Apply, hint: Type | None) -> SugaredValue:
        """Emit `fork(function, arguments)`: a call that may run concurrently with the code after it."""
        callee = self.emit_sugared(tree.inputs[0])
        outer = self.graph.insert("prim::forkClosure", [], 0)
        outer.source_range = tree.range
        block = outer.add_block()
        arguments, keywords = self.emit_arguments(tree.inputs[1:]), self.emit_keywords(tree)
        outer.move_before(self.graph.insert_point)
        with self.graph.inserting(at_end_of=block):
            result = callee.call(tree.range, self, arguments, keywords).as_value(tree.range, self)
            block.add_output(result)
        return SimpleValue(outer.add_output(FutureType(unshaped(result.type))))

    def _emit_wait(self, tree: Apply, hint: Type | None) -> SugaredValue:
        value = self.emit_expression(tree.inputs[0])
        if not isinstance(value.type, FutureType):
            raise ErrorReport(tree.range, f"wait expects a Future, got {value.type}")
        return SimpleValue(self.insert("aten::wait", [value], value.type.element, tree.range))

    def _is_scripting(self, tree: Apply, hint: Type | None) -> SugaredValue:
        value = self.constant(True, tree.range)
        value.node.set("static", True)
        return SimpleValue(value)

    def _is_tracing(self, tree: Apply, hint: Type | None) -> SugaredValue:
        value = self.constant(False, tree.range)
        value.node.set("static", True)
        return SimpleValue(value)


def _emit_tensor() -> Type:
    return TensorType()


_SPECIAL = {
    "print": CallEmitter._emit_print, "isinstance": CallEmitter._emit_isinstance, "hasattr": CallEmitter._emit_isinstance,
    "getattr": CallEmitter._emit_getattr, "range": CallEmitter._emit_range, "zip": CallEmitter._emit_zip,

       "enumerate": CallEmitter._emit_enumerate,
    "reversed": CallEmitter._emit_reversed, "len": CallEmitter._emit_len, "list": CallEmitter._emit_list,
    "tuple": CallEmitter._emit_tuple,
    "dict": CallEmitter._emit_dict, "annotate": CallEmitter._emit_annotate, "uninitialized": CallEmitter._emit_uninitialized,
    "unchecked_cast": CallEmitter._emit_unchecked_cast, "fork": CallEmitter._emit_fork,
}  # fmt: skip
_FORMS = {
    "annotate": CallEmitter._emit_annotate, "fork": CallEmitter._emit_fork, "wait": CallEmitter._emit_wait, "isinstance":
    CallEmitter._emit_isinstance,
    "is_scripting": CallEmitter._is_scripting, "is_tracing": CallEmitter._is_tracing, "unwrap": CallEmitter._emit_unwrap,
    "unchecked_cast": CallEmitter._emit_unchecked_cast, "dict": CallEmitter._emit_dict,
}  # fmt: skip
