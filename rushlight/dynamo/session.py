"""The state shared by all translators of one capture: the graph, guards, effects, and the tracked values of real objects."""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.amp.autocast_mode import autocast
from rushlight.autograd.grad_mode import enable_grad, no_grad, set_grad_enabled
from rushlight.core.dispatch_key import LAZY_BITS
from rushlight.core.dtype import dtype
from rushlight.core.layout import strided
from rushlight.core.size import Size
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.dynamo.dynamic import OpenSizes
from rushlight.dynamo.effects import SideEffects
from rushlight.dynamo.graph_builder import GraphBuilder
from rushlight.dynamo.guards import Guards
from rushlight.dynamo.input_names import InputNames
from rushlight.dynamo.regions import is_compiled_wrapper
from rushlight.dynamo.sources import Asked, Attribute, Global, Held, Item, Named, NumberTensor, Source
from rushlight.dynamo.values.arrays import ArrayFunctionValue, ArrayValue, is_array, is_array_function
from rushlight.dynamo.values.assertions import Assertion
from rushlight.dynamo.values.base import PendingValue, Value
from rushlight.dynamo.values.builtin import BuiltinValue, is_builtin, make_class_value
from rushlight.dynamo.values.cached import CachedFunctionValue
from rushlight.dynamo.values.classes import PythonModuleValue, is_python_class
from rushlight.dynamo.values.constant import (
    ANNOTATIONS,
    BY_IDENTITY,
    BY_VALUE,
    AnnotationValue,
    ConstantValue,
    constant_of,
    is_constant_value,
)
from rushlight.dynamo.values.context_variables import ContextVariableValue
from rushlight.dynamo.values.contexts import GradModeValue, ModeValue, RegionValue, ThreadStateValue
from rushlight.dynamo.values.exceptions import from_exception
from rushlight.dynamo.values.function import BoundMethodValue, FunctionValue, PartialValue, wrap_function
from rushlight.dynamo.values.inheriting import built_in_base, from_outside, is_plain_named_tuple
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.objects import CACHED, ObjectValue, OpaqueValue
from rushlight.dynamo.values.open_floats import OpenFloat, OpenFloatValue
from rushlight.dynamo.values.outside_iterators import from_outside as iterator_from_outside
from rushlight.dynamo.values.sequences import RangeValue, SequenceValue, SliceValue
from rushlight.dynamo.values.sets import SetValue
from rushlight.dynamo.values.symbolic import SymbolicValue
from rushlight.dynamo.values.tensor import (
    LibraryFunctionValue,
    TensorMethodValue,
    TensorValue,
    is_library_function,
    is_tensor_method,
)
from rushlight.dynamo.values.weak_references import from_outside as reference_from_outside
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.construct import tensor
from rushlight.ops.library import OperatorHandle

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_GRAD_KINDS = (no_grad, enable_grad)
# Outside values of these kinds are guarded by their properties, not by identity.
_GUARDED_BY_PROPERTIES = (TensorValue, SequenceValue, DictValue, SetValue, ObjectValue, OpaqueValue)


class Session:
    """One capture of one frame."""

    def __init__(
        self, parameters: tuple[str, ...], free_variables: tuple[str, ...], module_globals: dict, sizes: OpenSizes,
        names: InputNames,
    ) -> None:  # fmt: skip
        self.names = names
        self.graph = GraphBuilder(names.name, sizes.environment)
        self.sizes = sizes
        self.guards = Guards(parameters, free_variables)
        self.effects = SideEffects()
        self.module_globals = module_globals
        self.depth = 0
        self.distinct: list[Source] = []
        self.cells: list[Source] = []
        self.generators: list[Value] = []
        self.assertions: list[Assertion] = []
        self.open_modes: list[RegionValue] = []
        self.build_part: Callable | None = None  # compiles a subgraph that a node calls, when it first runs
        self.maps = 0  # depth of vmap calls being followed
        self.steps = self.steps_before_call = 0
        self.has_tensor_keys = False  # a dict or set from outside has tensors as keys
        self.has_arrays = False  # NumPy arrays are inputs
        self.may_be_handled = False  # a handler of the program may catch what an operation of the graph raises
        self.asked_grad_mode = False  # the program read or switched grad mode
        self.active: Following | None = None
        sizes.environment.locate = self._location
        self.lines: dict[str, set[int | None]] = {}  # lines followed, by file
        self.followed: dict[int, tuple[types.CodeType, types.FunctionType | None]] = {}
        self.methods: dict[tuple[int, str], tuple[type, Value]] = {}  # (class, name) -> (class kept alive, method)
        self._known: dict[int, Value] = {}
        self._integers: dict[str, SymbolicValue] = {}
        self._floats: dict[str, OpenFloatValue] = {}
        self._number_tensors: dict[str, TensorValue] = {}
        self._keep: list[Any] = []

    def _location(self) -> str:
        """Return the line being followed."""
        line = self.active.user_stack()[-1] if self.active is not None else None
        return "" if line is None else f"{line.filename}:{line.lineno} in {line.name}: {line.line}"

    # Track real objects

    def wrap(self, tx: Following, value: Any, source: Source | None) -> Value:
        """Return the tracked value of a real object; the same object gives the same value. Guards what is assumed of it."""
        known = self._known.get(id(value))
        if known is not None:
            self.same_place(known, value, source)
            return known
        made = self._make_value(tx, value, source)
        if not isinstance(made, ConstantValue):
            self.remember(value, made)
            if _may_alias(made):
                self.distinct.append(made.source)
        return made

    def later(self, tx: Following, value: Any, source: Source | None) -> Value:
        """Return a lazy tracked value: nothing is guarded until something uses it."""
        if source is None:
            return self.wrap(tx, value, None)
        return PendingValue(lambda: self.wrap(tx, value, source), source, type(value))

    def remember(self, value: Any, made: Value) -> None:
        """Make `wrap` return this tracked value for an object."""
        self._known[id(value)] = made
        self._keep.append(value)

    def forget_objects(self) -> None:
        """Drop the program's objects: reference cycles in a capture's records would keep them until a garbage collection."""
        self._keep.clear()
        self._known.clear()
        self.methods.clear()
        self.effects.forget()
        self.active = None
        self.sizes.environment.locate = str  # `str()` returns "": a function without references to this session

    def known(self, value: Any) -> Value | None:
        """Return the tracked value of an object that was wrapped before."""
        return self._known.get(id(value))

    def same_place(self, known: Value, value: Any, source: Source | None) -> None:
        """Guard that an object is also found at another source."""
        if source is None or source == known.source:
            return
        if known.source is None:
            self.guards.same_object(source, value)
        else:
            self.guards.same_place(source, known.source)

    def _make_value(self, tx: Following, value: Any, source: Source | None) -> Value:
        kind = type(value)
        if isinstance(value, Tensor):
            return self._wrap_tensor(value, source)
        if is_array(value):
            return self._wrap_array(value, source)
        if isinstance(value, Module) and not is_library_function(value):
            return self._wrap_module(value, source)
        if isinstance(value, BY_VALUE) and kind in BY_VALUE:
            if kind in (int, float) and source is not None:
                self.sizes.history.number(source.text, value)
            if kind is float and source is not None and self.sizes.opens_float(source):
                return self._open_float(value, source)
            if kind is int and source is not None and not isinstance(source, Held):
                number = self.sizes.integer(value, source)
                if type(number) is SymInt:
                    return self._open_integer(number, source)
            if source is not None:
                self.guards.same_value(source, value)
            return ConstantValue(value)
        if kind is Size or isinstance(value, BY_IDENTITY) or is_constant_value(value):
            if source is not None:
                (self.guards.same_object if isinstance(value, (*BY_IDENTITY, Enum)) else self.guards.same_value)(source, value)
            return constant_of(value) if kind is not Size else SequenceValue([ConstantValue(n) for n in value], Size, source)
        callable_value = self._wrap_callable(tx, value, source)
        if callable_value is not None:
            return callable_value
        container = self._wrap_container(tx, value, source)
        if container is not None:
            return container
        return self._wrap_object(tx, value, source)

    def _wrap_tensor(self, value: Tensor, source: Source | None) -> Value:
        kind = type(value)
        if is_constant_of_graphs(kind):
            if source is not None:
                self.guards.same_object(source, value)
                self.guards.parts(source, source, value)
            node = self.graph.known(value) or self.graph.attribute(value, "_tensor_constant")
            return self.graph.tensor_value(node, node.meta["example_value"], source, value)
        if kind not in (Tensor, Parameter, Buffer) or value.layout is not strided or value._impl.key_set & LAZY_BITS:
            return self._wrap_opaque(value, source)
        node = self.graph.known(value)
        if node is None:
            if source is None or isinstance(source, Held):
                node = self.graph.attribute(value, "_tensor_constant")
            else:
                geometry = self.sizes.geometry(value, source)
                self.guards.tensor(source, value, geometry)
                node = self.graph.input(value, source, geometry)
        return self.graph.tensor_value(node, node.meta["example_value"], source, value)

    def _wrap_array(self, value: np.ndarray, source: Source | None) -> ArrayValue:
        """Track an array as the tensor that shares its memory."""
        place = source or self.hold(value)
        self.guards.same_type(place, value)
        over = Asked(place, self.guards.name(from_numpy, "from_numpy"))
        self.has_arrays = True
        return ArrayValue(self._wrap_tensor(from_numpy(value), over), place)

    def _open_integer(self, number: SymInt, source: Source) -> SymbolicValue:
        made = self._integers.get(source.text)
        if made is None:
            made = self._integers[source.text] = SymbolicValue(number, source)
            self.guards.same_type(source, 0)
            self.graph.integer_input(number, source)
        return made

    def _open_float(self, value: float, source: Source) -> OpenFloatValue:
        made = self._floats.get(source.text)
        if made is None:
            fix = functools.partial(self.guards.same_value, source, value)
            made = self._floats[source.text] = OpenFloatValue(OpenFloat(value, source.expression(), fix), source)
            self.guards.same_type(source, value)
        return made

    def number_tensor(self, number: Any, kind: dtype, source: NumberTensor) -> TensorValue:
        """Return a graph input for open numbers. A single number becomes a 0-d tensor."""
        made = self._number_tensors.get(source.text)
        if made is None:
            node = self.graph.input(tensor(number, dtype=kind), source)
            made = self._number_tensors[source.text] = self.graph.tensor_value(node, node.meta["example_value"])
        return made

    @property
    def opens_numbers(self) -> bool:
        """Return whether any size or number is open."""
        return self.sizes.any or bool(self._floats) or bool(self.sizes.environment.unknown)

    def _wrap_callable(self, tx: Following, value: Any, source: Source | None) -> Value | None:
        if isinstance(value, types.ModuleType):
            self._guard_identity(source, value)
            return PythonModuleValue(value, source)
        if is_library_function(value):
            self._guard_identity(source, value)
            return LibraryFunctionValue(value)
        if is_array_function(value):
            self._guard_identity(source, value)
            return ArrayFunctionValue(value)
        if isinstance(value, OperatorHandle):
            self._guard_identity(source, value)
            return LibraryFunctionValue(value._opoverload)
        if is_tensor_method(value):
            self._guard_identity(source, value)
            return TensorMethodValue(value)
        if isinstance(value, type):
            self._guard_identity(source, value)
            return make_class_value(value, None)
        if is_builtin(value):
            self._guard_identity(source, value)
            return BuiltinValue(value)
        if is_compiled_wrapper(value):  # follow the compiled function into this graph
            self._guard_identity(source, value)
            inner = Attribute(source, "_rushlight_followed") if source is not None else None
            return self.wrap(tx, value._rushlight_followed, inner)
        if isinstance(value, types.FunctionType):
            by_code = not isinstance(source, Global | Held | None)
            if not by_code:
                self._guard_identity(source, value)
            return wrap_function(tx, value, source, by_code)
        if isinstance(value, types.MethodType):
            owner = self.wrap(tx, value.__self__, Attribute(source, "__self__") if source else None)
            function = self.wrap(tx, value.__func__, Attribute(source, "__func__") if source else None)
            if isinstance(owner, ModeValue):
                return tx.bound_method(owner, value.__func__.__name__)
            return BoundMethodValue(owner, function, source)
        if isinstance(value, ANNOTATIONS):
            self._guard_identity(source, value)
            return AnnotationValue(value)
        if type(value) is CACHED:
            self._guard_identity(source, value)
            return CachedFunctionValue(value)
        if type(value) is functools.partial:
            return self._wrap_partial(tx, value, source)
        return None

    def _guard_identity(self, source: Source | None, value: Any) -> None:
        if source is not None:
            self.guards.same_object(source, value)

    def _wrap_opaque(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            self.guards.same_type(source, value)
        return OpaqueValue(type(value), source or self.hold(value))

    def _wrap_partial(self, tx: Following, value: functools.partial, source: Source | None) -> Value:
        if source is not None:
            self.guards.same_type(source, value)
        function = self.wrap(tx, value.func, Attribute(source, "func") if source else None)
        args = self._wrap_items(tx, value.args, Attribute(source, "args") if source else None)
        keywords = Attribute(source, "keywords") if source else None
        kwargs = {name: self.wrap(tx, item, Item(keywords, name) if source else None) for name, item in value.keywords.items()}
        if source is not None:
            self.guards.same_length(Attribute(source, "args"), value.args)
            self.guards.same_items(Attribute(source, "keywords"), list(value.keywords), "keywords", dict)
        return PartialValue(functools.partial, function, args, kwargs, source, value)

    def _wrap_items(self, tx: Following, values: Any, source: Source | None) -> list[Value]:
        return [self.later(tx, item, Item(source, index) if source else None) for index, item in enumerate(values)]

    def _wrap_container(self, tx: Following, value: Any, source: Source | None) -> Value | None:
        kind = type(value)
        if kind in (list, tuple, collections.deque) or is_plain_named_tuple(kind):
            if kind is collections.deque and value.maxlen is not None:
                return self._wrap_opaque(value, source)
            if source is None:
                return SequenceValue(self._wrap_items(tx, value, None), kind)
            self.guards.same_type(source, value)
            items = self._wrap_items(tx, value, source)
            return SequenceValue(items, kind, source, lambda: self.guards.same_length(source, items))
        if kind in (dict, collections.OrderedDict, collections.defaultdict):
            return self._wrap_dict(tx, value, source)
        if kind is types.MappingProxyType:
            copied = dict(value)
            return self._wrap_dict(tx, copied, Asked(source, self.guards.name(dict, "dict", is_owned=True)) if source else None)
        if kind in (set, frozenset):
            if not all(is_key(key) for key in value):
                return self._wrap_opaque(value, source)
            self.has_tensor_keys |= any(isinstance(key, Tensor) for key in value)
            if source is not None:
                self.guards.same_type(source, value)
                self.guards.same_items(source, list(value), "items")
            return SetValue(value, kind, source)
        if kind is range:
            if source is not None:
                self.guards.same_value(source, value)
            return RangeValue(value)
        if kind is slice:
            parts = [self.wrap(tx, getattr(value, part), Attribute(source, part) if source else None)
                     for part in ("start", "stop", "step")]  # fmt: skip
            if source is not None:
                self.guards.same_type(source, value)
            return SliceValue(parts)
        return None

    def _wrap_dict(self, tx: Following, value: dict, source: Source | None) -> Value:
        if not all(is_key(key) for key in value):
            return self._wrap_opaque(value, source)
        self.has_tensor_keys |= any(isinstance(key, Tensor) for key in value)
        factory = None
        if type(value) is collections.defaultdict:
            factory = self.wrap(tx, value.default_factory, Attribute(source, "default_factory") if source else None)
        if source is None:
            return DictValue({key: self.wrap(tx, item, None) for key, item in value.items()}, type(value), None, factory)
        self.guards.same_type(source, value)
        items = {key: self.later(tx, item, Item(source, self.key_text(key))) for key, item in value.items()}
        keys = list(value)
        return DictValue(items, type(value), source, factory, lambda: self.guards.same_items(source, keys, "keys", type(value)))

    def is_key(self, value: Any) -> bool:
        """Return whether an object may be a key of a tracked dict."""
        return is_key(value)

    def key_text(self, key: Any) -> Any:
        """Return a key in the form for expressions: itself, or a name for it."""
        return key if type(key) in (str, int, bool, type(None)) else Named(self.guards.name(key, "key"))

    def _wrap_module(self, value: Module, source: Source | None) -> ModuleValue:
        place = source or self.hold(value)
        self._guard_identity(source, value)
        self.guards.same_type(place, value)
        self.sizes.modules.add(place)
        return ModuleValue(type(value), value, place)

    def _wrap_object(self, tx: Following, value: Any, source: Source | None) -> Value:
        kind = type(value)
        if value is state:
            return ThreadStateValue(source)
        if kind in _GRAD_KINDS:
            return self._wrap_grad_mode(value, source)
        if kind is set_grad_enabled or (kind is autocast and not value._outer):
            return self._wrap_fixed_mode(value, source)
        if kind is ContextVar:
            self._guard_identity(source, value)
            return ContextVariableValue(tx, value, source or self.hold(value))
        if kind is weakref.ref and value.__callback__ is None:
            return reference_from_outside(tx, value, source or self.hold(value))
        iterator = iterator_from_outside(tx, value, source or self.hold(value))
        if iterator is not None:
            return iterator
        if isinstance(value, BaseException) and source is None:
            return from_exception(value)
        if source is not None:
            self.guards.same_type(source, value)
        base = built_in_base(kind)
        if base is not None:
            place = source or self.hold(value)
            return from_outside(tx, value, base, place) or OpaqueValue(kind, place)
        if not is_python_class(kind) or issubclass(kind, BaseException):
            return OpaqueValue(kind, source or self.hold(value))
        return ObjectValue(kind, value, source or self.hold(value))

    def _wrap_grad_mode(self, value: Any, source: Source | None) -> Value:
        made = GradModeValue(type(value), source)
        if source is not None:
            self.guards.same_type(source, value)
        if hasattr(value, "previous"):
            self.guards.same_object(Attribute(source, "previous"), value.previous)
            made.previous.append(value.previous)
        return made

    def _wrap_fixed_mode(self, value: Any, source: Source | None) -> Value:
        place = source or self.hold(value)
        self._guard_identity(place, value)
        if isinstance(value, autocast):
            return RegionValue(autocast, value.arguments, place)
        made = GradModeValue(set_grad_enabled, place, value.mode)
        self.guards.same_object(Attribute(place, "previous"), value.previous)
        made.previous.append(value.previous)
        return made

    def hold(self, value: Any) -> Held:
        """Return a source for an object that the generated code holds."""
        return Held(self.guards.name(value, "held"))


def _may_alias(made: Value) -> bool:
    """Return whether the value may alias others in a later call: it comes from outside, and its identity is not guarded."""
    if isinstance(made, FunctionValue):
        return made.by_code
    return made.source is not None and isinstance(made, _GUARDED_BY_PROPERTIES) and not isinstance(made, ModuleValue)


_BY_IDENTITY = (object.__hash__, object.__eq__, type.__hash__, type.__eq__)


def is_hashed_by_identity(kind: type) -> bool:
    """Return whether objects of a class are equal as keys only if they are identical."""
    return kind.__hash__ in _BY_IDENTITY and kind.__eq__ in _BY_IDENTITY


def is_key(value: Any) -> bool:
    """Return whether an object may be a key of a tracked dict: its hash and equality run no code of the program."""
    if type(value) in (tuple, Size):
        return all(is_key(item) and not isinstance(item, Tensor) for item in value)
    if isinstance(value, type) and is_hashed_by_identity(type(value)):
        return True
    if type(value) in (Tensor, Parameter, Buffer) or isinstance(value, Module) and is_hashed_by_identity(type(value)):
        return True
    return is_constant_value(value) or isinstance(value, (types.FunctionType, types.BuiltinFunctionType, *ANNOTATIONS))
