"""Save a GraphModule in a package: its code becomes a module of the package, and is traced again when it is loaded.

In: a module and the package's exporter; or the importer, the module's state and the name of its code. Out: a value for
`__reduce__`; or the module. PyTorch's packages hold graph modules in the same form.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

from rushlight.core.lazy_module import LazyModule
from rushlight.fx.graph_module import GraphModule, reduce_package_graph_module
from rushlight.fx.tracer import Tracer
from rushlight.nn.modules.module import Module

objects = LazyModule("rushlight.serialization.objects")

_CLASS_NAME, _META = "_graphmodule_cls_name", "meta"
_PYTORCH_ATTRIBUTES = frozenset((
    _CLASS_NAME, _META, "_code", "_lineno_map", "_prologue_start", "_tracer_cls", "_tracer_extras", "_replace_hooks",
    "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks", "shape_env", "_graphmodule_graph_node_meta_stack_trace",
))  # fmt: skip
"""Attributes of PyTorch's graph modules that are neither attributes of `nn.Module` nor the user's."""
_IMPORTS = "import torch\nfrom math import inf, nan\nfrom torch import device\n"


class Exporter(Protocol):
    """The methods of a package's exporter that are used here."""

    def get_unique_id(self) -> str: ...

    def save_source_string(self, module_name: str, src: str) -> None: ...


class Importer(Protocol):
    """The methods of a package's importer that are used here."""

    def import_module(self, name: str) -> ModuleType: ...


class _KeepsModules(Tracer):
    """A tracer that records every call of a submodule as one node."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def to_package(module: GraphModule, exporter: Exporter) -> tuple:
    """Return a function and arguments that make the module again, with its code in the package.

    RuntimeError: the code calls something that no import statement reaches.
    """
    code = module.recompile()
    name = f"fx-generated._{exporter.get_unique_id()}"
    exporter.save_source_string(name, f"{_IMPORTS}{_imports(code.globals)}\n\n{code.src}")
    state = {**module._packed_state(), _CLASS_NAME: type(module).__name__, _META: {}}
    return reduce_package_graph_module, (state, name)


def from_package(importer: Importer, state: dict[str, Any], name: str) -> GraphModule:
    """Rebuild a module from its state; its `forward` is a function in a module of the package."""
    forward = importer.import_module(name).forward
    holder = type("GraphModule", (Module,), {"forward": forward})()
    holder.__dict__.update({key: value for key, value in state.items() if key not in _PYTORCH_ATTRIBUTES})
    made = GraphModule(holder, _KeepsModules().trace(holder), state.get(_CLASS_NAME, "GraphModule"))
    made.meta.update(state.get(_META) or {})
    for key, value in holder.__dict__.items():
        made.__dict__.setdefault(key, value)
    return made


def _imports(names: dict[str, Any]) -> str:
    lines = []
    for name, value in names.items():
        if name in ("torch", "inf", "nan", "device") or name.startswith("__"):
            continue
        attribute = getattr(value, "__qualname__", "")
        if getattr(value, "__module__", None) in (None, "__main__") or not attribute.isidentifier():
            raise RuntimeError(f"the code of the graph uses {value!r}, which no import statement reaches")
        lines.append(f"from {_module_of(value, attribute)} import {attribute} as {name}\n")
    return "".join(lines)


def _module_of(value: Any, name: str) -> str:
    """Return the module from which a value can be imported; this library's own modules under PyTorch's names."""
    return objects.module_of(value, name).replace("__builtin__", "builtins")
