"""Plans of graphs that were compiled before, so that another process need not lower them again.

In: a graph of aten operators of fixed sizes, and options. Out: its plan and library from the cache, or nothing. An entry is
found by all that lowering looks at: nodes, their arguments, what is known of their values, the options, the processor, and
the version of this compiler, which is told by the times and sizes of its files. Stage: inductor, calling.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.inductor.build import Library, find
from rushlight.inductor.plan import Plan, from_text, to_text
from rushlight.inductor.processor import instructions
from rushlight.utils.native import cache

if TYPE_CHECKING:
    from rushlight.inductor.compile_fx import Options

# Folders with what decides about the text of a program.
_SOURCES = [Path(__file__).parents[1] / name for name in ("inductor", "core", "ops/meta")]


class _Unknown(ValueError):
    """Something in a graph has no text that tells it from others."""


def key_of(module: GraphModule, options: Options) -> str | None:
    """The name of a graph's plan; None for one that is to be lowered each time."""
    if options.debug or options.autotune:
        return None
    storages: dict[StorageImpl, int] = {}
    try:
        text = "\n".join(_line(node, storages) for node in module.graph.nodes)
    except _Unknown:
        return None
    return cache.digest(text, str(options.threads), " ".join(instructions()), _version())


def load(key: str) -> tuple[Plan, Library] | None:
    """The plan of that name and its library, where the cache has both."""
    path = _path(key)
    content = None if path is None else cache.read(path)
    if content is None:
        return None
    program, _, text = content.decode().partition("\n")
    library = find(program)
    return None if library is None else (from_text(text), library)


def keep(key: str, plan: Plan, program: str) -> None:
    """Put a plan into the cache; `program` names its library."""
    text, path = to_text(plan), _path(key)
    if text is None or path is None:
        return
    cache.keep(path, f"{program}\n{text}".encode())


def _path(key: str) -> Path | None:
    try:
        return cache.open_folder(cache.default_folder()) / f"{key}.plan"
    except OSError:  # the library has said so
        return None


def _line(node: Node, storages: dict[StorageImpl, int]) -> str:
    value = " ".join(_described(node.meta.get("val"), storages))
    return f"{node.op} {node.name} {node.target} {_argument(node.args)} {_argument(node.kwargs)} {value}"


def _argument(value: object) -> str:
    """Its text, in which names of nodes stand without quotes."""
    if value is None or isinstance(value, Node | bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({','.join(map(_argument, value))})"
    if isinstance(value, dict):
        return ",".join(f"{name}={_argument(item)}" for name, item in value.items())
    if type(value).__name__ in _NAMED:
        return repr(value)
    raise _Unknown


_NAMED = frozenset({"dtype", "device", "layout", "memory_format"})


def _described(value: object, storages: dict[StorageImpl, int]) -> Iterator[str]:
    """What is known of a node's value; tensors that share memory have the same number."""
    if isinstance(value, Tensor):
        impl = value._impl
        sizes = (*impl.sizes, *impl.strides, impl.storage_offset)
        if not all(type(size) is int for size in sizes):
            raise _Unknown
        number = storages.setdefault(impl.storage, len(storages))
        yield f"{impl.dtype} {sizes} {number} {impl.storage.nbytes}"
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _described(item, storages)
    elif value is None or type(value) in (bool, int, float):
        yield repr(value)
    else:
        raise _Unknown


@functools.cache
def _version() -> str:
    """What differs between two versions of this compiler."""
    files = []
    for folder in _SOURCES:
        for place, _, names in os.walk(folder):
            for name in names:
                if name.endswith((".py", ".h")):
                    path = os.path.join(place, name)
                    status = os.stat(path)
                    files.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return cache.digest(*sorted(files))
