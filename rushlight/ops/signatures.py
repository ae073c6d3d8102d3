"""Signatures and docstrings of operators for `help()` and editors, derived from the schemas.

In: the packet of an operator. Out: an `inspect.Signature`, created lazily, and a text.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from rushlight.ops.descriptions import DOCSTRINGS
from rushlight.ops.schema import Argument

if TYPE_CHECKING:
    from rushlight.ops.dispatcher import OpOverload
    from rushlight.ops.packet import OpOverloadPacket

_KINDS = {
    "Scalar": "Number", "ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format", "Device": "device",
    "SymInt": "int", "Generator": "Generator", "QScheme": "qscheme",
}  # fmt: skip
_PUBLIC_NAMES = {"self": "input"}


class OperatorSignature(inspect.Signature):
    """The signature of an operator's function, created at first use."""

    __slots__ = ("_packet",)

    def __init__(self, packet: OpOverloadPacket) -> None:
        self._packet = packet

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        super().__init__(parameters_of(self._packet), return_annotation=_annotate_return(general_overload(self._packet)))
        return getattr(self, name)

    def replace(self, **changes: Any) -> inspect.Signature:
        """Return the same signature with other parameters, or another annotation of the result."""
        plain = inspect.Signature(list(self.parameters.values()), return_annotation=self.return_annotation)
        return plain.replace(**changes)

    __replace__ = replace


def general_overload(packet: OpOverloadPacket) -> OpOverload:
    """Return the overload with the most arguments; the first of several."""
    return max(packet._declared, key=lambda op: len(op._schema.arguments))


def parameters_of(packet: OpOverloadPacket) -> list[inspect.Parameter]:
    """Return the parameters of an operator's function. Those that some overloads lack are optional."""
    chosen = general_overload(packet)
    schema = chosen._schema
    made, optional = [], False
    for position, argument in enumerate(schema.arguments):
        is_keyword = position >= schema.positional_count
        everywhere = all(argument.name in op._schema.positions for op in packet._declared)
        optional = not is_keyword and (optional or argument.has_default or not everywhere)
        default = argument.default if argument.has_default else inspect.Parameter.empty
        if default is inspect.Parameter.empty and (optional or not everywhere):
            default = None
        kind = inspect.Parameter.KEYWORD_ONLY if is_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        name = _PUBLIC_NAMES.get(argument.name, argument.name)
        made.append(inspect.Parameter(name, kind, default=default, annotation=_annotation(argument)))
    if takes_out(chosen):
        made.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None"))
    return made


def takes_out(op: OpOverload) -> bool:
    """Return whether an operator's function accepts `out=`."""
    returns = op.declaration.rpartition("-> ")[2]
    return "out" not in op._schema.positions and not op.is_mutable and returns == "Tensor"


def _annotation(argument: Argument) -> str:
    kind = argument.type
    name = _KINDS.get(kind.base, kind.base)
    if kind.is_list:
        name = f"Sequence[{name}]" if kind.length is None else f"{name} | Sequence[{name}]"
    return f"{name} | None" if kind.optional or argument.has_default and argument.default is None else name


def _annotate_return(op: OpOverload) -> str:
    returns = op._schema.returns
    kinds = [_KINDS.get(each.type.base, each.type.base) for each in returns]
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def documentation(packet: OpOverloadPacket) -> str:
    """Return the docstring of an operator's function, or else its schemas."""
    name = packet.__name__
    text = DOCSTRINGS.get(name)
    if text is not None:
        return text
    base = name.removesuffix("_").removesuffix("_copy")
    if base != name and base in DOCSTRINGS:
        how = "in place: the first argument gets the values, and is returned" if name.endswith("_") else "as a new tensor"
        return f"`{base}`, {how}. See the description of `{base}`."
    schemas = "\n".join([op.declaration for op in packet._declared])
    return f"{schemas}\n\nThe operator of this name in ATen; its schemas above say what it takes and returns."
