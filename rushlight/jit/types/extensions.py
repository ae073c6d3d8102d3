"""The types of torch's extension classes: packed weights of quantized layers, which are opaque to scripted code.

In: a qualified name such as `__torch__.torch.classes.quantized.LinearPackedParamsBase`. Out: its type, one for all archives.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.jit.types.kinds import ClassType

PREFIX = "__torch__.torch.classes."
NAMES = (
    "quantized.LinearPackedParamsBase", "quantized.Conv2dPackedParamsBase", "quantized.Conv3dPackedParamsBase",
    "quantized.EmbeddingPackedParamsBase", "rnn.CellParamsBase",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ExtensionType(ClassType):
    """A class that no code defines; its methods are operators."""


_TYPES = {PREFIX + name: ExtensionType(PREFIX + name) for name in NAMES}


def extension_type(name: str) -> ExtensionType | None:
    """Return the type of a qualified name; None if there is no such class."""
    return _TYPES.get(name)


def extension_type_of(value: object) -> ExtensionType | None:
    """Return the type of packed weights; None for other values."""
    name = getattr(type(value), "class_name", None)
    return _TYPES.get(PREFIX + name) if isinstance(name, str) else None
