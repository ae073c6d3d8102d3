"""The user's specification of dynamic sizes: `Dim` and its hints, by argument.

In: `dynamic_shapes`, a tree like the arguments. Out: for each leaf of the arguments, its open sizes and their specification.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.export.errors import UserError

__all__ = ["AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "dims", "refine_dynamic_shapes_from_suggested_fixes"]

INFINITY = math.inf


class _DimHintType(Enum):
    AUTO = 1
    DYNAMIC = 2
    STATIC = 3


@dataclass(frozen=True)
class DimHint:
    """An unnamed size. AUTO: open if possible; DYNAMIC: open, else an error; STATIC: fixed.

    A call with `min` and `max` returns a hint with these bounds.
    """

    type: _DimHintType
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> DimHint:
        if self.type is _DimHintType.STATIC:
            raise AssertionError("Dim.STATIC takes no bounds")
        if min is not None and min < 0:
            raise AssertionError("min must be non-negative")
        return DimHint(self.type, min, max)

    def __repr__(self) -> str:
        bounds = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join([self.type.name, *bounds])})"


class Dim:
    """A named size between `min` and `max`; sizes of one name are equal. `2 * dim + 1` is a size that depends on it."""

    AUTO = DimHint(_DimHintType.AUTO)
    DYNAMIC = DimHint(_DimHintType.DYNAMIC)
    STATIC = DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        least, most = 0 if min is None else min, INFINITY if max is None else max
        if most < least:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min = least
        self.max = most

    def __add__(self, other: int) -> DerivedDim:
        return DerivedDim(self, 1, _whole(other))

    def __sub__(self, other: int) -> DerivedDim:
        return DerivedDim(self, 1, -_whole(other))

    def __mul__(self, other: int) -> DerivedDim:
        return DerivedDim(self, _factor(other), 0)

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        bounds = [f"min={self.min}", *([] if self.max == INFINITY else [f"max={self.max}"])]
        return f"Dim('{self.__name__}', {', '.join(bounds)})"


def _whole(value: object) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"Attempted to add {value} to a Dim, where an integer was expected.")
    return value


def _factor(value: object) -> int:
    if type(value) is not int or value <= 0:
        raise NotImplementedError(f"Attempted to multiply a Dim with {value}, where a positive integer was expected.")
    return value


class DerivedDim:
    """`scale * root + offset`, where `root` is a Dim."""

    def __init__(self, root: Dim, scale: int, offset: int) -> None:
        self.root = root
        self.scale = scale
        self.offset = offset

    @property
    def __name__(self) -> str:
        product = f"{self.scale}*{self.root.__name__}" if self.scale != 1 else self.root.__name__
        return product + (f" + {self.offset}" if self.offset > 0 else f" - {-self.offset}" if self.offset else "")

    @property
    def min(self) -> int:
        """The least value."""
        return self.scale * self.root.min + self.offset

    @property
    def max(self) -> float:
        """The largest value."""
        return self.scale * self.root.max + self.offset

    def __add__(self, other: int) -> DerivedDim:
        return DerivedDim(self.root, self.scale, self.offset + _whole(other))

    def __sub__(self, other: int) -> DerivedDim:
        return self + -_whole(other)

    def __mul__(self, other: int) -> DerivedDim:
        return DerivedDim(self.root, self.scale * _factor(other), self.offset * other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return a Dim for each name, with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


Constraint = Dim | DerivedDim | DimHint
"""A specification of one dynamic size."""


class ShapesCollection:
    """Open sizes by tensor: `shapes[x] = {0: dim}`; `dynamic_shapes(mod, args)` returns the tree for `export`."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, tensor: Tensor, shape: Any) -> None:
        known = self._shapes.get(id(tensor))
        if known is not None and known[1] != shape:
            raise AssertionError(f"Shapes assigned to input conflict: expected {known[1]}, got {shape}")
        self._shapes[id(tensor)] = tensor, shape

    def __getitem__(self, tensor: Tensor) -> Any:
        if id(tensor) not in self._shapes:
            self._shapes[id(tensor)] = tensor, {}
        return self._shapes[id(tensor)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> dict[str, Any]:
        """Return the tree for these arguments of a module; ValueError for a tensor that is not among them."""
        from_tensor = {key: shape for key, (_, shape) in self._shapes.items()}
        found: set[int] = set()

        def look_up(value: Any) -> Any:
            if id(value) in from_tensor:
                found.add(id(value))
                return from_tensor[id(value)]
            if isinstance(value, list | tuple):
                return type(value)([look_up(item) for item in value]) if type(value) in (list, tuple) else None
            return {key: look_up(item) for key, item in value.items()} if type(value) is dict else None

        named = named_arguments(m.forward, args, kwargs or {})
        shapes = {name: look_up(value) for name, value in named.items()}
        if len(found) != len(from_tensor):
            raise ValueError("Some tensors of the collection are not among the arguments")
        return shapes


class AdditionalInputs:
    """More example inputs of a program: sizes that differ between them become open."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict]] = []

    def add(self, args: tuple, kwargs: dict | None = None) -> None:
        """Add the arguments of one more call."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> dict[str, Any]:
        """Return the tree for `export`, given the arguments that it is called with."""
        first, *others = [named_arguments(m.forward, *call) for call in ((args, kwargs or {}), *self._examples)]
        return {name: _differing(value, [other[name] for other in others]) for name, value in first.items()}

    def verify(self, ep: Any) -> None:
        """Call the exported program with each of the inputs."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def _differing(value: Any, others: list) -> Any:
    if isinstance(value, Tensor):
        sizes = [tuple(other.shape) for other in others]
        return tuple(
            Dim.DYNAMIC if any(other[dim] != size for other in sizes) else None for dim, size in enumerate(value.shape)
        )
    if isinstance(value, list | tuple):
        return type(value)([_differing(item, [other[position] for other in others]) for position, item in enumerate(value)])
    if isinstance(value, dict):
        return {key: _differing(item, [other[key] for other in others]) for key, item in value.items()}
    return None


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Return `dynamic_shapes` with the suggested fixes of an error's text: `name = Dim('name', max=8)`, `name = 4`, `name =
    other`."""
    fixes: dict[str, Any] = {}
    for line in msg.partition("Suggested fixes:")[2].splitlines():
        name, separator, value = map(str.strip, line.partition("="))
        if separator and name.isidentifier():
            fixes[name] = _read_fix(name, value)
    return _with_fixes(dynamic_shapes, fixes)


def _read_fix(name: str, text: str) -> Any:
    if text.isdigit():
        return int(text)
    if text.startswith("Dim("):
        bounds = dict(part.strip().split("=") for part in text[4:].rstrip(")").split(",")[1:])
        return Dim(name, **{key: int(value) for key, value in bounds.items() if key in ("min", "max")})
    return text


def _with_fixes(shapes: Any, fixes: dict[str, Any]) -> Any:
    if isinstance(shapes, Dim):
        fixed = fixes.get(shapes.__name__, shapes)
        return Dim(fixed) if isinstance(fixed, str) else fixed
    if isinstance(shapes, list | tuple):
        return type(shapes)([_with_fixes(item, fixes) for item in shapes])
    return {key: _with_fixes(item, fixes) for key, item in shapes.items()} if isinstance(shapes, dict) else shapes


# Locations of open sizes


@dataclass(frozen=True)
class OpenSizes:
    """A leaf of the arguments, and the entry for each of its sizes: a Dim, a hint, or an int or None for a fixed one."""

    value: Any
    source: str
    entries: dict[int, Any]


def named_arguments(function: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Return arguments by the names of a function's parameters. TypeError for an invalid call."""
    signature = inspect.signature(function)
    signature.bind(*args, **kwargs)
    return {**signature.bind_partial(*args).arguments, **kwargs}


def open_leaves(named: dict[str, Any], shapes: Any) -> Iterator[OpenSizes]:
    """Yield the tensors for which `shapes`, a dict by name or a sequence, has entries. UserError where it does not match."""
    if isinstance(shapes, ShapesCollection | AdditionalInputs):
        raise TypeError("call dynamic_shapes() of the collection first")
    if isinstance(shapes, tuple | list):
        if len(shapes) != len(named):
            raise _mismatch("inputs", len(named), len(shapes))
        shapes = dict(zip(named, shapes, strict=True))
    if not isinstance(shapes, dict):
        raise UserError(f"Expected dynamic_shapes to be a dict, tuple or list, got {type(shapes)}")
    if set(shapes) != set(named):
        raise UserError(
            "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
            f"{list(named)} of `inputs`, but here they are {list(shapes)}. Since here `inputs` is a list/tuple enclosing "
            "a single dict, maybe you just forgot to enclose `dynamic_shapes` in a list/tuple?"
        )
    for name, value in named.items():
        yield from _open_sizes_in(value, shapes[name], f"L['{name}']", f"['{name}']")


def _mismatch(path: str, count: int, given: int) -> UserError:
    return UserError(
        f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `{path}` has {count} elements, but "
        f"`dynamic_shapes{path.removeprefix('inputs')}` has {given} elements"
    )


def _open_sizes_in(value: Any, shapes: Any, source: str, path: str) -> Iterator[OpenSizes]:
    if shapes is None:
        return
    if isinstance(value, Tensor):
        yield OpenSizes(value, source, _entries(value, shapes, path))
        return
    if isinstance(value, dict) and isinstance(shapes, dict):
        parts = list(value.items())
    elif isinstance(value, list | tuple) and isinstance(shapes, list | tuple):
        parts = list(enumerate(value))
    else:
        raise UserError(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` is a {type(value)}, "
            f"but `dynamic_shapes{path}` is a {type(shapes)}"
        )
    if len(shapes) != len(parts):
        raise _mismatch(f"inputs{path}", len(parts), len(shapes))
    for key, part in parts:
        yield from _open_sizes_in(part, shapes[key], f"{source}[{key!r}]", f"{path}[{key!r}]")


def _entries(tensor: Tensor, shapes: Any, path: str) -> dict[int, Any]:
    if isinstance(shapes, list | tuple):
        if len(shapes) != tensor.dim():
            raise UserError(
                f"Expected dynamic shape spec {shapes} specified at `dynamic_shapes{path}` to have the same length as the "
                f"actual tensor shape {tensor.shape} (expected {tensor.dim()}, but got {len(shapes)} instead)"
            )
        shapes = dict(enumerate(shapes))
    if not isinstance(shapes, dict):
        raise UserError(
            f"Unexpected input tensor shape {shapes} specified at `dynamic_shapes{path}` (expected either a list/tuple of "
            "dimensions, or a dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, "
            "Dim.STATIC, or Dim.DYNAMIC)"
        )
    for dim, entry in shapes.items():
        _check_entry(tensor, dim, entry, shapes, path)
    return dict(shapes)


def _check_entry(tensor: Tensor, dim: Any, entry: Any, shapes: Any, path: str) -> None:
    if type(dim) is not int or not 0 <= dim < tensor.dim():
        raise UserError(f"Unexpected dimension {dim!r} of a tensor of shape {tuple(tensor.shape)} at `dynamic_shapes{path}`")
    if isinstance(entry, int) and not isinstance(entry, bool):
        if entry != tensor.shape[dim]:
            raise UserError(f"{entry} specified at `dynamic_shapes{path}` for dimension {dim} of size {tensor.shape[dim]}")
    elif entry is not None and not isinstance(entry, Dim | DerivedDim | DimHint):
        raise UserError(
            f"Unexpected dimension mapped to index {dim} in input tensor shape {shapes} specified at `dynamic_shapes{path}` "
            f"(expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {entry!r} instead)"
        )
