"""What the tests' helpers import and the library doesn't have: stand-ins, while files are imported and not while tests run.

A test that needs such a name fails when it runs, and one that is decorated with it is not found at all.
"""

from __future__ import annotations

import contextlib
import dis
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_OF_TESTING = ("_internal", "_comparison", "_creation", "_utils")
HELPERS = (
    "functorch",
    "torch._dynamo.test_case",
    "torch._inductor.test_case",
    *(f"torch.testing.{name}" for name in _OF_TESTING),
)
"""Modules that are taken from PyTorch's source: the tests' own tools."""

STAND_INS: dict[str, dict[str, Any]] = {
    "torch.utils._import_utils": {
        "_check_module_exists": lambda name: importlib.util.find_spec(name) is not None,
        "check_module_version": lambda *_: False,
        "dill_available": lambda: False,
        "import_dill": lambda: None,
    },
    "torch.utils._triton": {"has_triton": lambda: False, "has_triton_package": lambda: False},
    "torch.utils._mode_utils": {"no_dispatch": contextlib.nullcontext},
    "torch._utils_internal": {"IS_FBSOURCE": False, "get_writable_path": lambda path: path},
    "torch._lazy": {},
    "torch._lazy.metrics": {},
    "torch._lazy.ts_backend": {"init": lambda: None},
}
"""What the helpers themselves work with, and no test is about. Modules of these names stay when tests run."""

tolerant = True
"""Whether names that are missing are stood in for. Off while a test runs."""


class Absent:
    """Stands for something that the library does not have. It can be named, called and inherited from, to no effect."""

    def __init__(self, name: str):
        self._name = name
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if (name.startswith("__") and name.endswith("__")) or name == "pytestmark":
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Absent:
        if not tolerant:
            raise AttributeError(f"the library has no {self._name}")
        return Absent(self._name)

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __iter__(self) -> Iterator:
        return iter(())

    def __getitem__(self, key: object) -> Absent:
        return Absent(self._name)

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __bool__(self) -> bool:
        return False

    def __or__(self, other: object) -> object:
        return Any

    __ror__ = __or__

    def __and__(self, other: object) -> bool:
        return False

    __rand__ = __and__

    def __repr__(self) -> str:
        return f"<absent {self._name}>"


class _AbsentModule(ModuleType):
    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")


class TolerantModule(ModuleType):
    """A module of the library; while files of `source` are imported, it seems to them to have every name."""

    source = ""

    def __getattr__(self, name: str) -> Any:
        given = self.__dict__.get("__getattr__")
        if given is not None:
            try:
                return given(name)
            except AttributeError:
                if not tolerant:
                    raise
        asks = sys._getframe(1)
        by_call = dis.opname[asks.f_code.co_code[asks.f_lasti]].startswith(("CALL", "PRECALL"))  # getattr and hasattr
        by_call = by_call and asks.f_code.co_name != "_getattr_qual"
        if not tolerant or name.startswith("__") or by_call or not asks.f_code.co_filename.startswith(TolerantModule.source):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return Absent(f"{self.__name__}.{name}")


class HelperFinder(MetaPathFinder):
    """Finds the tests' helpers in PyTorch's source."""

    def __init__(self, source: Path):
        self._source = source

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not any(name == helper or name.startswith(helper + ".") for helper in HELPERS):
            return None
        folder = self._source.joinpath(*name.split(".")[:-1])
        return PathFinder.find_spec(name, [str(folder)])


class AbsentFinder(MetaPathFinder, Loader):
    """The last to be asked: makes an empty module for one of the library's that is not there."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in STAND_INS and (not tolerant or not name.startswith("torch.")):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = _AbsentModule(spec.name)
        made.__dict__.update(STAND_INS.get(spec.name, {}))
        return made

    def exec_module(self, module: ModuleType) -> None:
        pass


def tolerate(kind: type) -> None:
    """Have objects of a class, such as the namespaces of operators, stand in for names that they don't have."""
    given = kind.__getattr__

    def __getattr__(self: Any, name: str) -> Any:
        try:
            return given(self, name)
        except AttributeError:
            if not tolerant or name.startswith("__"):
                raise
            return Absent(f"{self!r}.{name}")

    kind.__getattr__ = __getattr__


def make_tolerant(prefix: str) -> None:
    """Have the modules of the library that are imported by now stand in for names that they don't have."""
    for name, module in list(sys.modules.items()):
        if (name == prefix or name.startswith(prefix + ".")) and type(module) is ModuleType:
            module.__class__ = TolerantModule


class TolerantFinder(MetaPathFinder):
    """Asked before the library's own finder: a module that is imported later becomes tolerant as well."""

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._inside = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if self._inside or not (name.startswith(self._prefix + ".") or name.startswith("torch.")):
            return None
        self._inside = True
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            spec = None
        finally:
            self._inside = False
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, AbsentFinder):
            spec.loader = _ThenTolerant(spec.loader)
        return spec


class _ThenTolerant(Loader):
    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if type(module) is ModuleType:
            module.__class__ = TolerantModule

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
