"""`find_first_use_of_broken_modules`: how a package came to need the modules that can't be packaged."""

from __future__ import annotations

from rushlight.package.packaging_errors import PackagingError

__all__ = ["find_first_use_of_broken_modules"]


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """A way to each module at fault, from a module that nothing needs to itself. TypeError: another error was passed."""
    if not isinstance(exc, PackagingError):
        raise TypeError(f"exc must be a PackagingError, got {type(exc).__name__}")
    graph = exc.dependency_graph
    return {name: graph.first_path(name) for name, known in graph.nodes.items() if known.get("error") is not None}
