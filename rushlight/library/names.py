"""Defining operators, and registering kernels for them, by their qualified names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.ops.library import Library
from rushlight.ops.tags import Tag

_libraries: list[Library] = []  # never cleared: a library's operators exist until the process ends
_KEYS = {"cpu": "CPU", "default": "CompositeExplicitAutograd", "meta": "Meta"}


def split_name(name: str) -> tuple[str, str]:
    """Return the namespace and the rest of "namespace::name"; ValueError where one is missing."""
    namespace, _, short = name.partition("::")
    if not namespace or not short:
        raise ValueError(f"expected the name of an operator as 'namespace::name', got {name!r}")
    return namespace, short


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Tag | Sequence[Tag] = ()) -> None:
    """Add the operator "namespace::name" of `schema`, "(Tensor x) -> Tensor", with `tags`. It has no kernels yet."""
    namespace, short = split_name(qualname)
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _libraries.append(lib)
    lib.define(short + schema, tags=tags)


def impl(
    qualname: str | Library, types: str | Sequence[str], func: Callable | str | None = None, *, lib: Library | None = None
) -> Callable | None:
    """Register `func` for an operator on devices ("cpu", or "default" for all) or at dispatch keys. A decorator without it.

    The older form `impl(library, name, dispatch_key="")` is a decorator for an operator of that library.
    """
    if isinstance(qualname, Library):
        return _impl_in(qualname, types, func or "")

    def register(function: Callable) -> None:
        namespace, _ = split_name(qualname)
        library = lib or Library(namespace, "FRAGMENT")
        if lib is None:
            _libraries.append(library)
        for kind in (types,) if isinstance(types, str) else types:
            library.impl(qualname, function, _KEYS.get(kind, kind))

    return register if func is None else register(func)


def _impl_in(library: Library, name: str, key: str) -> Callable:
    def register(function: Callable) -> Callable:
        library.impl(name, function, key)
        return function

    return register
