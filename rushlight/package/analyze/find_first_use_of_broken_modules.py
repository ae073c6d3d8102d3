"""`find_first_use_of_broken_modules`: the import chains to modules that can't be packaged."""

from __future__ import annotations

from rushlight.package.packaging_errors import PackagingError

__all__ = ["find_first_use_of_broken_modules"]


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """Return a dependency path to each broken module, from a module that nothing depends on. TypeError for another
    exception.
    """
    if not isinstance(exc, PackagingError):
        raise TypeError(f"exc must be a PackagingError, got {type(exc).__name__}")
    graph = exc.dependency_graph
    return {name: graph.first_path(name) for name, known in graph.nodes.items() if known.get("error") is not None}
