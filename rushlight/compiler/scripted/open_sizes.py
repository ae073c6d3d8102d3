"""Sizes and ints that a program leaves symbolic, and the checks that a call does on them.


In: the tensors that a capture begins with, and which of their dimensions are to be open. Out: their geometry with symbols, and,
after the graph has been compiled, `SizeChecks`, which say whether the same code serves other sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rushlight.core.algebra import Expr, Var
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.symbolic_sizes import Geometry, symbolic_strides

_MISSING = frozenset()
Dims = Mapping[object, frozenset[int]]
"""The open dimensions of each tensor, by the place where the tensor is found."""


class OpenSizes:
    """The symbols of one capture. `dims` says which dimensions of which inputs are open."""

    def __init__(self, dims: Dims):
        self.dims = dict(dims)
        self.environment = ShapeEnv()
        self.inputs: dict[object, tuple[Tensor, Geometry | None]] = {}
        self.integers: dict[object, SymInt | int] = {}

    def geometry(self, place: object, tensor: Tensor) -> Geometry | None:
        """Return sizes and strides for the fake tensor of an input; None if all are fixed."""
        found = self._geometry(place, tensor)
        self.inputs[place] = (tensor, found)
        return found

    def _geometry(self, place: object, tensor: Tensor) -> Geometry | None:
        dims: Collection[int] = self.dims.get(place, _MISSING)
        if not dims:
            return None
        impl = tensor._impl
        sizes = tuple([
            self.environment.create_symbol(size, (place, dim), share=False) if dim in dims else size
            for dim, size in enumerate(impl.sizes)
        ])  # fmt: skip
        strides = symbolic_strides(impl, sizes, lambda dim, stride: stride)
        return (sizes, strides) if any(type(size) is SymInt for size in sizes) else None

    def integer(self, place: object, value: int) -> SymInt | int:
        """Return the symbol of an int that is an input."""
        if place not in self.integers:
            self.integers[place] = self.environment.create_symbol(value, (place, None), share=False, least=None)
        return self.integers[place]


class SizeChecks:
    """The checks whether a call's tensors and ints have the geometry that a program serves. `order` names the inputs in call
    order."""

    def __init__(self, sizes: OpenSizes, order: Sequence[object]):
        environment = sizes.environment
        places = {place: index for index, place in enumerate(order)}
        self._symbols = [(binding.symbol, places[binding.source[0]], binding.source[1]) for binding in environment.bindings
                         if binding.source[0] in places]  # fmt: skip
        self._relations = [guard.relation for guard in environment.relations()]
        self._inputs = [(index, *self._expected_geometry(*sizes.inputs[place], environment)) for place, index in places.items()
                        if place in sizes.inputs]  # fmt: skip
        self._is_open = bool(environment.bindings)

    @staticmethod
    def _expected_geometry(tensor: Tensor, geometry: Geometry | None, environment: ShapeEnv) -> tuple:
        """Return the dtype, sizes and strides that a tensor must have, as expressions of the symbols."""
        impl = tensor._impl
        rows = geometry or (impl.sizes, impl.strides)
        plain = geometry is None
        return impl.dtype, plain, *(tuple(row) if plain else [_expression(each) for each in row] for row in rows)

    def hold(self, given: Sequence[Tensor | int]) -> bool:
        """Return whether the inputs pass the checks."""
        values: dict[Var, int] = {}
        for symbol, index, dim in self._symbols:
            value = given[index] if dim is None else _size(given[index], dim)
            if type(value) is not int or (symbol.least is not None and value < symbol.least):
                return False
            values[symbol] = value
        for index, kind, is_plain, sizes, strides in self._inputs:
            if not _is_as_expected(given[index], kind, is_plain, sizes, strides, values):
                return False
        return not self._is_open or all(relation.holds(values) for relation in self._relations)


def _size(tensor: object, dim: int) -> int | None:
    sizes = tensor._impl.sizes if isinstance(tensor, Tensor) else ()
    return sizes[dim] if dim < len(sizes) else None


def _expression(value: SymInt | int) -> Expr | int:
    return value.expr if type(value) is SymInt else value


def _is_as_expected(tensor: object, kind, is_plain: bool, sizes: Sequence, strides: Sequence, values: dict[Var, int]) -> bool:
    """Return whether a tensor has the expected dtype and geometry, and is a plain CPU tensor."""
    if not isinstance(tensor, Tensor):
        return False
    impl = tensor._impl
    if impl.dtype is not kind or impl.key_set != CPU_KEYS or impl.device is not CPU or impl.fake:
        return False
    if is_plain:
        return impl.sizes == sizes and impl.strides == strides
    return _match(impl.sizes, sizes, values) and _match(impl.strides, strides, values)


def _match(found: Sequence[int], expected: Sequence[Expr | int], values: dict[Var, int]) -> bool:
    """Return whether sizes equal the expected numbers or expressions."""
    return len(found) == len(expected) and all(
        one == (other if type(other) is int else other.evaluate(values)) for one, other in zip(found, expected, strict=True)
    )
