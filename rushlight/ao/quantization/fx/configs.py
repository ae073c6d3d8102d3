"""Settings of `prepare_fx`, `convert_fx` and `fuse_fx`, and the lookup of a node's qconfig."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from rushlight.ao.quantization.fx.roles import kind_of, name_of
from rushlight.ao.quantization.qconfig import QConfigAny
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _Custom:
    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> _Custom:
        """Set the attributes of the model that the traced one keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def of(cls, given: Any) -> _Custom:
        """Normalise settings: None, a dict of the older form, or an object. TypeError for other values."""
        if given is None:
            return cls()
        if isinstance(given, dict):
            return cls.from_dict(given)
        if not isinstance(given, cls):
            raise TypeError(f"expected a {cls.__name__} or a dict, got {type(given).__name__}")
        return given

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> _Custom:
        """Return the settings of a dict. NotImplementedError for keys that are not supported."""
        made = cls()
        known = {"preserved_attributes": "preserved_attributes", **cls._KEYS}
        unknown = [key for key, value in given.items() if key not in known and value]
        if unknown:
            raise NotImplementedError(f"{cls.__name__}: {unknown} are not supported; supported are {sorted(known)}")
        for key, value in given.items():
            if key in known:
                setattr(made, known[key], value)
        return made

    _KEYS: dict[str, str] = {}


class PrepareCustomConfig(_Custom):
    """Settings of `prepare_fx`: modules that are not traced into, and attributes to keep."""

    _KEYS = {
        "non_traceable_module_name": "non_traceable_module_names",
        "non_traceable_module_class": "non_traceable_module_classes",
    }

    def __init__(self) -> None:
        super().__init__()
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules that stay untraced and float."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Classes of modules that stay untraced and float."""
        self.non_traceable_module_classes = module_classes
        return self


class ConvertCustomConfig(_Custom):
    """Settings of `convert_fx`."""


class FuseCustomConfig(PrepareCustomConfig):
    """Settings of `fuse_fx`."""


# Qconfigs of nodes


class Lookup:
    """Looks up the qconfigs of a graph's nodes, in the graph's order."""

    def __init__(self, module: GraphModule, mapping: QConfigMapping, scopes: dict[str, str]) -> None:
        self.module, self.mapping, self.scopes = module, mapping, scopes
        self.seen: Counter = Counter()

    def of(self, node: Node) -> QConfigAny:
        """Return the most specific qconfig for a node."""
        mapping, scope = self.mapping, self.scopes.get(node.name, "")
        kind = kind_of(self.module, node)
        found = mapping.global_qconfig
        for key, qconfig in mapping.object_type_qconfigs.items():
            if _is_of(node, kind, key):
                found = qconfig
        for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
            if re.fullmatch(pattern, scope):
                found = qconfig
                break
        parts = scope.split(".") if scope else []
        for length in range(len(parts), 0, -1):
            if ".".join(parts[:length]) in mapping.module_name_qconfigs:
                found = mapping.module_name_qconfigs[".".join(parts[:length])]
                break
        owner = ".".join(parts[:-1]) if node.op == "call_module" else scope
        index = self.seen[owner, kind]
        self.seen[owner, kind] += 1
        return mapping.module_name_object_type_order_qconfigs.get((owner, kind, index), found)


def _is_of(node: Node, kind: Any, key: Callable | str) -> bool:
    if key is kind:
        return True
    if isinstance(key, type) or node.op == "call_module":
        # Fused layers list their parts in `_parts`; recurrent layers have a method of this name.
        parts = getattr(kind, "_parts", ()) if isinstance(kind, type) else ()
        return isinstance(parts, tuple) and bool(parts) and key is parts[0]
    return name_of(node) == (key if isinstance(key, str) else getattr(key, "__name__", None))
