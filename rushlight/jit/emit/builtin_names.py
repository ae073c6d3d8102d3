"""The meaning of Python's built-in functions in scripted code, the user's or an archive's. Stage: jit, emission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.jit.emit.callables import BuiltinFunction, CastValue
from rushlight.jit.emit.sugared import NamedValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import BOOL, COMPLEX, FLOAT, INT, STRING

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter

BUILTIN_NAMES: dict[str, SugaredValue] = {
    "int": CastValue(INT, "aten::Int"), "float": CastValue(FLOAT, "aten::Float"), "bool": CastValue(BOOL, "aten::Bool"),
    "complex": CastValue(COMPLEX, "aten::Complex"), "str": CastValue(STRING, "aten::str"), "min": BuiltinFunction("prim::min"),
    "max": BuiltinFunction("prim::max"), "abs": BuiltinFunction("prim::abs"), "all": BuiltinFunction("aten::all"),
    "any": BuiltinFunction("aten::any"), "sum": BuiltinFunction("aten::sum"), "divmod": BuiltinFunction("aten::divmod"),
    "ord": BuiltinFunction("aten::ord"), "chr": BuiltinFunction("aten::chr"), "hex": BuiltinFunction("aten::hex"),
    "bin": BuiltinFunction("aten::bin"), "oct": BuiltinFunction("aten::oct"), "sorted": BuiltinFunction("aten::sorted"),
    "round": BuiltinFunction("aten::round"), "hash": BuiltinFunction("aten::hash"), "id": BuiltinFunction("prim::id"),
    "pow": BuiltinFunction("aten::pow"), "rangelist": BuiltinFunction("prim::rangelist"),
}  # fmt: skip
"""Python's built-in functions and types; the compiler itself knows further ones (`calls.py`)."""


@dataclass
class FormValue(SugaredValue):
    """A function with a compiler rule: `annotate`, `fork`, `is_scripting`."""

    form: str

    def kind(self) -> str:
        return f"function '{self.form}'"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        raise ErrorReport(where, f"'{self.form}' can only be called by its name")
