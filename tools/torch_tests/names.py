"""What the tests' helpers import and the library doesn't have: stand-ins, while files are imported and not while tests run.

A test that needs such a name fails when it runs, and one that is decorated with it is not found at all.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import datetime
import dis
import importlib.util
import inspect
import sys
import typing
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

_OF_TESTING = ("_internal", "_comparison", "_creation", "_utils")
HELPERS = (
    "functorch",
    "torch._dynamo.test_case",
    "torch._dynamo.testing",
    "torch._inductor.test_case",
    *(f"torch.testing.{name}" for name in _OF_TESTING),
)
"""Modules that are taken from PyTorch's source: the tests' own tools."""


def _same(ref: Any, res: Any, *_: Any, **options: Any) -> bool:
    """What PyTorch's own tests compare results by, nested ones too."""
    import torch

    try:
        torch.testing.assert_close(res, ref, rtol=options.get("tol", 1e-4), atol=options.get("tol", 1e-4),
                                   equal_nan=options.get("equal_nan", False))  # fmt: skip
    except (AssertionError, TypeError):
        return not isinstance(ref, torch.Tensor) and type(ref) is type(res) and _same_parts(ref, res, options)
    return True


def _same_parts(ref: Any, res: Any, options: dict) -> bool:
    if isinstance(ref, list | tuple | collections.deque):
        return len(ref) == len(res) and all(_same(one, other, **options) for one, other in zip(ref, res, strict=True))
    if isinstance(ref, dict):
        return ref.keys() == res.keys() and all(_same(ref[key], res[key], **options) for key in ref)
    if hasattr(ref, "__dict__") and not callable(ref):
        return _same(vars(ref), vars(res), **options)
    return bool(ref == res)


def _unsupported(one: Any, other: Any) -> Any:
    """What tests call to end a graph."""
    import torch

    torch._dynamo.graph_break()
    return other


def _nested_map(condition: Any, function: Any) -> Any:
    """A function that maps the parts of nested tuples, lists and dicts for which the condition holds."""
    from torch.utils._pytree import tree_map

    return lambda nested: tree_map(lambda part: function(part) if condition(part) else part, nested)


def _if_static(static: Any, dynamic: Any) -> Any:
    """What to expect with fixed sizes, or with open ones where the settings open all."""
    import torch

    return static if torch._dynamo.config.assume_static_by_default else dynamic


class _GroupOfProcesses:
    """Stands for the class by which tests of process groups make one from a store."""

    _Options = type("_Options", (), {})

    def __new__(cls, store: Any, rank: int, size: int, options: Any) -> Any:
        import torch.distributed as dist

        time = datetime.timedelta(seconds=options._timeout)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=time)
        return dist.group.WORLD

    @staticmethod
    def create_device(**place: str) -> None:
        """Say how processes reach each other: MPI knows."""


ADDED: dict[str, dict[str, Any]] = {
    "torch.autograd.function": {"_nested_map": _nested_map},
    "torch._dynamo.utils": {"same": _same, "ifdynstaticdefault": _if_static},
    "torch._dynamo.eval_frame": {"unsupported": _unsupported},
    "torch.distributed": {"ProcessGroupGloo": _GroupOfProcesses},
}
"""Names for modules that the library has."""

STAND_INS: dict[str, dict[str, Any]] = {
    "torch.utils._import_utils": {
        "_check_module_exists": lambda name: importlib.util.find_spec(name) is not None,
        "check_module_version": lambda *_: False,
        "dill_available": lambda: False,
        "import_dill": lambda: None,
    },
    "torch.utils._triton": {"has_triton": lambda: False, "has_triton_package": lambda: False},
    "torch.utils._mode_utils": {"no_dispatch": contextlib.nullcontext},
    "torch._functorch.make_functional": {"FunctionalModule": None, "FunctionalModuleWithBuffers": None},
    "torch._utils_internal": {"IS_FBSOURCE": False, "get_writable_path": lambda path: path},
    "torch._inductor.metrics": {"reset": lambda: None, "generated_kernel_count": 0, "generated_cpp_vec_kernel_count": 0},
    "torch._lazy": {},
    "torch._lazy.metrics": {},
    "torch._lazy.ts_backend": {"init": lambda: None},
}
"""What the helpers themselves work with, and no test is about. Modules of these names stay when tests run."""

tolerant = True
"""Whether names that are missing are stood in for. Off while a test runs."""


class _AbsentBase:
    """Stands for an absent class that a class of the tests inherits from."""

    _absent = ""

    def __init__(self, *args: Any, **keywords: Any):
        pass

    def __getattr__(self, name: str) -> Absent:
        if not tolerant or name.startswith("__"):
            raise AttributeError(f"the library has no {self._absent}, which would have {name}")
        return Absent(name)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        raise AttributeError(f"the library has no {self._absent}, which would be called")


class Absent:
    """Stands for something that the library does not have. It can be named, called and inherited from, to no effect.

    While a test runs, only what the tests' helpers asked for can be called.
    """

    def __init__(self, name: str, is_of_helper: bool = False):
        self._name = name
        self._is_of_helper = is_of_helper
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if (name.startswith("__") and name.endswith("__")) or name == "pytestmark":
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}", self._is_of_helper)

    def __call__(self, *args: Any, **keywords: Any) -> Absent:
        if not tolerant and not self._is_of_helper:
            raise AttributeError(f"the library has no {self._name}")
        return Absent(self._name, self._is_of_helper)

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (type("_AbsentBase", (_AbsentBase,), {"_absent": self._name}),)

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


def _of_helper(asks: FrameType) -> bool:
    """Whether code of the tests' helpers asks."""
    return asks.f_code.co_filename.startswith(TolerantModule.helpers)


class _AbsentModule(ModuleType):
    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}", _of_helper(sys._getframe(1)))


class TolerantModule(ModuleType):
    """A module of the library; while files of `source` are imported, it seems to them to have every name."""

    source = ""
    helpers: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        asks = sys._getframe(1)
        of_helper = _of_helper(asks)
        given = self.__dict__.get("__getattr__")
        if given is not None:
            try:
                return given(name)
            except AttributeError:
                if not tolerant and not of_helper:
                    raise
        by_call = dis.opname[asks.f_code.co_code[asks.f_lasti]].startswith(("CALL", "PRECALL"))  # getattr and hasattr
        by_call = by_call and asks.f_code.co_name != "_getattr_qual"
        may_ask = of_helper or tolerant and asks.f_code.co_filename.startswith(TolerantModule.source)
        if not may_ask or name.startswith("__") or by_call:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return Absent(f"{self.__name__}.{name}", of_helper)


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


def resolve_annotations(module: ModuleType) -> None:
    """Have the annotations of a module's functions be classes instead of their names.

    PyTorch's tests look for functions of which a parameter is annotated with the class Tensor. The library's modules postpone
    the evaluation of annotations (PEP 563), so there it is the string "Tensor".
    """
    for function in vars(module).values():
        plain = inspect.unwrap(function) if callable(function) else None
        if isinstance(plain, FunctionType):
            with contextlib.suppress(NameError, TypeError):
                plain.__annotations__ = typing.get_type_hints(plain)


def keep_settings(module: ModuleType, source: Path) -> None:
    """Have a module of settings keep those too that only PyTorch's has: its tests set them, mostly to their defaults."""
    from rushlight.compiler.configuration import without_effect

    for prefix, statement in _statements(ast.parse(source.read_text()).body):
        target = getattr(statement, "target", None) or (getattr(statement, "targets", None) or [None])[0]
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            try:
                default = ast.literal_eval(statement.value)
            except (ValueError, TypeError):
                default = None
            module._settings.setdefault(prefix + target.id, without_effect(default))


def _statements(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Statements of a module of settings and of its classes, with the prefix of the names that they set: `cpp.`."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from ((f"{statement.name}.", each) for each in statement.body)
        else:
            yield "", statement


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
