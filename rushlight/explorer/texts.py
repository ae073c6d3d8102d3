"""Short texts for values, as lists of arguments and the stack machine's registers show them."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.fx.annotations import describe_value
from rushlight.jit.runtime.objects import ScriptObject

MAX_TEXT = 60  # characters
MAX_ITEMS = 4  # lists of tensors show at most this many


def short_text(value: object) -> str:
    """`f32[2, 3]` for a tensor, `<Name>` for an object of TorchScript, else its representation, cut if it is long."""
    if isinstance(value, Tensor):
        return describe_value(value)
    if isinstance(value, ScriptObject):
        return f"<{value.type.name.rpartition('.')[2]}>"
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        text = ", ".join(map(short_text, value[:MAX_ITEMS])) + (", …" if len(value) > MAX_ITEMS else "")
        return f"[{text}]" if isinstance(value, list) else f"({text})"
    text = repr(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
