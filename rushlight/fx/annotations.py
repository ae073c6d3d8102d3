"""Annotations in the verbose source of a graph: types such as `f32[4, 4]`, and the user's lines.

In: a node's `meta["val"]` (anything with `dtype` and `shape`, or containers of such) and `meta["stack_trace"]`.
Out: an annotation and a comment.
"""

from __future__ import annotations

import os
import re
from typing import Any

from rushlight.core.symbolic import SymInt
from rushlight.fx.node import Node

_DTYPE_ABBREVIATIONS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint64": "u64",
    "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "b8",
}  # fmt: skip

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+)(?:, in (.+))?$')
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
NO_STACK_TRACE = "# No stacktrace found for following nodes"


def value_annotation(node: Node, include_stride: bool = False, include_device: bool = False) -> str:
    """Return `: "f32[4, 4]"` for a node whose `meta["val"]` is a tensor, or the empty string if nothing is known."""
    text = describe_value(node.meta.get("val"), include_stride, include_device)
    return f': "{text}"' if text else ""


def describe_value(value: Any, include_stride: bool = False, include_device: bool = False) -> str:
    """Return `f32[4, 4]` for a tensor; `f32[4, 4][4, 1]cpu` with stride and device; `Sym(s0)`; a tuple in parentheses."""
    if isinstance(value, (tuple, list)):
        parts = [describe_value(item, include_stride, include_device) or "?" for item in value]
        return f"({', '.join(parts)})" if any(part != "?" for part in parts) else ""
    if type(value) is SymInt:
        return f"Sym({value})"
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return ""
    name = str(value.dtype).removeprefix("torch.")
    text = f"{_DTYPE_ABBREVIATIONS.get(name, name)}{list(value.shape)}"
    if include_stride:
        text += f"{list(value.stride())}"
    return f"{text}{value.device}" if include_device else text


def source_comment(node: Node) -> str:
    """Return `# File: model.py:12 in forward, code: return x + y` from the node's stack trace."""
    frame = innermost_frame(node.stack_trace)
    if frame is None:
        return NO_STACK_TRACE
    path, line, function, code = frame
    location = f"# File: {path}:{line}" + (f" in {function}" if function else "")
    return f"{location}, code: {code}" if code else location


def innermost_frame(stack_trace: str | None) -> tuple[str, str, str | None, str] | None:
    """Return the last frame of a formatted stack that is outside of this package, or the last one if all are inside: path, line

    number, function (or None) and source line (or "").
    """
    lines, last = (stack_trace or "").splitlines(), None
    for index in range(len(lines) - 1, -1, -1):
        match = _FRAME.match(lines[index])
        if match:
            code = lines[index + 1].strip() if index + 1 < len(lines) else ""
            last = last or (match[1], match[2], match[3], code)
            if not match[1].startswith(PACKAGE_FOLDER):
                return match[1], match[2], match[3], code
    return last
