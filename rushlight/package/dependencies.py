"""Find the modules that a package's code needs, and decide what happens to each.

In: the patterns of the user, the sources of modules, an importer. Out: a graph whose nodes are modules, with their `action`
and, if copied, their `source`; or with an `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

from rushlight.package.digraph import DiGraph
from rushlight.package.find_file_dependencies import find_files_source_depends_on
from rushlight.package.glob_group import GlobGroup
from rushlight.package.importer import Importer
from rushlight.package.packaging_errors import EmptyMatchError, PackagingErrorReason
from rushlight.package.standard_library import is_always_external

IMPORTER_MODULE = "torch_package_importer"
"""Under this name a package's code finds its importer."""
MOCK_MODULE = "_mock"


class Action(Enum):
    """What happens to a module."""

    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    REPACKAGED_MOCK_MODULE = 5


@dataclass
class Pattern:
    """A user's rule. `allow_empty`: it may match nothing."""

    names: GlobGroup
    action: Action
    allow_empty: bool
    was_matched: bool = False


class Dependencies:
    """The graph of one package, and the rules given so far; the first rule that matches a module applies."""

    def __init__(self, importer: Importer):
        self.importer = importer
        self.graph = DiGraph()
        self.patterns: list[Pattern] = []

    def add(self, name: str, follow: bool = True) -> None:
        """Decide on a module, and on its dependencies if `follow`."""
        if name == IMPORTER_MODULE or "provided" in self.graph.nodes.get(name, ()):
            return
        if name == MOCK_MODULE:
            self._settle_action(name, Action.REPACKAGED_MOCK_MODULE)
            return
        if is_always_external(name):
            self._settle_action(name, Action.EXTERN)
            return
        rule = next((each for each in self.patterns if each.names.matches(name)), None)
        if rule is None:
            self._fail(name, PackagingErrorReason.NO_ACTION)
            return
        rule.was_matched = True
        if rule.action is Action.INTERN:
            self.intern(name, follow)
        elif rule.action is Action.DENY:
            self._settle_action(name, Action.DENY)
            self._fail(name, PackagingErrorReason.DENIED)
        elif rule.action is Action.MOCK:
            self._settle_action(name, Action.MOCK, is_package=self._is_package(name))
        else:
            self._settle_action(name, Action.EXTERN)

    def intern(self, name: str, follow: bool) -> None:
        """Copy a module of the importer. ImportError if it can't be imported."""
        module = self.importer.import_module(name)
        source = _source_of(module)
        if source is None:
            self._settle_action(name, Action.INTERN)
            self._fail(name, *_why_no_source(module))
        else:
            self.add_source(name, source, hasattr(module, "__path__"), follow)

    def add_source(self, name: str, source: str, is_package: bool, follow: bool) -> None:
        """Add a module with this source, and its dependencies if `follow`."""
        self._settle_action(name, Action.INTERN, source=source, is_package=is_package)
        if not follow:
            return
        try:
            needed = self._needed_by(name, source, is_package)
        except (SyntaxError, ValueError, ImportError, RecursionError, MemoryError) as error:
            self._fail(name, PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED, str(error))
            return
        for each in needed:
            self.graph.add_edge(name, each)
            self.add(each)

    def add_pickle(self, node: str, package: str, resource: str, names: dict[str, list[str]]) -> None:
        """Add the pickle of a resource, and the modules that it refers to, with the names in them."""
        self.graph.add_node(node, action=Action.INTERN, provided=True, is_pickle=True)
        for module, used in names.items():
            self.graph.add_edge(node, module)
            self.add(module)
            if self.graph.nodes[module].get("action") is Action.MOCK:
                self._fail(module, PackagingErrorReason.MOCKED_BUT_STILL_USED, (
                    f"Object(s) '{used}' from module `{module}` was mocked out during packaging but is being used in "
                    f"resource - `{resource}` in package `{package}`. "
                ))  # fmt: skip

    def with_action(self, *actions: Action) -> list[str]:
        """Return the modules with one of these actions, in the order in which they were found."""
        return [name for name, known in self.graph.nodes.items()
                if known.get("action") in actions and not known.get("is_pickle")]  # fmt: skip

    def check_patterns(self) -> None:
        """Raise EmptyMatchError if a rule that must match something has matched nothing."""
        for each in self.patterns:
            if not each.allow_empty and not each.was_matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {each.names}, which was marked as allow_empty=False"
                )

    def _settle_action(self, name: str, action: Action, **more: Any) -> None:
        self.graph.add_node(name, action=action, provided=True, **more)

    def _fail(self, name: str, reason: PackagingErrorReason, context: str | None = None) -> None:
        self.graph.add_node(name, error=reason, error_context=context)

    def _needed_by(self, name: str, source: str, is_package: bool) -> list[str]:
        """Return the modules that a source imports and that the importer has."""
        package = name if is_package else name.rpartition(".")[0]
        found: dict[str, None] = {}
        for module, attribute in find_files_source_depends_on(source, package):
            if not self._exists(module):
                continue
            part = f"{module}.{attribute}"
            found[part if attribute is not None and self._exists(part) else module] = None
        return list(found)

    def _is_package(self, name: str) -> bool:
        """Return whether a module may have submodules, which is assumed if it can't be imported."""
        module = self._try_import(name)
        return module is None or hasattr(module, "__path__")

    def _exists(self, name: str) -> bool:
        return name in (IMPORTER_MODULE, MOCK_MODULE) or name in self.graph or self._try_import(name) is not None

    def _try_import(self, name: str) -> ModuleType | None:
        try:
            return self.importer.import_module(name)
        except Exception:  # the module's code may raise anything
            return None


def _source_of(module: ModuleType) -> str | None:
    """Return the text of a module; None where it has none."""
    spec = getattr(module, "__spec__", None)
    loader = getattr(spec, "loader", None) or getattr(module, "__loader__", None)
    filename = getattr(module, "__file__", None)
    if filename is None:
        return None
    try:
        found = loader.get_source(spec.name if spec is not None else module.__name__) if hasattr(loader, "get_source") else None
        return found if found is not None or not filename.endswith(".py") else Path(filename).read_text("utf-8")
    except (OSError, ImportError):
        return None


def _why_no_source(module: ModuleType) -> tuple[PackagingErrorReason, str | None]:
    filename = getattr(module, "__file__", None)
    if filename is None:
        return PackagingErrorReason.NO_DUNDER_FILE, None
    if filename.endswith(tuple(EXTENSION_SUFFIXES)):
        return PackagingErrorReason.IS_EXTENSION_MODULE, None
    return PackagingErrorReason.SOURCE_FILE_NOT_FOUND, f"filename: {filename}"
