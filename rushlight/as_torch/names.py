"""The names that classes have in PyTorch: `torch.Tensor`, `torch.nn.modules.linear.Linear`.

Programs look at `type(x).__module__` and `repr(type(x))` to tell whose an object is. Under the alias, classes say where PyTorch
has them; functions keep their own names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

import rushlight

_IN_TORCH = (
    "Tensor", "Size", "dtype", "device", "Generator", "layout", "memory_format", "qscheme", "finfo", "iinfo", "SymInt",
    "SymBool",
)  # fmt: skip
"""Classes that PyTorch has in `torch` itself."""

_FOLDERS = tuple(f"rushlight.{folder}." for folder in ("nn", "optim", "distributions", "utils", "autograd", "amp"))
"""Folders that lie as PyTorch's do: a class there is at the same place in `torch`."""


def name_as_torch() -> None:
    """Give classes PyTorch's names: those of modules that are loaded now, and of those that will be."""
    for name in _IN_TORCH:
        kind = getattr(rushlight, name, None)
        if isinstance(kind, type):
            kind.__module__ = "torch"
    for name, module in list(sys.modules.items()):
        if name.startswith(_FOLDERS):
            _name(module)
    sys.meta_path.insert(0, _Finder())


def _name(module: ModuleType) -> None:
    name = module.__name__
    alias = "torch" + name.removeprefix("rushlight")
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == name:
            kind.__module__ = alias
            sys.modules.setdefault(alias, module)  # typing.get_type_hints looks up a class's module there


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _name(module)


class _Finder(MetaPathFinder):
    """Finds the modules of `_FOLDERS`, as `PathFinder` does, and names their classes."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's spec; None for modules of other folders."""
        if not name.startswith(_FOLDERS):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
