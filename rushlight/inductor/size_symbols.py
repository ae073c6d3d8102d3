"""Size symbols of a graph: how each call reads their values, and the conditions on them.

In: the fake values of the graph's inputs. Out: `SizeSymbols`. Stage: inductor, between lowering and the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.dtype import dtype
from rushlight.core.symbolic import Relation, ShapeEnv, SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.symbolic_sizes import environment_of
from rushlight.inductor.sizes import Size, UnsupportedSize, as_size, as_sizes, symbols_of


@dataclass(frozen=True, slots=True)
class TensorInput:
    """The expected sizes, strides and dtype of a tensor input."""

    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: dtype

    @property
    def stepped(self) -> list[int]:
        """The dimensions whose strides matter: those whose size is not 1."""
        return [dim for dim, size in enumerate(self.size) if size != 1]


# Kinds of numbers read from an input, numbered as in csrc/guard_sizes.h.
SIZE, STRIDE, VALUE = range(3)


@dataclass(frozen=True, slots=True)
class SizeSource:
    """A number that a call reads: a size or stride of an input, or an int input. `variable` stands for it; its name is the
    Python expression that reads it, where `a0`, `a1`, ... are the inputs and `i0`, `i1`, ... the impls of tensors. `expected`
    is the number in the graph."""

    variable: Var
    kind: int
    position: int
    dim: int
    expected: Size


class SizeSymbols:
    """The symbols of a graph, in the order in which native code takes them. False if there are none.

    `inputs` has a TensorInput or a Size for each input. `definitions` compute the symbols from the variables of `sources` and
    earlier symbols. `relations` are the assumptions of capture and lowering about them.
    """

    def __init__(self, values: Sequence[object] = ()):
        """Collect the symbols of fake inputs; UnsupportedSize if an input's size has symbols that no input defines."""
        self.inputs = [_input_spec_of(value) for value in values]
        self.sources = [source for position, given in enumerate(self.inputs) for source in _sources_of(position, given)]
        self.definitions: dict[Var, Expr] = {}
        self.relations: tuple[Relation, ...] = ()
        self.hints: dict[Var, int] = {}
        environment = environment_of(values)
        if environment is not None:
            self._define(environment)

    def __bool__(self) -> bool:
        return bool(self.definitions)

    def __str__(self) -> str:
        lines = (f"SizeSymbol({symbol}, {value}, hint={self.hints[symbol]})" for symbol, value in self.definitions.items())
        return "\n".join(lines)

    @property
    def names(self) -> list[str]:
        """The symbols' names in order."""
        return [symbol.name for symbol in self.definitions]

    def require(self, sizes: Sequence[Size]) -> None:
        """Raise UnsupportedSize unless every symbol in `sizes` is defined."""
        missing = symbols_of(sizes) - self.definitions.keys()
        if missing:
            raise UnsupportedSize(f"no input of the graph gives the value of {', '.join(sorted(map(str, missing)))}")

    def _define(self, environment: ShapeEnv) -> None:
        for source in self.sources:
            if isinstance(source.expected, Var):
                self.definitions.setdefault(source.expected, source.variable)
        for source in self.sources:
            self._solve(source)
        for symbol, expression in environment.replacements.items():
            if expression.free_variables() <= self.definitions.keys():
                self.definitions.setdefault(symbol, expression)
        self.require([source.expected for source in self.sources])
        self.hints = {symbol: environment.hint_of(symbol) for symbol in self.definitions}
        relations = (guard.relation for guard in environment.relations())
        self.relations = tuple(
            relation for relation in relations if relation.expression.free_variables() <= self.definitions.keys()
        )

    def _solve(self, source: SizeSource) -> None:
        """Define a symbol by a size that is linear in it and has no other undefined symbol. The check of the inputs ensures
        that the division is exact."""
        unknown = symbols_of([source.expected]) - self.definitions.keys()
        if len(unknown) != 1:
            return
        (symbol,) = unknown
        scale = dict(linear_form(source.expected)[0]).get(symbol)
        rest = source.expected - symbol * (scale or 0)
        if scale and not rest.contains(symbol):
            difference = source.variable - rest if scale > 0 else rest - source.variable
            self.definitions[symbol] = as_expr(difference // abs(scale))


def _sources_of(position: int, given: TensorInput | Size) -> list[SizeSource]:
    """Return every number of an input that a call checks."""
    if not isinstance(given, TensorInput):
        return [SizeSource(Var(f"a{position}", least=None), VALUE, position, 0, given)]
    sizes = [
        SizeSource(Var(f"i{position}.sizes[{dim}]", least=None), SIZE, position, dim, size)
        for dim, size in enumerate(given.size)
    ]
    strides = [
        SizeSource(Var(f"i{position}.strides[{dim}]", least=None), STRIDE, position, dim, given.stride[dim])
        for dim in given.stepped
    ]
    return sizes + strides


def _input_spec_of(value: object) -> TensorInput | Size:
    if isinstance(value, Tensor):
        return TensorInput(as_sizes(value.shape), as_sizes(value.stride()), value.dtype)
    if isinstance(value, int | SymInt) and not isinstance(value, bool):
        return as_size(value)
    raise UnsupportedSize(f"an input of the graph is {value!r}, neither a tensor nor an integer")
