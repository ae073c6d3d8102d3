"""How types relate: subtyping, joins, unions, and matching a schema's type variables."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.jit.types.kinds import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    ElementType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    NumberType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
)

_ORDER: tuple[Type | type, ...] = (
    EnumType, TensorType, TupleType, ListType, DictType, FLOAT, COMPLEX, FutureType, INT, NONE, STRING, GENERATOR, BOOL, DEVICE,
)  # fmt: skip
"""In which order the members of a union stand, as in torch; others follow."""


def members_of(kind: Type) -> tuple[Type, ...]:
    """Return the alternatives of a union or optional; for other types, the type itself."""
    if isinstance(kind, UnionType):
        return kind.members
    if isinstance(kind, OptionalType):
        return (*members_of(kind.element), NONE)
    if kind == NUMBER:
        return (FLOAT, INT, COMPLEX)
    return (kind,)


def is_subtype(kind: Type, of: Type) -> bool:
    """Return whether `kind` is a subtype of `of`. Lists and dicts are invariant, tuples covariant, interfaces structural."""
    if kind is of or kind == of or of is ANY:
        return True
    if isinstance(of, TensorType):
        return isinstance(kind, TensorType) and _tensor_fits(kind, of)
    if isinstance(kind, UnionType | OptionalType | NumberType):
        return all(any(is_subtype(part, each) for each in members_of(of)) for part in members_of(kind))
    if isinstance(of, UnionType | OptionalType | NumberType):
        return any(is_subtype(kind, each) for each in members_of(of))
    if isinstance(of, InterfaceType):
        return implements(kind, of)
    if isinstance(of, TupleType) and isinstance(kind, TupleType):
        return _tuple_fits(kind, of)
    if isinstance(of, ListType):
        return isinstance(kind, ListType) and _same_element(kind.element, of.element)
    if isinstance(of, ElementType) and type(kind) is type(of):
        return is_subtype(kind.element, of.element)
    if isinstance(of, DictType) and isinstance(kind, DictType):
        return kind.key == of.key and _same_element(kind.value, of.value)
    return _is_of_family(kind, of)


def _is_of_family(kind: Type, of: Type) -> bool:
    family = {ANY_LIST: ListType, ANY_TUPLE: TupleType, ANY_CLASS: ClassType, ANY_ENUM: EnumType}.get(of)
    return family is not None and isinstance(kind, family)


def _same_element(element: Type, other: Type) -> bool:
    if isinstance(element, TensorType) and isinstance(other, TensorType):
        return True
    return element == other


def _tensor_fits(kind: TensorType, of: TensorType) -> bool:
    pairs = ((kind.dtype, of.dtype), (kind.sizes, of.sizes), (kind.strides, of.strides), (kind.device, of.device),
             (kind.requires_grad, of.requires_grad), (kind.undefined, of.undefined))  # fmt: skip
    return all(known is None or known == own for own, known in pairs)


def _tuple_fits(kind: TupleType, of: TupleType) -> bool:
    if of.name is not None and kind.name != of.name:
        return False
    return len(kind.elements) == len(of.elements) and all(map(is_subtype, kind.elements, of.elements))


def implements(kind: Type, interface: InterfaceType) -> bool:
    """Return whether a class implements the methods of an interface, with compatible signatures."""
    if isinstance(kind, InterfaceType):
        return all(name in kind.methods for name in interface.methods)
    if not isinstance(kind, ClassType) or (interface.is_module and not kind.is_module):
        return False
    for name, wanted in interface.methods.items():
        found = kind.find_method(name)
        if found is None or not _signature_fits(found.schema, wanted):
            return False
    return True


def _signature_fits(schema, wanted) -> bool:
    own, theirs = schema.arguments[1:], wanted.arguments[1:]
    if len(own) != len(theirs):
        return False
    takes = all(a.name == b.name and is_subtype(b.type, a.type) for a, b in zip(own, theirs, strict=True))
    return takes and is_subtype(schema.return_type, wanted.return_type)


def union(kinds: Iterable[Type]) -> Type:
    """Return the union of some types: flattened, without redundant members; Optional for one type and None."""
    flat: list[Type] = []
    for kind in kinds:
        if kind is ANY:
            return ANY
        for part in members_of(kind):
            if not any(is_subtype(part, each) for each in flat):
                flat = [each for each in flat if not is_subtype(each, part)] + [part]
    flat.sort(key=_canonical_order)
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and NONE in flat:
        return OptionalType(next(each for each in flat if each is not NONE))
    if set(flat) == {FLOAT, INT, COMPLEX}:
        return NUMBER
    return UnionType(tuple(flat))


def in_order(kinds: Iterable[Type]) -> list[Type]:
    """Return types in the canonical order of unions, each once."""
    return sorted(dict.fromkeys(kinds), key=_canonical_order)


def _canonical_order(kind: Type) -> tuple:
    ranks = (rank for rank, each in enumerate(_ORDER) if (isinstance(kind, each) if isinstance(each, type) else kind == each))
    return next(ranks, len(_ORDER)), str(kind)


def without(kind: Type, removed: Iterable[Type]) -> Type | None:
    """Return a union without the subtypes of some types; None if nothing is left."""
    taken = tuple(removed)
    left = [part for part in members_of(kind) if not any(is_subtype(part, each) for each in taken)]
    return union(left) if left else None


def optional(kind: Type) -> Type:
    """Return the type or None."""
    return kind if kind in (NONE, ANY) or NONE in members_of(kind) else union((kind, NONE))


def unshaped(kind: Type) -> Type:
    """Return the type without tensor properties from profiling or tracing."""
    if isinstance(kind, TensorType):
        return TENSOR
    parts = kind.contained()
    if not parts or isinstance(kind, UnionType):
        return kind
    erased = tuple(map(unshaped, parts))
    return kind if erased == parts else kind.with_contained(erased)


def unify(first: Type, second: Type, default_to_union: bool = False) -> Type | None:
    """Return the least common supertype, as at the end of an if; None if there is none."""
    if is_subtype(first, second):
        return second
    if is_subtype(second, first):
        return first
    if isinstance(first, TensorType) and isinstance(second, TensorType):
        return TENSOR
    if NONE in (first, second):
        return optional(second if first is NONE else first)
    if isinstance(first, OptionalType) or isinstance(second, OptionalType):
        inner = unify(_without_optional(first), _without_optional(second))
        if inner is not None:
            return optional(inner)
    if isinstance(first, TupleType) and isinstance(second, TupleType) and len(first.elements) == len(second.elements):
        elements = [unify(*pair, default_to_union) for pair in zip(first.elements, second.elements, strict=True)]
        if all(element is not None for element in elements):
            return TupleType(tuple(elements))
    if type(first) is type(second) and isinstance(first, ListType | DictType):
        erased = unshaped(first), unshaped(second)
        if erased[0] == erased[1]:
            return erased[0]
    return union((first, second)) if default_to_union else None


def _without_optional(kind: Type) -> Type:
    return kind.element if isinstance(kind, OptionalType) else kind


class NoMatch(Exception):
    """A value's type does not match a schema's; the message says why."""


def match_variables(formal: Type, actual: Type, bound: dict[str, Type]) -> Type:
    """Return `formal` with its type variables bound to match `actual`; NoMatch when two uses of a variable disagree."""
    if isinstance(formal, VarType):
        found = bound.get(formal.name)
        if found is None:
            bound[formal.name] = unshaped(actual)
        else:
            joined = unify(found, actual)
            if joined is None:
                raise NoMatch(f"Type variable '{formal.name}' previously matched to type {found} is matched to type {actual}")
            bound[formal.name] = joined
        return bound[formal.name]
    parts = formal.contained()
    if not parts or not has_variables(formal):
        return formal
    if isinstance(formal, OptionalType):
        if actual is NONE:
            return OptionalType(substitute(formal.element, bound)) if _all_bound(formal, bound) else NONE
        return optional(match_variables(formal.element, _without_optional(actual), bound))
    if type(actual) is not type(formal) or len(actual.contained()) != len(parts):
        raise NoMatch(f"expected {formal}, found {actual}")
    matched = [match_variables(part, own, bound) for part, own in zip(parts, actual.contained(), strict=True)]
    return formal.with_contained(tuple(matched))


def _all_bound(kind: Type, bound: dict[str, Type]) -> bool:
    if isinstance(kind, VarType):
        return kind.name in bound
    return all(_all_bound(part, bound) for part in kind.contained())


def has_variables(kind: Type) -> bool:
    """Return whether a type variable occurs in a type."""
    return isinstance(kind, VarType) or any(map(has_variables, kind.contained()))


def substitute(kind: Type, bound: dict[str, Type]) -> Type:
    """Return a type with its variables replaced; NoMatch for an unbound one."""
    if isinstance(kind, VarType):
        if kind.name not in bound:
            raise NoMatch(f"type variable '{kind.name}' is not bound by any argument")
        return bound[kind.name]
    parts = kind.contained()
    return kind.with_contained(tuple(substitute(part, bound) for part in parts)) if parts and has_variables(kind) else kind
