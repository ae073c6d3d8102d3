"""The errors for a package that can't be written: the broken modules, with reasons.

In: the graph of dependencies, whose nodes have an `error` where something is wrong. Out: an error that lists them.
"""

from __future__ import annotations

from enum import Enum

from rushlight.package.digraph import DiGraph
from rushlight.package.standard_library import is_standard


class PackagingErrorReason(Enum):
    """The problem with a module."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. "
        "Please intern or extern the mocked modules if objects are supposed to be in the package."
    )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` matched no module."""


class PackagingError(Exception):
    """Modules can't be packaged; each one's `error` in `dependency_graph` says why.

    With `debug`, the text shows a path on which each was reached.
    """

    def __init__(self, dependency_graph: DiGraph, debug: bool = False):
        self.dependency_graph = dependency_graph
        broken: dict[PackagingErrorReason, list[str]] = {}
        for name, attributes in dependency_graph.nodes.items():
            if attributes.get("error") is not None:
                broken.setdefault(attributes["error"], []).append(name)
        lines = [""]
        for reason, names in broken.items():
            lines.append(f"* {reason.value}")
            for name in names:
                lines += self._module(name, debug)
        if not debug:
            lines += [
                "", "Set debug=True when invoking PackageExporter for a visualization of where broken modules are coming from!",
            ]  # fmt: skip
        super().__init__("\n".join([*lines, ""]))

    def _module(self, name: str, debug: bool) -> list[str]:
        lines = [f"    {name}"]
        attributes = self.dependency_graph.nodes[name]
        if attributes.get("error_context") is not None:
            lines.append(f"      Context: {attributes['error_context']}")
        if is_standard(name):
            lines.append(
                f"      Note: `{name}` is of Python's standard library and reaches beyond the package, so that it is not taken "
                f"from the environment unasked. Where the package's code needs it, call PackageExporter.extern(\"{name}\")."
            )
        if debug:
            lines.append(f"      A path to {name}: {' -> '.join(self.dependency_graph.first_path(name))}")
        return lines
