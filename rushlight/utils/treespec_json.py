"""Serialize the specs of trees as JSON."""

from __future__ import annotations

import json
from collections import OrderedDict

from rushlight.core.pytree import LEAF, TreeSpec

_NAMES = {list: "builtins.list", tuple: "builtins.tuple", dict: "builtins.dict", OrderedDict: "collections.OrderedDict"}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a shape as JSON, for trees of lists, tuples, dicts and ordered dicts. NotImplementedError for other containers."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([1, _as_json(treespec)])


def _as_json(spec: TreeSpec) -> dict:
    if spec.kind is None:
        return {"type": None, "context": None, "children_spec": []}
    if spec.kind not in _NAMES:
        raise NotImplementedError(f"Serializing {spec.kind} in pytree is not supported.")
    context = None if spec.keys is None else json.dumps(list(spec.keys))
    return {"type": _NAMES[spec.kind], "context": context, "children_spec": [_as_json(child) for child in spec.children]}


def treespec_loads(serialized: str) -> TreeSpec:
    """Parse the text that `treespec_dumps` wrote."""
    protocol, found = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(found)


def _from_json(found: dict) -> TreeSpec:
    if found["type"] is None:
        return LEAF
    kind = {name: each for each, name in _NAMES.items()}[found["type"]]
    keys = None if found["context"] is None else tuple(json.loads(found["context"]))
    return TreeSpec(kind, keys, tuple(map(_from_json, found["children_spec"])))
