"""The plan cache: plans of compiled graphs, so that another process need not lower them again.

In: a graph of aten operators with fixed sizes, and options. Out: its plan and library from the cache, or nothing. The key
covers all inputs of lowering: nodes, their arguments and fake values, the options, the processor, and this compiler's version
(the times and sizes of its files). Graphs of other operators may have their own keys for the same plans. Stage: inductor,
calling.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rushlight.core.device import CPU
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.inductor.build import Library, find
from rushlight.inductor.plan import Plan, from_text, to_text, with_targets
from rushlight.inductor.processor import instructions
from rushlight.utils.native import cache

if TYPE_CHECKING:
    from rushlight.inductor.options import Options

_LIBRARY = str(Path(__file__).parents[1])
# Folders whose code determines a program's text.
_SOURCES = ("inductor", "core", "ops/meta")


class Unknown(ValueError):
    """A part of a graph has no text that identifies it."""


def key_of(module: GraphModule, options: Options) -> str | None:
    """Return the cache key of a graph's plan; None if the graph must be lowered each time."""
    if options.debug or options.autotune or options.timed:
        return None
    storages: dict[StorageImpl, int] = {}
    try:
        text = "\n".join(_node_text(node, storages) for node in module.graph.nodes)
    except Unknown:
        return None
    return digest(text, options, _SOURCES)


def digest(text: str, options: Options, folders: tuple[str, ...]) -> str:
    """Return a cache key for a graph described by `text`, if only the code in these folders of the library determines its
    plan."""
    return cache.digest(text, str(options.threads), " ".join(instructions()), cache.version_of(_LIBRARY, folders))


def load(key: str) -> tuple[Plan, Library] | None:
    """Return the plan and library under a key, if the cache has both."""
    found = _read_entry(key)
    if found is None:
        return None
    program, text = found
    library = find(program)
    return None if library is None else (from_text(text), library)


def keep(key: str, plan: Plan, program: str) -> None:
    """Keep a plan; `program` is the key of its library."""
    text = to_text(plan)
    if text is not None:
        _write(key, text, program)


def _write(key: str, text: str, program: str) -> None:
    path = path_of(key, "plan")
    if path is not None:
        cache.keep(path, f"{program}\n{text}".encode())


def keep_also(key: str, other: str, targets: dict[str, str]) -> bool:
    """Keep the plan of key `key` also under the key `other`, for a graph with other attribute names for the constants. Return
    whether there is such a plan."""
    found = _read_entry(key)
    if found is not None:
        program, text = found
        _write(other, with_targets(text, targets), program)
    return found is not None


def _read_entry(key: str) -> tuple[str, str] | None:
    """Return an entry's library key and its plan's text."""
    path = path_of(key, "plan")
    content = None if path is None else cache.read(path)
    if content is None:
        return None
    program, _, text = content.decode().partition("\n")
    return program, text


def path_of(key: str, kind: str) -> Path | None:
    """Return the cache file of a kind for a key; None without a usable folder."""
    try:
        return cache.open_folder(cache.default_folder()) / f"{key}.{kind}"
    except OSError:  # `cache.open_folder` has warned already
        return None


def _node_text(node: Node, storages: dict[StorageImpl, int]) -> str:
    value = describe(node.meta.get("val"), storages)
    return f"{node.op} {node.name} {node.target} {argument_text(node.args)} {argument_text(node.kwargs)} {value}"


_PLAIN = (Node, bool, int, float, str, type(None))
_SEQUENCES = (tuple, list)
_NAMED = frozenset({"dtype", "device", "layout", "memory_format"})
_INTEGERS = frozenset({int})


def argument_text(value: object) -> str:
    """Return a node's argument as text, with nodes by name. Unknown if it has no text."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, _SEQUENCES):
        return f"{type(value).__name__}({','.join(map(argument_text, value))})"
    if isinstance(value, dict):
        return ",".join([f"{name}={argument_text(item)}" for name, item in value.items()])
    if isinstance(value, slice):
        return f"slice({argument_text((value.start, value.stop, value.step))})"
    if value is ... or type(value).__name__ in _NAMED:
        return repr(value)
    raise Unknown


def describe(value: object, storages: dict[StorageImpl, int]) -> str:
    """Return a node's fake value as text; tensors that share memory get the same number. Unknown for open sizes, and for
    tensors that are not on the CPU, whose plans these are."""
    if isinstance(value, Tensor):
        impl = value._impl
        if impl.device != CPU:
            raise Unknown
        sizes = (*impl.sizes, *impl.strides, impl.storage_offset)
        if not _INTEGERS.issuperset(map(type, sizes)):
            raise Unknown
        number = storages.setdefault(impl.storage, len(storages))
        return f"{impl.dtype} {sizes} {number} {impl.storage.nbytes}"
    if isinstance(value, _SEQUENCES):
        return " ".join([describe(item, storages) for item in value])
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    raise Unknown
