"""Whether a module's hooks have the signatures that a call of the module needs. Stage: jit, emission.

In: a hook's schema, and the types of its arguments. Out: nothing; ErrorReport names the hook, the module, the found and the
expected types.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.errors import ErrorReport
from rushlight.jit.schema import FunctionSchema
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import NONE, TupleType, Type
from rushlight.jit.types.relations import is_subtype, unshaped


def check_pre_hook(where: SourceRange, hook: str, module: str, schema: FunctionSchema, inputs: Sequence[Type]) -> None:
    """Check a pre-hook's signature: it takes the inputs as one tuple, and returns None, that tuple, or its only element."""
    named = f"Pre-hook '{hook}' on module '{module}'"
    expected = f"{hook}(self, input: {_tuple(inputs)})"
    _check_count(where, named, expected, schema, 2)
    _check_input(where, named, expected, schema, inputs)
    allowed = [NONE, _tuple(inputs), *(inputs if len(inputs) == 1 else ())]
    result = unshaped(schema.return_type)
    if all(result != unshaped(each) for each in allowed):
        listed = ", ".join(f"'{each}'" for each in allowed)
        raise ErrorReport(where, f"{named} returned the wrong type of: '{result}'. Expected is one of {listed}: {expected}")


def check_hook(
    where: SourceRange, hook: str, module: str, schema: FunctionSchema, inputs: Sequence[Type], output: Type
) -> None:
    """Check a hook's signature: it takes the inputs as one tuple, and the result of the module or of the previous hook."""
    named = f"Hook '{hook}' on module '{module}'"
    expected = f"{hook}(self, input: {_tuple(inputs)}, output: {unshaped(output)})"
    _check_count(where, named, expected, schema, 3)
    _check_input(where, named, expected, schema, inputs)
    declared = schema.arguments[2].type
    if not is_subtype(output, declared):
        raise ErrorReport(
            where, f"{named} has the wrong type for the output argument. Received type: '{declared}'. Expected type: "
                   f"'{unshaped(output)}': {expected}",
        )  # fmt: skip


def _tuple(kinds: Sequence[Type]) -> TupleType:
    return TupleType(tuple(map(unshaped, kinds)))


def _check_count(where: SourceRange, named: str, expected: str, schema: FunctionSchema, count: int) -> None:
    if len(schema.arguments) != count:
        raise ErrorReport(
            where, f"{named} was expected to only have exactly {count} inputs but it had {len(schema.arguments)} inputs: "
                   f"{expected}",
        )  # fmt: skip


def _check_input(where: SourceRange, named: str, expected: str, schema: FunctionSchema, inputs: Sequence[Type]) -> None:
    declared = schema.arguments[1].type
    if not isinstance(declared, TupleType):
        raise ErrorReport(
            where, f"{named} expected the input argument to be typed as a Tuple but found type: '{declared}' instead: "
                   f"{expected}",
        )  # fmt: skip
    if len(declared.elements) != len(inputs):
        raise ErrorReport(
            where, f"{named} has the wrong number of contained types for the input argument's Tuple. Received type: "
                   f"'{declared}': {expected}",
        )  # fmt: skip
    for given, kind in zip(inputs, declared.elements, strict=True):
        if not is_subtype(given, kind):
            raise ErrorReport(
                where, f"{named} has the wrong inner types for the input tuple argument. Received type: '{declared}'. Expected "
                       f"type: '{_tuple(inputs)}': {expected}",
            )  # fmt: skip
