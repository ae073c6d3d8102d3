"""ShapeEnv: the size symbols of one capture, what has been assumed about them, and where in the program.

In: sizes of examples, and questions about symbols. Out: symbolic integers, answers, and the guards that make the answers
hold. Stage: capture with symbolic sizes; its owner turns the guards into checks of the inputs.

A question is answered without a guard where ranges or earlier guards decide it, else by the example's values, and then the
answer is a guard. An equality that names a symbol with coefficient one replaces that symbol everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rushlight.core.algebra import Const, Expr, Var, as_expr, is_nonnegative
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.symbolic.floats import number_of
from rushlight.core.symbolic.integers import SymInt, UnknownSizeError
from rushlight.core.symbolic.relations import DIFFERENT, EQUAL, NOT_NEGATIVE, Relation, at_least, below, equal

Value = SymInt | int


class UnguardedSizeError(RuntimeError):
    """A question about symbolic sizes came after the guards were read, so nothing would check its answer."""


class ConstraintViolationError(RuntimeError):
    """A size marked as dynamic was specialized, or the capture does not hold for the whole allowed range."""


class Binding(NamedTuple):
    """How to read a symbol's value; `source` is the owner's name for the input."""

    symbol: Var
    source: object


class ShapeGuard(NamedTuple):
    """A relation assumed to hold, and the line of the program that needed it ("" where that is unknown)."""

    relation: Relation
    location: str


class ShapeEnv:
    """The symbols of one capture. `locate` returns the user's current line, for the guards.

    With `keeps_floats`, floats that follow from open sizes are SymFloats; else they fix the sizes to those of the example.

    `unknown` holds the unbacked symbols: values that the program computes. Questions about them raise UnknownSizeError, unless
    `suppose` is set. Then they are answered as for sizes of two and more, else by the example, and `suppose` receives the
    relation that was assumed.
    """

    def __init__(self, locate: Callable[[], str] = lambda: "", keeps_floats: bool = False):
        self.locate = locate
        self.keeps_floats = keeps_floats
        self.bindings: list[Binding] = []
        self.guards: list[ShapeGuard] = []
        self.replacements: dict[Var, Expr] = {}
        self.version = 0
        self.frozen = False
        self.unknown: set[Var] = set()
        self.suppose: Callable[[Relation], None] | None = None
        self._hints: dict[Var, int] = {}
        self._shared: dict[int, Var] = {}
        self._integers: dict[Expr, SymInt] = {}
        self._facts: list[Relation] = []
        self._replaced_at: dict[Var, str] = {}

    # Create symbols

    def create_symbol(
        self, hint: int, source: object, share: bool = True, least: int | None = 2, most: int | None = None
    ) -> Value:
        """Return a symbolic integer whose value in the example is `hint`. 0 and 1 stay plain ints, because programs treat them
        specially.

        With `share`, equal hints get one symbol, and so a guard that they are equal. The value is known to lie between `least`
        and `most` (None: no limit); ValueError where the hint does not.
        """
        if hint in (0, 1):
            return hint
        if (least is not None and hint < least) or (most is not None and hint > most):
            raise ValueError(f"{source} is {hint}, expected a value from {least} to {most}")
        symbol = self._shared.get(hint) if share else None
        if symbol is None:
            symbol = Var(f"s{len(self._hints)}", None if most is None else most + 1, least)
            self._hints[symbol] = hint
            if share:
                self._shared[hint] = symbol
        self.bindings.append(Binding(symbol, source))
        return self.integer(symbol)

    def create_unknown(self, hint: int, least: int | None = 0) -> SymInt:
        """Return an unbacked symbolic integer: computed by the program, `hint` in the example, and at least `least`."""
        symbol = Var(f"u{len(self.unknown)}", None, least)
        self._hints[symbol] = hint
        self.unknown.add(symbol)
        return self.integer(symbol)

    def set_hint(self, expression: Expr, hint: int) -> None:
        """Set the example's value of an unbacked symbol."""
        if expression in self.unknown:
            self._hints[expression] = hint

    def is_unknown(self, expression: Expr) -> bool:
        """Return whether an expression contains an unbacked symbol."""
        return bool(self.unknown) and not self.unknown.isdisjoint(expression.free_variables())

    def learn(self, relation: Relation) -> None:
        """Assume a relation of unbacked symbols; a check at run time ensures it."""
        self._facts.append(self._reduce(relation))

    @property
    def symbols(self) -> tuple[Var, ...]:
        """Return every symbol made, in order, including those replaced since."""
        return tuple(self._hints)

    def integer(self, expression: Expr) -> Value:
        """Return the expression as an integer of programs: a SymInt, or an int where it is constant."""
        expression = self.simplify(expression)
        if type(expression) is Const:
            return expression.value
        found = self._integers.get(expression)
        if found is None:
            found = self._integers.setdefault(expression, SymInt(self, expression))
        return found

    def simplify(self, expression: Expr) -> Expr:
        """Return the expression with replaced symbols substituted."""
        return expression.substitute(self.replacements) if self.replacements else expression

    def hint_of(self, expression: Expr) -> int:
        """Return the value of an expression for the example."""
        return expression.evaluate(self._hints)

    # Answer questions

    def prove(self, relation: Relation) -> bool | None:
        """Return whether the relation holds (True) or fails (False) for all values that the guards admit; None if unknown."""
        relation = self._reduce(relation)
        known = relation.constant()
        if known is not None:
            return known
        if relation.kind == NOT_NEGATIVE:
            if self._is_not_negative(relation.expression):
                return True
            return False if self._is_not_negative(-relation.expression - 1) else None
        if self._is_never_zero(relation.expression):
            return relation.kind == DIFFERENT
        return relation.kind == EQUAL if self._has_fact(EQUAL, relation.expression) else None

    def evaluate(self, relation: Relation) -> bool:
        """Return whether the relation holds. Where that cannot be proved, the example decides, and the answer becomes a
        guard.
        """
        known = self.prove(relation)
        if known is not None:
            return known
        relation = self._reduce(relation)
        if self.is_unknown(relation.expression):
            return self._decide_unbacked(relation)
        answer = relation.holds(self._hints)
        self._assume(relation if answer else relation.negated())
        return answer

    def specialize(self, expression: Expr) -> int:
        """Return the expression's value in the example. A guard fixes the expression to it."""
        expression = self.simplify(expression)
        if self.is_unknown(expression):
            raise UnknownSizeError(
                f"the value of {expression} is needed, which the program computes: it is known when it runs, and may be "
                "another one each time"
            )
        value = self.hint_of(expression)
        if type(expression) is not Const:
            self._assume(equal(expression, as_expr(value)).reduced())
        return value

    def number(self, function: Callable, *parts: object) -> object:
        """Return the float `function(*parts)`, open where the environment keeps floats."""
        if self.keeps_floats:
            return number_of(function, *parts)
        return function(*[int(part) if type(part) is SymInt else part for part in parts])

    def relations(self) -> Iterator[ShapeGuard]:
        """Yield the guards on the symbols besides their ranges: first each replaced symbol's equality, then the other
        guards.
        """
        for symbol, expression in self.replacements.items():
            yield ShapeGuard(equal(symbol, expression), self._replaced_at[symbol])
        seen = set()
        for guard in self.guards:
            relation = self._reduce(guard.relation)
            if relation.constant() is None and relation not in seen:
                seen.add(relation)
                yield ShapeGuard(relation, guard.location)

    def freeze(self) -> None:
        """Declare that the guards have been read: from now on a question that needs a new guard raises UnguardedSizeError."""
        self.frozen = True

    def _decide_unbacked(self, relation: Relation) -> bool:
        """Return the answer to a question about unbacked symbols."""
        if self.suppose is None:
            raise UnknownSizeError(
                f"whether {relation} depends on values that the program computes; say what holds of them by torch._check(...)"
            )
        expression, other = relation.expression, -relation.expression
        if relation.kind == NOT_NEGATIVE:
            if self._is_not_negative(expression + 2):
                return True
            if self._is_not_negative(other + 1):
                return False
        elif self._is_not_negative(expression) or self._is_not_negative(expression + 1) or self._is_not_negative(other + 1):
            return relation.kind == DIFFERENT  # unknown sizes are assumed to be neither 0 nor 1
        answer = relation.holds(self._hints)
        held = relation if answer else relation.negated()
        self.learn(held)
        self.suppose(held)
        return answer

    # Prove inequalities

    def _reduce(self, relation: Relation) -> Relation:
        return (relation.substitute(self.replacements) if self.replacements else relation).reduced()

    def _is_not_negative(self, expression: Expr) -> bool:
        if is_nonnegative(expression):
            return True
        return any(self._follows_from(expression, fact) for fact in self._facts)

    def _follows_from(self, expression: Expr, fact: Relation) -> bool:
        """Return whether `expression >= 0` follows from one fact."""
        if fact.kind == DIFFERENT:
            return False
        if is_nonnegative(expression - fact.expression):
            return True
        return fact.kind == EQUAL and is_nonnegative(expression + fact.expression)

    def _is_never_zero(self, expression: Expr) -> bool:
        if self._is_not_negative(expression - 1) or self._is_not_negative(-expression - 1):
            return True
        return self._has_fact(DIFFERENT, expression)

    def _has_fact(self, kind: str, expression: Expr) -> bool:
        opposite = -expression
        return any(fact.kind == kind and (fact.expression is expression or fact.expression is opposite) for fact in self._facts)

    # Assumptions

    def _assume(self, relation: Relation) -> None:
        if self.frozen:
            raise UnguardedSizeError(
                f"{relation} was assumed about symbolic sizes after their guards had been made. Ask before the capture ends, "
                "or capture anew with fixed sizes."
            )
        self.guards.append(ShapeGuard(relation, self.locate()))
        solved = _solve(relation, tuple(self._hints)) if relation.kind == EQUAL else None
        if solved is None:
            self._facts.append(relation)
            return
        self._replace(*solved)

    def _replace(self, symbol: Var, expression: Expr) -> None:
        one = {symbol: expression}
        self._replaced_at[symbol] = self.locate()
        self.replacements = {name: value.substitute(one) for name, value in self.replacements.items()} | one
        self.version += 1
        self._facts = [fact for fact in map(self._reduce, self._facts) if fact.constant() is None]
        if symbol.least is not None:
            self.evaluate(at_least(expression, as_expr(symbol.least)))
        if symbol.extent is not None:
            self.evaluate(below(expression, as_expr(symbol.extent)))


def _solve(relation: Relation, symbols: tuple[Var, ...]) -> tuple[Var, Expr] | None:
    """Return (symbol, expression) such that `symbol == expression` is equivalent to the relation; picks the newest possible
    symbol.
    """
    terms, constant = linear_form(relation.expression)
    if len(terms) == 1 and type(terms[0][0]) is Var:
        return terms[0][0], as_expr(-constant // terms[0][1])
    best = None
    for term, scale in terms:
        if type(term) is Var and abs(scale) == 1:
            alone = all(not other.contains(term) for other, _ in terms if other is not term)
            if alone and (best is None or symbols.index(term) > symbols.index(best[0])):
                best = term, term - relation.expression * scale
    return best
