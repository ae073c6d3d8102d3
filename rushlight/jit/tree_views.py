"""Tree views: the syntax tree of TorchScript, as the frontend builds it and the emitter reads it.

In: pieces of Python's `ast`, or of an archive's code. Out: nodes that print as s-expressions:

    (def (ident f) (decl (list (param (ident x) (option) (option) (False))) (option)) (list (return (variable (ident x)))))

Every node knows its source range. Stage: jit, between `frontend` and `emitter`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rushlight.jit.tree_printing import Option, Tree, TreeList

# Names and declarations


@dataclass(slots=True)
class Ident(Tree):
    """A name."""

    name: str

    kind = "ident"


@dataclass(slots=True)
class Param(Tree):
    """A parameter: its name, annotation, default, and whether it is passed by keyword only."""

    annotation: Tree | None
    ident: Ident
    kwarg_only: bool
    default: Tree | None = None

    kind = "param"

    def children(self) -> Iterator[object]:
        yield from (self.ident, Option(self.annotation), Option(self.default), "(True)" if self.kwarg_only else "(False)")


@dataclass(slots=True)
class Decl(Tree):
    """The parameters and the return type of a function."""

    params: list[Param]
    return_type: Tree | None

    kind = "decl"

    def children(self) -> Iterator[object]:
        yield from (self.params, Option(self.return_type))


@dataclass(slots=True)
class Def(Tree):
    """A function."""

    ident: Ident
    decl: Decl
    body: list[Tree]

    kind = "def"


@dataclass(slots=True)
class Property(Tree):
    """A property of a class: a getter, and perhaps a setter."""

    ident: Ident
    getter: Def
    setter: Def | None

    kind = "property"

    def children(self) -> Iterator[object]:
        yield from (self.ident, self.getter, Option(self.setter))


@dataclass(slots=True)
class ClassDef(Tree):
    """A class: its name and base, its body, and further facts from the frontend."""

    ident: Ident
    body: list[Tree]
    superclass: Tree | None = None
    properties: list[Property] | None = None
    assignments: list[Tree] | None = None

    kind = "class"

    def children(self) -> Iterator[object]:
        assigned = [each for each in self.assignments or () if each.value is not None]
        listed = (TreeList(self.properties or ()), TreeList(assigned))
        yield from (self.ident, Option(self.superclass), self.body, *map(Option, listed))


# Statements


@dataclass(slots=True)
class ExprStmt(Tree):
    """An expression whose value is dropped."""

    expr: Tree

    kind = "expression statement"


@dataclass(slots=True)
class Assign(Tree):
    """`targets = value`, perhaps with an annotation; without a value only the annotation."""

    targets: list[Tree]
    value: Tree | None
    annotation: Tree | None = None

    kind = "assign"

    def children(self) -> Iterator[object]:
        yield from (self.targets, Option(self.value), Option(self.annotation))


@dataclass(slots=True)
class AugAssign(Tree):
    """`target += value` and the like; `operator` is `+`."""

    target: Tree
    operator: str
    value: Tree

    kind = "aug_assign"

    def children(self) -> Iterator[object]:
        yield from (self.target, f"({self.operator})", self.value)


@dataclass(slots=True)
class Delete(Tree):
    """`del targets`."""

    targets: list[Tree]

    kind = "del"


@dataclass(slots=True)
class Return(Tree):
    """`return value`."""

    value: Tree

    kind = "return"


@dataclass(slots=True)
class Raise(Tree):
    """`raise value`."""

    value: Tree

    kind = "raise"


@dataclass(slots=True)
class Assert(Tree):
    """`assert condition, message`."""

    condition: Tree
    message: Tree | None

    kind = "assert"

    def children(self) -> Iterator[object]:
        yield from (self.condition, Option(self.message))


@dataclass(slots=True)
class While(Tree):
    """`while condition:`."""

    condition: Tree
    body: list[Tree]

    kind = "while"


@dataclass(slots=True)
class For(Tree):
    """`for targets in iterables:`."""

    targets: list[Tree]
    iterables: list[Tree]
    body: list[Tree]

    kind = "for"


@dataclass(slots=True)
class If(Tree):
    """`if condition:` with both branches."""

    condition: Tree
    true_branch: list[Tree]
    false_branch: list[Tree]

    kind = "if"


@dataclass(slots=True)
class Pass(Tree):
    """`pass`."""

    kind = "pass"


@dataclass(slots=True)
class Break(Tree):
    """`break`."""

    kind = "break"


@dataclass(slots=True)
class Continue(Tree):
    """`continue`."""

    kind = "continue"


@dataclass(slots=True)
class WithItem(Tree):
    """`target as variable` of a with statement."""

    target: Tree
    variable: Tree | None

    kind = "withitem"

    def children(self) -> Iterator[object]:
        yield from (self.target, Option(self.variable))


@dataclass(slots=True)
class With(Tree):
    """`with items:`."""

    items: list[WithItem]
    body: list[Tree]

    kind = "with"


@dataclass(slots=True)
class Closure(Tree):
    """A nested function without parameters, as in archives' code for `fork`."""

    ident: Ident
    body: list[Tree]

    kind = "closure"


# Expressions


@dataclass(slots=True)
class Var(Tree):
    """A name that is read or assigned."""

    ident: Ident

    kind = "variable"

    @property
    def name(self) -> str:
        """Return the name."""
        return self.ident.name


@dataclass(slots=True)
class Select(Tree):
    """`value.selector`."""

    value: Tree
    selector: Ident

    kind = "."


@dataclass(slots=True)
class Attribute(Tree):
    """A keyword argument."""

    ident: Ident
    value: Tree

    kind = "attribute"


@dataclass(slots=True)
class Starred(Tree):
    """`*value`."""

    value: Tree

    kind = "starred"


@dataclass(slots=True)
class Apply(Tree):
    """`callee(inputs, attributes)`."""

    callee: Tree
    inputs: list[Tree]
    attributes: list[Attribute]

    kind = "apply"


@dataclass(slots=True)
class Dots(Tree):
    """`...`."""

    kind = "dots"


@dataclass(slots=True)
class TrueLiteral(Tree):
    """`True`."""

    kind = "True"


@dataclass(slots=True)
class FalseLiteral(Tree):
    """`False`."""

    kind = "False"


@dataclass(slots=True)
class NoneLiteral(Tree):
    """`None`."""

    kind = "None"


@dataclass(slots=True)
class Const(Tree):
    """A number; `text` is its Python source."""

    text: str

    kind = "const"

    @property
    def number(self) -> int | float | complex:
        """Return the number itself."""
        text = self.text
        if text.endswith("j"):
            return complex(text)
        return float(text) if any(char in text for char in ".einf") and not text.startswith("0x") else int(text, 0)


@dataclass(slots=True)
class StringLiteral(Tree):
    """A string."""

    text: str

    kind = "string_literal"


@dataclass(slots=True)
class BinOp(Tree):
    """`left operator right`; its kind is the operator, such as `+`, `eq` or `and`."""

    operator: str
    left: Tree
    right: Tree

    @property
    def kind(self) -> str:
        """Return the operator's name in print."""
        return _PRINTED.get(self.operator, self.operator)

    def children(self) -> Iterator[object]:
        yield from (self.left, self.right)


@dataclass(slots=True)
class UnaryOp(Tree):
    """`operator value`; the operator is `-`, `~`, `+` or `not`."""

    operator: str
    value: Tree

    @property
    def kind(self) -> str:
        """Return the operator's name in print."""
        return "unary minus" if self.operator == "-" else self.operator

    def children(self) -> Iterator[object]:
        yield self.value


_PRINTED = {"==": "eq", "!=": "ne", "<=": "le", ">=": "ge", "//": "floordiv", "**": "pow operator", "is not": "is not"}


@dataclass(slots=True)
class TernaryIf(Tree):
    """`true_value if condition else false_value`."""

    condition: Tree
    true_value: Tree
    false_value: Tree

    kind = "if"


@dataclass(slots=True)
class SliceExpr(Tree):
    """`start:stop:step` in a subscript."""

    start: Tree | None
    stop: Tree | None
    step: Tree | None

    kind = "slice expr"

    def children(self) -> Iterator[object]:
        yield from (Option(self.start), Option(self.stop), Option(self.step))


@dataclass(slots=True)
class Subscript(Tree):
    """`value[subscripts]`."""

    value: Tree
    subscripts: list[Tree]

    kind = "subscript"


@dataclass(slots=True)
class ListLiteral(Tree):
    """`[items]`."""

    items: list[Tree]

    kind = "list-literal"


@dataclass(slots=True)
class TupleLiteral(Tree):
    """`(items,)`."""

    items: list[Tree]

    kind = "tuple-literal"


@dataclass(slots=True)
class DictLiteral(Tree):
    """`{keys: values}`."""

    keys: list[Tree]
    values: list[Tree]

    kind = "dict-literal"


@dataclass(slots=True)
class ListComp(Tree):
    """`[element for target in iterable]`."""

    element: Tree
    target: Tree
    iterable: Tree

    kind = "list comprehension"


@dataclass(slots=True)
class DictComp(Tree):
    """`{key: value for target in iterable}`."""

    key: Tree
    value: Tree
    target: Tree
    iterable: Tree

    kind = "dict comprehension"
