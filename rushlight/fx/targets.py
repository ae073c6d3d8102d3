"""Facts about the target of a `call_function` node: its printed name, and whether calling it has effects.

In: any callable. Out: a dotted name as a user of `import rushlight as torch` would write it, and two flags read
from the operator's schema and tags.
"""

from __future__ import annotations

import builtins
import keyword
import operator
import sys
from functools import reduce
from typing import Any

from rushlight.core.naming import own_module
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import OpOverloadPacket

_PACKAGE = __name__.partition(".")[0]
# Generated code calls it `torch`. It is not imported, because the package itself imports this folder.
TORCH = sys.modules[_PACKAGE]


def mutates_arguments(target: Any) -> bool:
    """Return whether `target` is an operator whose schema says that it writes to an argument."""
    if isinstance(target, OpOverloadPacket):
        return target.__name__.endswith("_") and not target.__name__.endswith("__")
    return isinstance(target, OpOverload) and target.is_mutable


def uses_random_state(target: Any) -> bool:
    """Return whether `target` is an operator that advances a random number generator."""
    return isinstance(target, OpOverload) and "nondeterministic_seeded" in target.tags


def qualified_name(target: Any) -> str:
    """Return a dotted name for a callable: `torch.ops.aten.add.Tensor`, `operator.add`, `math.sqrt`, `torch.relu`."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{target}"
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or type(target).__name__
    module = own_module(target) or "builtins"
    if module == "_operator" or getattr(operator, name, None) is target:
        return f"operator.{name}"
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    if module == _PACKAGE or module.startswith(_PACKAGE + "."):
        return _public_name(target, name, "torch" + module[len(_PACKAGE) :])
    return f"{module}.{name}"


def path_expression(path: str) -> str:
    """Turn a dotted path into an expression. The name of an overload may be a keyword: `random_.from`."""
    owner, _, name = path.rpartition(".")
    return f"getattr({owner}, {name!r})" if keyword.iskeyword(name) else path


def _public_name(target: Any, name: str, module: str) -> str:
    """Return the shortest public path to a callable of this package, else the path where it is defined."""
    candidates = (f"torch.{name}", f"torch.nn.functional.{name}", f"torch.nn.{name}", f"{module}.{name}")
    return next((path for path in candidates if resolve(path) is target), candidates[-1])


def resolve(path: str) -> Any:
    """Return the object at a dotted path that starts with `torch` or `builtins`, or None."""
    root, *atoms = path.split(".")
    start = {"torch": TORCH, "builtins": builtins, "operator": operator}.get(root)
    return reduce(lambda owner, atom: getattr(owner, atom, None), atoms, start)


def short_name(target: Any) -> str:
    """Return the last part of a target's name, from which a node's name is made: `add` for `aten.add.Tensor`."""
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        return target._schema.name
    return getattr(target, "__name__", None) or type(target).__name__
