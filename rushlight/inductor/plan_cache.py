"""Plans of graphs that were compiled before, so that another process need not lower them again.

In: a graph of aten operators of fixed sizes, and options. Out: its plan and library from the cache, or nothing. An entry is
found by all that lowering looks at: nodes, their arguments, what is known of their values, the options, the processor, and
the version of this compiler, which is told by the times and sizes of its files. Graphs of other operators may have keys of
their own for the same plans. Stage: inductor, calling.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
# Folders with what decides about the text of a program.
_SOURCES = ("inductor", "core", "ops/meta")


class Unknown(ValueError):
    """Something in a graph has no text that tells it from others."""


def key_of(module: GraphModule, options: Options) -> str | None:
    """The name of a graph's plan; None for one that is to be lowered each time."""
    if options.debug or options.autotune or options.timed:
        return None
    storages: dict[StorageImpl, int] = {}
    try:
        text = "\n".join(_line(node, storages) for node in module.graph.nodes)
    except Unknown:
        return None
    return digest(text, options, _SOURCES)


def digest(text: str, options: Options, folders: tuple[str, ...]) -> str:
    """The name of the plan of a graph that `text` describes, if the files of some folders of the library decide about it."""
    return cache.digest(text, str(options.threads), " ".join(instructions()), cache.version_of(_LIBRARY, folders))


def load(key: str) -> tuple[Plan, Library] | None:
    """The plan of that name and its library, where the cache has both."""
    found = _read(key)
    if found is None:
        return None
    program, text = found
    library = find(program)
    return None if library is None else (from_text(text), library)


def keep(key: str, plan: Plan, program: str) -> None:
    """Put a plan into the cache; `program` names its library."""
    text = to_text(plan)
    if text is not None:
        _write(key, text, program)


def _write(key: str, text: str, program: str) -> None:
    path = path_of(key, "plan")
    if path is not None:
        cache.keep(path, f"{program}\n{text}".encode())


def keep_also(key: str, other: str, targets: dict[str, str]) -> bool:
    """Keep a plan under another key as well, for a graph in which the attributes that are its constants have other names.
    Whether there is such a plan."""
    found = _read(key)
    if found is not None:
        program, text = found
        _write(other, with_targets(text, targets), program)
    return found is not None


def _read(key: str) -> tuple[str, str] | None:
    """The name of an entry's library, and the text of its plan."""
    path = path_of(key, "plan")
    content = None if path is None else cache.read(path)
    if content is None:
        return None
    program, _, text = content.decode().partition("\n")
    return program, text


def path_of(key: str, kind: str) -> Path | None:
    """The file of a kind that is found by a key; None where there is no folder for it."""
    try:
        return cache.open_folder(cache.default_folder()) / f"{key}.{kind}"
    except OSError:  # the library has said so
        return None


def _line(node: Node, storages: dict[StorageImpl, int]) -> str:
    value = describe(node.meta.get("val"), storages)
    return f"{node.op} {node.name} {node.target} {argument_text(node.args)} {argument_text(node.kwargs)} {value}"


_PLAIN = (Node, bool, int, float, str, type(None))
_SEQUENCES = (tuple, list)
_NAMED = frozenset({"dtype", "device", "layout", "memory_format"})
_INTEGERS = frozenset({int})


def argument_text(value: object) -> str:
    """An argument of a node as text, in which names of nodes stand without quotes. Unknown where there is none."""
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
    """What is known of a node's value; tensors that share memory have the same number. Unknown for open sizes."""
    if isinstance(value, Tensor):
        impl = value._impl
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
