"""The operators of jit graphs, by name: those of the dispatcher, and the jit's own on numbers, strings and lists.

In: a name such as `aten::add`. Out: its overloads, each a schema and a function over a list of arguments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushlight.core.lazy_module import fetch
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_of_number, layout_of_number, memory_format_of_number
from rushlight.jit.operators.declared import declared_schemas, refusal
from rushlight.jit.operators.extensions import gives_objects, giving_objects
from rushlight.jit.schema import Argument, FunctionSchema, from_aten, parse_schema
from rushlight.jit.types.kinds import TENSOR, ListType, TensorType
from rushlight.ops.dispatcher import OpOverload, all_operators
from rushlight.quantized.loading import ensure_operators, is_quantized_operator

RANDOM = frozenset(
    "alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout feature_dropout geometric log_normal "
    "multinomial native_dropout normal poisson rand rand_like randint randint_like randn randn_like random randperm rrelu "
    "rrelu_with_noise uniform".split()
)
"""Operators that draw random numbers, without `aten::` and the underscore of those in place."""


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """An overload: its schema and its function. `function` takes the arguments by position in the schema's order, and returns
    the result, or a tuple of several. `has_side_effects`: it can't be dropped, repeated or moved. `is_missing`: torch has it
    but the library does not, so it raises. `plain`: (a function without the last arguments, their defaults)."""

    schema: FunctionSchema
    function: Callable
    has_side_effects: bool = False
    op: OpOverload | None = None
    is_missing: bool = False
    plain: tuple[Callable, tuple] | None = None

    @property
    def full_name(self) -> str:
        """Return the name with the overload's: `aten::add.int`."""
        return f"{self.schema.name}.{self.schema.overload}" if self.schema.overload else self.schema.name

    @property
    def is_pure(self) -> bool:
        """Return whether it is a pure function: equal arguments give equal results without side effects."""
        random = self.schema.name.removeprefix("aten::").removesuffix("_") in RANDOM
        return not (self.has_side_effects or self.schema.is_mutable or random)


CONVERTERS: dict[str, Callable] = {
    "ScalarType": dtype_of_number, "Layout": layout_of_number, "MemoryFormat": memory_format_of_number,
}  # fmt: skip
"""Converts the numbers in graphs to the dispatcher's dtypes, layouts and memory formats."""
_lock = threading.RLock()
_own: dict[str, list[Operator]] = {}
_declarations: dict[str, list[tuple[str, Callable, bool]]] = {}
"""The library's own overloads, until one of their name is asked for."""
_DECLARING = ("archived", "attention", "containers", "conversions", "gradients", "numbers", "special", "strings", "tensors")
"""The modules beside this one that declare operators, imported when an operator is asked for that may be theirs."""
_declared_all: list[bool] = []
_found: dict[str, tuple[Operator, ...]] = {}
matched: dict[tuple, Operator | None] = {}
"""Overloads by a name, a number of results and types of arguments, as `operator_of` found them; empty after each change."""
MAX_MATCHED = 4096
_of_dispatcher: dict[str, list[OpOverload]] = {}
_dispatcher_count = 0


def declare_operator(schema: str, function: Callable, has_side_effects: bool = False) -> None:
    """Add an overload of the library. Its schema is parsed when its name is first looked up."""
    name = schema.partition("(")[0].partition(".")[0]
    with _lock:
        _declarations.setdefault(name, []).append((schema, function, has_side_effects))
        _forget(name)


def _forget(name: str) -> None:
    """Invalidate the cached overloads of a name."""
    _found.pop(name, None)
    matched.clear()


def _own_operators(name: str) -> list[Operator]:
    """Return the overloads that are not the dispatcher's; the caller holds the lock."""
    if not _declared_all:
        _declared_all.append(True)
        for module in _DECLARING:
            fetch(f"rushlight.jit.operators.{module}")
    declared = [Operator(parse_schema(schema), *rest) for schema, *rest in _declarations.pop(name, ())]
    if declared:
        _own[name] = [*_own.get(name, ()), *declared]
    return _own.get(name, [])


def own_names() -> list[str]:
    """Return the names of all operators that are not the dispatcher's."""
    with _lock:
        _own_operators("")
        return sorted({*_own, *_declarations})


def register_operator(schema: str, function: Callable, has_side_effects: bool = False) -> Operator:
    """Add an overload at run time; `function` takes the schema's arguments by position."""
    operator = Operator(parse_schema(schema), function, has_side_effects)
    with _lock:
        _own[operator.schema.name] = [*_own_operators(operator.schema.name), operator]
        _forget(operator.schema.name)
    return operator


def deregister_operator(operator: Operator) -> None:
    """Remove an overload."""
    with _lock:
        _own[operator.schema.name].remove(operator)
        _forget(operator.schema.name)


def operators_named(name: str) -> tuple[Operator, ...]:
    """Return all overloads of a name such as `aten::add`; none if the name is unknown."""
    found = _found.get(name)
    if found is None:
        with _lock:
            if is_quantized_operator(name):
                ensure_operators()
            own = sorted(_own_operators(name), key=_begins_without_tensor)
            made = [*_from_dispatcher(name), *own] or _missing_overloads(name)
            found = tuple(made)
            if found:
                _found[name] = found
    return found


def _begins_without_tensor(operator: Operator) -> bool:
    """Return whether an overload comes after those for tensors, so that a tensor stays a tensor where possible."""
    arguments = operator.schema.arguments
    return not arguments or not isinstance(arguments[0].type, TensorType)


def _missing_overloads(name: str) -> list[Operator]:
    """Return overloads that raise, for an operator of torch that is missing here."""
    return [Operator(parse_schema(text), refusal(name), True, is_missing=True) for text in declared_schemas(name)]


def with_out_forms(name: str) -> tuple[Operator, ...]:
    """Return all overloads of a name, plus `out` variants of those that return one tensor."""
    found = operators_named(name)
    if not any("out" in each.schema.positions for each in found):
        with _lock:
            _own[name] = [*_own_operators(name), *(_out_form(each) for each in found if _gives_a_tensor(each.schema))]
            _forget(name)
    return operators_named(name)


def _gives_a_tensor(schema: FunctionSchema) -> bool:
    return not schema.is_mutable and not schema.is_vararg and schema.return_type == TENSOR


def _out_form(operator: Operator) -> Operator:
    schema = operator.schema
    overload = f"{schema.overload}_out" if schema.overload else "out"
    arguments = (*schema.arguments, Argument("out", TENSOR, kwarg_only=True, alias="a!"))
    made = FunctionSchema(schema.name, overload, arguments, (Argument("", TENSOR, alias="a!"),))

    def write(*args: object) -> Tensor:
        result, out = operator.function(*args[:-1]), args[-1]
        if out.shape != result.shape:
            out.resize_(list(result.shape))
        return out.copy_(result)

    return Operator(made, write)


def _from_dispatcher(name: str) -> list[Operator]:
    return [_wrap(op) for op in _overloads(name)]


def _overloads(name: str) -> list[OpOverload]:
    """Return the dispatcher's overloads of a name, in the order in which they are tried."""
    global _dispatcher_count
    operators = all_operators()
    if len(operators) != _dispatcher_count:
        _of_dispatcher.clear()
        for op in operators:
            _of_dispatcher.setdefault(f"{op.namespace}::{op._opname}", []).append(op)
        _dispatcher_count = len(operators)
    return sorted(_of_dispatcher.get(name, ()), key=_rank)


def _rank(op: OpOverload) -> int:
    """Return the order in which overloads are tried: the plain one, those for numbers, those with `out`."""
    overload = op._schema.overload
    return 2 if overload in ("dims", "correction") else int(bool(overload))


def _wrap(op: OpOverload) -> Operator:
    schema = from_aten(op._schema, op.namespace)
    converters = [
        (index, CONVERTERS[argument.type.base])
        for index, argument in enumerate(op._schema.arguments)
        if argument.type.base in CONVERTERS
    ]
    count = op._schema.positional_count
    keywords = [argument.name for argument in op._schema.arguments[count:]]
    function = op if not keywords and not converters else _adapt_call(op, count, keywords, converters)
    plain = None if function is op else _plain(op, count, converters)
    if len(schema.returns) == 1 and isinstance(schema.returns[0].type, ListType):
        function, plain = _giving_list(function), None
    if gives_objects(op._schema):
        function, plain = giving_objects(function), None
    return Operator(schema, function, not schema.returns, op, plain=plain)


def _plain(op: OpOverload, count: int, converters: Sequence[tuple[int, Callable]]) -> tuple[Callable, tuple] | None:
    """Return the operator itself, for calls that leave its keyword arguments at their defaults."""
    keywords = op._schema.arguments[count:]
    if any(index < count for index, _ in converters) or not all(argument.has_default for argument in keywords):
        return None
    return op, tuple(argument.default for argument in keywords)


def _giving_list(function: Callable) -> Callable:
    return lambda *args: list(function(*args))


def _adapt_call(op: OpOverload, count: int, keywords: Sequence[str], converters: Sequence[tuple[int, Callable]]) -> Callable:
    def call(*args):
        if converters:
            args = list(args)
            for index, convert in converters:
                if args[index] is not None:
                    args[index] = convert(args[index])
        return op(*args[:count], **dict(zip(keywords, args[count:], strict=True)))

    return call


def operator_at(name: str, index: int) -> Operator | None:
    """Return the overload at an index among those of its name, without loading the others; None if there is none."""
    found = _found.get(name)
    if found is None and not is_quantized_operator(name):
        with _lock:
            overloads = _overloads(name)
            if 0 <= index < len(overloads):
                return _wrap(overloads[index])
    found = operators_named(name)
    return found[index] if 0 <= index < len(found) else None


def find_operator(name: str, overload: str) -> Operator | None:
    """Return one overload by its name."""
    return next((each for each in operators_named(name) if each.schema.overload == overload), None)
