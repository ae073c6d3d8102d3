"""Overload packets and namespaces: `ops.aten.add` resolves a call to one of its overloads by the argument types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np

import rushlight._C as _C
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout, memory_format
from rushlight.core.overrides import are_plain, asks_modes, call_override, overriding_arguments
from rushlight.core.tensor import Tensor
from rushlight.ops.deprecated_forms import convert_deprecated_call
from rushlight.ops.dispatcher import OpOverload, all_operators
from rushlight.ops.schema import Argument, Type

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_INTEGERS = (int, np.integer)
# Operators whose first operand may be a number.
_NUMBER_FIRST = frozenset("add sub mul div floor_divide true_divide subtract multiply divide".split())
_SIMPLE = {
    "int": _INTEGERS,
    "float": (float, int, np.floating, np.integer),
    "bool": (bool, np.bool_),
    "str": (str,),
    "Device": (device, str, int),
    "ScalarType": (dtype, type),
    "Layout": (layout,),
    "MemoryFormat": (memory_format,),
}


def fits(value: object, kind: Type) -> bool:
    """Return whether `value` may be passed where a schema says `kind`."""
    if value is None:
        return kind.optional
    if kind.is_list:
        return _fits_list(value, kind)
    if kind.base == "Tensor":
        return isinstance(value, Tensor)
    if kind.base == "Scalar":
        return isinstance(value, _NUMBERS) or (isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad)
    if kind.base == "int" and isinstance(value, Tensor):
        return value.dim() == 0 and value.dtype.is_integral
    if kind.base == "float" and isinstance(value, Tensor):
        return value.dim() == 0 and not value.requires_grad and not value.dtype.is_complex
    accepted = _SIMPLE.get(kind.base)
    if accepted is None:
        return True
    return isinstance(value, accepted) and not (kind.base in ("int", "Device") and isinstance(value, bool))


def _fits_list(value: object, kind: Type) -> bool:
    if isinstance(value, list | tuple):
        element = Type(kind.base, optional=kind.optional_elements)
        return all(fits(item, element) for item in value)
    return kind.length is not None and kind.base in ("int", "float", "bool") and fits(value, Type(kind.base))


class OpOverloadPacket(_C.PacketBase):
    """All overloads of one operator name. Call it and the first overload whose schema fits the arguments runs.

    A call whose arguments are all positional, of types that `_resolved` knows, goes to that overload at once
    (`csrc/dispatch.c`); any other call is `_call_resolving`.
    """

    def __init__(self, namespace: str, name: str):
        self.__name__ = name
        self._name = f"{namespace}::{name}"
        self._declared: list[OpOverload] = []
        # The object passed to `__torch_function__` for this packet: the public function, once there is one.
        self.public: Callable = self
        self._forget_choices()

    def add(self, op: OpOverload) -> None:
        """Add an overload; it becomes an attribute of the packet."""
        self._declared.append(op)
        op.overloadpacket = self
        self._forget_choices()
        setattr(self, op.overload, op)

    def remove(self, op: OpOverload) -> None:
        """Remove an overload."""
        self._declared.remove(op)
        self._forget_choices()
        delattr(self, op.overload)

    def _forget_choices(self) -> None:
        self.__dict__.pop("_overloads", None)
        self.__dict__.pop("argument_names", None)
        self._resolved: dict[tuple, OpOverload] = {}
        # Calls that skip overriding types once have a separate cache, because `_resolved` may only hold plain types, which have
        # no overrides.
        self._resolved_without_overrides: dict[tuple, OpOverload] = {}

    def _find_resolved(self, key: tuple) -> OpOverload | None:
        return self._resolved.get(key) or self._resolved_without_overrides.get(key)

    def _keep(self, key: tuple, op: OpOverload, args: tuple, kwargs: dict) -> None:
        (self._resolved if are_plain(args, kwargs) else self._resolved_without_overrides)[key] = op

    @cached_property
    def _overloads(self) -> list[OpOverload]:
        # In the order in which calls try them.
        return sorted(self._declared, key=_specificity) if len(self._declared) > 1 else list(self._declared)

    @cached_property
    def argument_names(self) -> frozenset[str]:
        """The names of all overloads' arguments."""
        return frozenset(argument.name for op in self._overloads for argument in op._schema.arguments)

    def overloads(self) -> list[str]:
        """Return the overload names."""
        return [op.overload for op in self._overloads]

    def _call_resolving(self, /, *args, **kwargs):
        deciding = overriding_arguments(args, kwargs)
        if deciding or asks_modes():
            return call_override(self.public, deciding, args, kwargs)
        try:
            op = self._resolved_with_keywords(args, kwargs) if kwargs else self._resolved_by_elements(args)
            converts = op is None
            op = op or self.resolve(args, kwargs)
        except TypeError:
            given = convert_deprecated_call(self.__name__, args, kwargs)
            if given is None:
                raise
            return self(*given[0], **given[1])
        if not converts:
            return op(*args, **kwargs)
        args = [_convert_to_schema(value, argument) for value, argument in zip(args, op._schema.arguments, strict=False)]
        positions, arguments = op._schema.positions, op._schema.arguments
        return op(*args, **{name: _convert_to_schema(kwargs[name], arguments[positions[name]]) for name in kwargs})

    def _resolved_by_elements(self, args: tuple) -> OpOverload | None:
        """Return the overload for positional arguments, cached by their types and the types of list elements.

        None where the types do not decide.
        """
        key = _C.argument_types(args)
        if key is None:
            key = tuple(frozenset(map(type, v)) if isinstance(v, list | tuple) else type(v) for v in args)
        op = self._find_resolved(key)
        if op is None:
            op = self.resolve(args, {})
            if not _decided_by_types(op, args):
                return None
            self._keep(key, op, args, {})
        return op

    def _resolved_with_keywords(self, args: tuple, kwargs: dict) -> OpOverload | None:
        """Return the overload for a call with keyword arguments, cached by names and types; None where these do not decide."""
        values = tuple(kwargs.values())
        key = (_C.argument_types(args), tuple(kwargs), _C.argument_types(values))
        if key[0] is None or key[2] is None:
            return None
        op = self._find_resolved(key)
        if op is None:
            op = self.resolve(args, kwargs)
            arguments, positions = op._schema.arguments, op._schema.positions
            named = [arguments[positions[name]] for name in kwargs]
            if not (_decided_by_types(op, args) and _decide_by_types(named, values)):
                return None
            self._keep(key, op, args, kwargs)
        return op

    def resolve(self, args: tuple, kwargs: dict) -> OpOverload:
        """Return the first overload that the arguments fit; TypeError lists the candidates when none does."""
        for op in self._overloads:
            if _accepts(op, args, kwargs, False):
                return op
        if any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            for op in self._overloads:
                if _takes_numbers(op) and _accepts(op, args, kwargs, True):
                    return op
        raise TypeError(self._mismatch(args, kwargs))

    def _mismatch(self, args: tuple, kwargs: dict) -> str:
        name = self.__name__
        given = [type(value).__name__ for value in args] + [f"{key}={type(v).__name__}" for key, v in kwargs.items()]
        if len(self._overloads) == 1:
            return f"{name}()" + _explain(self._overloads[0], args, kwargs)
        forms = "\n".join(f" * {op._schema}" for op in self._overloads)
        received = f"{name}() received an invalid combination of arguments - got ({', '.join(given)})"
        return f"{received}, but expected one of:\n{forms}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __str__(self) -> str:
        return self._name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __reduce__(self):
        return (find_packet, (self._name,))

    def __deepcopy__(self, memo):
        return self


def _specificity(op: OpOverload) -> tuple:
    # Tensor overloads come before overloads that take numbers, and overloads without `out` come first. Otherwise the order of
    # declaration stays, because the sort is stable.
    scalars = sum(argument.type.base in ("Scalar", "float") and not argument.has_default for argument in op._schema.arguments)
    return ("out" in op._schema.positions, scalars)


def _decided_by_types(op: OpOverload, args: tuple) -> bool:
    return _decide_by_types(op._schema.arguments, args)


def _decide_by_types(arguments: Iterable[Argument], values: tuple) -> bool:
    # A tensor can stand for a number only if it is 0-dim, which its type does not show.
    for value, argument in zip(values, arguments, strict=False):
        values = value if isinstance(value, list | tuple) else (value,)
        if argument.type.base != "Tensor" and any(isinstance(item, Tensor | list | tuple) for item in values):
            return False
    return True


def _convert_to_schema(value: object, argument: Argument) -> object:
    """Return `value` with 0-dim tensors turned into numbers where the schema has a number."""
    if argument.type.base == "Tensor":
        return value
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [item.item() if isinstance(item, Tensor) else item for item in value]
    return value


def _accepts(op: OpOverload, args: tuple, kwargs: dict, numbers_as_tensors: bool) -> bool:
    schema = op._schema
    if len(args) > schema.positional_count:
        return False
    used = 0
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            value = args[index]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
            used += 1
        elif argument.has_default:
            continue
        else:
            return False
        if value is None and argument.has_default and not argument.default and argument.type.is_list:
            continue  # as the empty list
        if not fits(value, argument.type) and not (numbers_as_tensors and _number_as_tensor(value, argument, op)):
            return False
    return used == len(kwargs)


def _takes_numbers(op: OpOverload) -> bool:
    # Here a single overload serves as ATen's `add.Tensor` and `add.Scalar`.
    return op.overload.startswith("Tensor") or op._schema.name.startswith("floor_divide")


def _number_as_tensor(value: object, argument: Argument, op: OpOverload) -> bool:
    fitting = argument.name != "self" or op._schema.name in _NUMBER_FIRST
    return fitting and argument.type.is_tensor and isinstance(value, _NUMBERS)


def _explain(op: OpOverload, args: tuple, kwargs: dict) -> str:
    schema = op._schema
    if len(args) > schema.positional_count:
        return f" takes {schema.positional_count} positional arguments but {len(args)} were given"
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            value = args[index]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        elif argument.has_default:
            continue
        else:
            return f' missing 1 required positional arguments: "{argument.name}"'
        if not fits(value, argument.type):
            kind = _readable(argument.type)
            return f": argument '{argument.name}' (position {index + 1}) must be {kind}, not {type(value).__name__}"
    unknown = next((name for name in kwargs if name not in schema.positions), None)
    return f" got an unexpected keyword argument '{unknown}'. Declaration: {schema}"


def _readable(kind: Type) -> str:
    base = {"Scalar": "Number", "Device": "torch.device", "ScalarType": "torch.dtype"}.get(kind.base, kind.base)
    return f"tuple of {base}s" if kind.is_list else base


class Namespace:
    """`ops.aten`: operators by name as attributes."""

    def __init__(self, name: str):
        self._namespace = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")

    def _add(self, op: OpOverload) -> None:
        name = op._opname
        packet = self.__dict__.get(name)
        if packet is None:
            packet = self.__dict__[name] = OpOverloadPacket(self._namespace, name)
        packet.add(op)

    def _remove(self, op: OpOverload) -> None:
        packet = self.__dict__[op._opname]
        packet.remove(op)
        if not packet._declared:
            del self.__dict__[op._opname]

    def __dir__(self):
        return list(self.__dict__)


class Ops:
    """The namespaces of `rushlight.ops`: `ops.aten`, and those that libraries add."""

    def namespace(self, name: str) -> Namespace:
        """Return the namespace `name`, created if it does not exist."""
        found = self.__dict__.get(name)
        if found is None:
            found = self.__dict__[name] = Namespace(name)
        return found

    def add(self, op: OpOverload) -> OpOverload:
        """Make `op` reachable as `ops.namespace.name.overload`."""
        self.namespace(op.namespace)._add(op)
        return op

    def remove(self, op: OpOverload) -> None:
        """Make `op` unreachable again."""
        self.namespace(op.namespace)._remove(op)


namespaces = Ops()


def find_packet(name: str) -> OpOverloadPacket:
    """Return the packet `name` ("aten::add")."""
    namespace, _, short = name.partition("::")
    return getattr(namespaces.namespace(namespace), short)


def add_all() -> None:
    """Make every operator defined so far reachable."""
    for op in all_operators():
        namespaces.add(op)
