"""Graphs of the two libraries as text that can be compared: values numbered in order, no places, one name for both packages."""

from __future__ import annotations

import re

_PLACE = re.compile(r"(, scope: \S+)?\s*(#.*)?$")
_TENSOR = re.compile(r"value=\s*[^\]\[]*\[ CPU\w+\{[^}]*\} \]|value=<Tensor>")
_CLASS = re.compile(r"__torch__\.(?:\w+\.)*(\w+)")
_MANGLED = re.compile(r"___torch_mangle_\d+\.")
_READ = re.compile(r"\s*(%[\w.]+) : (\S+) = prim::GetAttr\[name=\"(\w+)\"\]\((%[\w.]+)\)")


def normalised(graph: object, grads: bool = True) -> str:
    """A graph's text without permitted differences. Without `grads` it drops requires_grad, which PyTorch's tracer loses for
    convolutions."""
    names: dict[str, str] = {}
    lines = []
    for line in str(graph).splitlines():
        line = _PLACE.sub("", line)
        read = _READ.match(line)
        if read:  # attribute reads stand for themselves, wherever they occur
            names[read[1]] = f"{names[read[4]]}.{read[3]}"
            continue
        line = _TENSOR.sub("value=<Tensor>", line)
        if not grads:
            line = line.replace("requires_grad=1", "requires_grad=0")
        line = _MANGLED.sub("", line)
        line = _CLASS.sub(r"__torch__.\1", line).replace('name="__torch__.', 'name="')
        line = re.sub(r"%[\w.]+", lambda found: names.setdefault(found[0], f"%{len(names)}"), line)
        lines.append(line)
    return "\n".join(lines)
