"""Library: define operators and register kernels from outside the project, as torch.library does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rushlight.core.dispatch_key import DispatchKey
from rushlight.ops.dispatcher import (
    FALLTHROUGH,
    Kernel,
    OpOverload,
    define,
    find_operator,
    register_fallback,
    undefine,
    unregister_fallback,
)
from rushlight.ops.libraries import has_own_rules
from rushlight.ops.packet import namespaces
from rushlight.ops.schema import parse_schema
from rushlight.ops.tags import Tag, tag_set

fallthrough_kernel = FALLTHROUGH
_changed: list[str] = []  # the built-in operators whose kernels were overridden from outside, with the keys


def has_foreign_kernels() -> bool:
    """Return whether kernels of built-in operators are, or were, overridden from outside, so that their behaviour is
    unknown."""
    return bool(_changed)


class OperatorHandle:
    """A Python object that wraps an operator: calling it calls the operator."""

    def __init__(self, op: OpOverload) -> None:
        self._opoverload = op

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)


class Library:
    """Operators of namespace `ns`. `kind` is "DEF" (a namespace's owner), "FRAGMENT" (adds to one), or "IMPL".

    An IMPL library has a default dispatch key for `impl` and may register fallbacks when `ns` is "_".
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind!r}; expected 'DEF', 'FRAGMENT' or 'IMPL'")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined: list[OpOverload] = []
        self._undo: list[Callable[[], None]] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Tag | Sequence[Tag] = ()) -> str:
        """Add the operator of `schema`, with `tags`; returns its name. RuntimeError when it exists, ValueError when malformed.

        What an operator aliases is what its schema says: `alias_analysis` is "" or "FROM_SCHEMA", else RuntimeError.
        """
        if alias_analysis not in ("", "FROM_SCHEMA"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}: schemas say what operators alias")
        known = tag_set(tags)
        op = namespaces.add(define(self.ns, str(parse_schema(schema))))
        op.tags = known
        self._defined.append(op)
        return op._opname

    def impl(
        self, op_name: str | OpOverload, fn: Callable | Kernel, dispatch_key: str = "", *, boxed: bool = False
    ) -> None:
        """Register `fn` for an operator at a dispatch key. Boxed kernels take `(op, key_set, stack)`.

        Registrations for torchvision's operators are ignored, because these are built in.
        """
        key = _key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        op = op_name if isinstance(op_name, OpOverload) else self._find(op_name)
        if has_own_rules(op):
            return
        kernel = fn if isinstance(fn, Kernel) else Kernel(fn, boxed=boxed)
        op.register(key, kernel)
        if op.namespace == "aten":
            _changed.append(op.name)
        self._undo.append(partial(op.unregister, key, kernel))

    def fallback(self, fn: Callable | Kernel, dispatch_key: str = "") -> None:
        """Register a boxed kernel `(op, key_set, stack)` for every operator that has none at the key."""
        if self.ns != "_":
            raise RuntimeError(f"fallbacks belong to the namespace '_', not {self.ns!r}")
        kernel = fn if isinstance(fn, Kernel) else Kernel(fn, boxed=True)
        key = _key(dispatch_key or self.dispatch_key)
        register_fallback(key, kernel)
        _changed.append(key.name)
        self._undo.append(partial(unregister_fallback, key, kernel))

    def _find(self, name: str) -> OpOverload:
        plain, _, overload = name.rpartition("::")[2].partition(".")
        return find_operator(f"{self.ns}::{plain}", overload)

    def _destroy(self) -> None:
        """Undo all definitions and registrations of this library."""
        for undo in reversed(self._undo):
            undo()
        for op in self._defined:
            undefine(op)
            namespaces.remove(op)
        self._undo, self._defined = [], []


def _key(name: str) -> DispatchKey:
    try:
        return DispatchKey[name]
    except KeyError:
        raise ValueError(f"unknown dispatch key {name!r}; keys are {', '.join(key.name for key in DispatchKey)}") from None
