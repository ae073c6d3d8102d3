"""The dispatcher: operators, the kernels registered for them by dispatch key, and the choice of one at each call.

A call computes a key set: the union of its tensor arguments' key sets and the thread's included keys, minus the thread's
excluded keys. The highest key that is not a fallthrough for the operator selects the kernel. Each operator caches the resolved
chain of kernels per key set, so a call costs one dictionary look-up.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from functools import cached_property

import rushlight._C as _C
from rushlight.core.device import device_for_operator, present_device
from rushlight.core.dispatch_key import BACKEND_BITS, FORMAT_BITS, DispatchKey
from rushlight.core.overrides import call_override, overriding_arguments
from rushlight.ops.schema import FunctionSchema, parse_schema, split_declaration

_lock = threading.RLock()
# Kernels at these keys get composites before they are decomposed: autocast would otherwise cast the parts, and some composites
# have a batching rule.
_KEYS_BEFORE_DECOMPOSITION = (DispatchKey.VmapMode, DispatchKey.Autocast, DispatchKey.Batched)
_CUDA_BIT = 1 << DispatchKey.CUDA
_fallbacks: dict[DispatchKey, list[Kernel]] = {}
_operators: dict[tuple[str, str], OpOverload] = {}


class Kernel:
    """A function that computes an operator for one dispatch key.

    Unboxed kernels have the operator's signature; if they need the keys below theirs, `bind(op, key_set)` returns the function
    to call. Boxed ones get `(op, key_set, stack)` and replace the arguments on the stack by the results.
    """

    __slots__ = ("function", "boxed", "linked")

    def __init__(self, function: Callable, boxed: bool = False, linked: bool = False):
        self.function = function
        self.boxed = boxed
        self.linked = linked

    def bind(self, op: OpOverload, key_set: int) -> Callable:
        """Return the function that runs this kernel with the operator's own arguments."""
        if self.linked:
            return self.function(op, key_set)
        if self.boxed:
            return _unbox(self.function, op, key_set)
        code = getattr(self.function, "__code__", None)
        if code is not None and code.co_flags & inspect.CO_VARARGS and not code.co_flags & inspect.CO_VARKEYWORDS:
            return _accept_keywords(self.function, op)
        return self.function


def _unbox(function: Callable, op: OpOverload, key_set: int) -> Callable:
    def unboxed(*args, **kwargs):
        stack = op.normalize(args, kwargs)
        function(op, key_set, stack)
        return stack[0] if len(stack) == 1 else tuple(stack) if stack else None

    return unboxed


def _accept_keywords(function: Callable, op: OpOverload) -> Callable:
    """Adapt a kernel with other parameter names, so that it accepts keyword arguments."""

    def positional(*args, **kwargs):
        if not kwargs:
            return function(*args)
        schema = op._schema
        named = [argument.name for argument in schema.arguments[len(args) : schema.positional_count]]
        while named and named[-1] not in kwargs:
            named.pop()
        stack = op.normalize(args, kwargs)[: len(args) + len(named)]
        return function(*stack, **{name: value for name, value in kwargs.items() if name not in named})

    return positional


FALLTHROUGH = Kernel(lambda *args: None)


class _CallableName(str):
    """A string that returns itself when called, so that both `op.name` and torch's `op.name()` work."""

    def __call__(self) -> str:
        return str(self)


class OpOverload(_C.OperatorBase):
    """One operator with one schema, as `ops.aten.add.Tensor`. Calling it dispatches.

    `csrc/dispatch.c` does the look-up of a call. The key set is the union of the tensor arguments' keys, of those from
    `_factory_keys` and of the thread's keys. It indexes `_chains`, and `resolve` fills a missing entry.
    """

    def __init__(self, namespace: str, declaration: str):
        self.namespace = namespace
        self.declaration = declaration
        self._opname, self._overloadname, arguments = split_declaration(declaration)
        self.name = _CallableName(f"{namespace}::{self._opname}" + (f".{self._overloadname}" if self._overloadname else ""))
        self.overload = self._overloadname or "default"
        self.kernels: dict[DispatchKey, Kernel] = {}
        self._registered: dict[DispatchKey, list[Kernel]] = {}
        self.tags: frozenset[str] = frozenset()
        self._chains: dict[int, Callable] = {}
        self._takes_lists = any(kind in arguments for kind in ("Tensor[", "Tensor?[", ")["))
        self._names_device = " device" in arguments and "device" in self._schema.positions
        self._device_position = self._schema.positions["device"] if self._names_device else 0
        self._text = f"{namespace}.{self._opname}.{self.overload}"
        self.__name__ = self._text.split(".", 1)[1]
        self.__qualname__ = self._text
        self.__module__ = f"torch.ops.{namespace}"
        self.__doc__ = declaration

    @cached_property
    def _schema(self) -> FunctionSchema:
        # Parsed lazily: parsing all schemas would dominate the import time of the library.
        return parse_schema(self.declaration)

    @cached_property
    def _fixed_lists(self) -> list[tuple[int, int]]:
        return [
            (position, argument.type.length)
            for position, argument in enumerate(self._schema.arguments)
            if argument.type.length is not None and argument.type.base == "int"
        ]

    def _factory_keys(self, args: tuple, kwargs: dict) -> int:
        """Return the backend that a device argument asks for, or CPU."""
        return 1 << _backend_of_factory(self, args, kwargs)

    def _ask_types(self, args: tuple, kwargs: dict) -> object:
        """Offer the call to arguments that are no tensors but override operators, such as traced proxies."""
        return call_override(self, overriding_arguments(args, kwargs), args, kwargs)

    def redispatch(self, key_set: int, *args, **kwargs):
        """Run the kernel of the highest key in `key_set`, ignoring the thread's state."""
        return self.resolve(key_set)(*args, **kwargs)

    def resolve(self, key_set: int) -> Callable:
        """Return the function for a key set; NotImplementedError when no kernel serves it."""
        chain = self._chains.get(key_set)
        if chain is None:
            with _lock:
                chain = self._chains[key_set] = self._find(key_set)
        return chain

    def _find(self, key_set: int) -> Callable:
        chosen = self.choose(key_set)
        if chosen is None:
            return self._make_missing_error(key_set)
        key, kernel, below = chosen
        found = kernel.bind(self, below)
        mixed = key is DispatchKey.Meta and below >> DispatchKey.CPU & 1 and self.namespace == "aten"
        return _require_one_device(found) if mixed and self._opname not in _ACROSS_DEVICES else found

    def choose(self, key_set: int) -> tuple[DispatchKey, Kernel, int] | None:
        """Return the kernel for a key set, with the key that it is registered for and the keys that it may dispatch on to; None
        where there is none."""
        if key_set >> DispatchKey.Profiler & 1:
            return DispatchKey.Profiler, _fallbacks[DispatchKey.Profiler][-1], key_set & ~(1 << DispatchKey.Profiler)
        for key in _KEYS_BEFORE_DECOMPOSITION:
            if key_set >> key & 1 and key in self.kernels:
                return key, self.kernels[key], key_set & ~(1 << key)
        batched = key_set >> DispatchKey.Batched & 1
        traced = key_set >> DispatchKey.Tracer & 1 and not batched
        if traced and _fallbacks.get(DispatchKey.Tracer) and DispatchKey.Tracer not in self.kernels:
            # The tracer records composites without decomposing them.
            return DispatchKey.Tracer, _fallbacks[DispatchKey.Tracer][-1], key_set & ~(1 << DispatchKey.Tracer)
        implicit = self.kernels.get(DispatchKey.CompositeImplicitAutograd)
        if implicit is not None and (batched or not self._has_backend_kernel(key_set)):
            return DispatchKey.CompositeImplicitAutograd, implicit, key_set
        remaining = key_set
        while remaining:
            key = DispatchKey(remaining.bit_length() - 1)
            below = remaining & ~(1 << key)
            kernel = self._kernel_for(key)
            if kernel is not None and kernel is not FALLTHROUGH:
                return key, kernel, below
            if kernel is None and 1 << key & FORMAT_BITS:
                return None  # a kernel of dense tensors, which another argument asks for, cannot read this format
            remaining = below
        return None

    def _has_backend_kernel(self, key_set: int) -> bool:
        if key_set & _CUDA_BIT:
            key_set |= 1 << DispatchKey.CPU  # operators with a CPU kernel run on a GPU without being decomposed, too
        return any(key_set >> key & 1 and 1 << key & BACKEND_BITS for key in self.kernels if key < 20)

    def _kernel_for(self, key: DispatchKey) -> Kernel | None:
        kernel = self.kernels.get(key)
        if kernel is None and 1 << key & BACKEND_BITS:
            kernel = self.kernels.get(DispatchKey.CompositeExplicitAutograd)
        fallbacks = _fallbacks.get(key)
        return kernel or (fallbacks[-1] if fallbacks else None)

    def _make_missing_error(self, key_set: int) -> Callable:
        highest = DispatchKey(key_set.bit_length() - 1).name if key_set else "Undefined"
        available = ", ".join(key.name for key in self.kernels) or "none"

        def missing(*args, **kwargs):
            raise NotImplementedError(
                f"Could not run '{self.name}' with arguments from the '{highest}' backend. "
                f"Kernels are registered for: {available}."
            )

        return missing

    def register(self, key: DispatchKey, kernel: Kernel) -> None:
        """Set the kernel of `key`, hiding an earlier one."""
        with _lock:
            self._registered.setdefault(key, []).append(kernel)
            self.kernels[key] = kernel
            self._chains = {}

    def unregister(self, key: DispatchKey, kernel: Kernel) -> None:
        """Remove a kernel; an earlier one that it hid becomes active again."""
        with _lock:
            stack = self._registered[key]
            stack.remove(kernel)
            if stack:
                self.kernels[key] = stack[-1]
            else:
                del self.kernels[key]
            self._chains = {}

    def normalize(self, args: tuple, kwargs: dict) -> list:
        """Return all arguments in schema order, with defaults filled in; a number for a fixed-length list is repeated.

        TypeError when they do not fit the schema.
        """
        schema = self._schema
        if len(args) > len(schema.arguments):
            raise TypeError(f"{self.name} takes at most {len(schema.arguments)} arguments, got {len(args)}")
        stack = list(args)
        for argument in schema.arguments[len(args) :]:
            if argument.name in kwargs:
                stack.append(kwargs[argument.name])
            elif argument.has_default:
                stack.append(argument.default)
            else:
                raise TypeError(f"{self.name} is missing value for argument '{argument.name}'. Declaration: {schema}")
        for position, length in self._fixed_lists:
            if isinstance(stack[position], int):
                stack[position] = [stack[position]] * length
        for name in kwargs:
            if schema.positions.get(name, -1) < len(args):
                raise TypeError(f"{self.name} got an unexpected or repeated argument '{name}'. Declaration: {schema}")
        return stack

    def call_boxed(self, stack: list) -> None:
        """Run with the arguments on `stack` (schema order) and leave the results there."""
        schema = self._schema
        count = schema.positional_count
        keywords = {argument.name: value for argument, value in zip(schema.arguments[count:], stack[count:], strict=True)}
        result = self(*stack[:count], **keywords)
        stack[:] = list(result) if len(schema.returns) > 1 else [result] if schema.returns else []

    @property
    def is_view(self) -> bool:
        """Whether results alias arguments that are not written to."""
        return self._schema.is_view

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to an argument."""
        return self._schema.is_mutable

    @property
    def writes_self(self) -> bool:
        """Whether the operator writes to its first argument and returns it."""
        returns = self._schema.returns
        return bool(returns) and returns[0].is_write

    @property
    def is_composite(self) -> bool:
        """Whether the operator is always decomposed."""
        return DispatchKey.CompositeImplicitAutograd in self.kernels

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self.overload}')>"

    def __reduce__(self):
        return (find_operator, (f"{self.namespace}::{self._opname}", self._overloadname))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _backend_of_factory(op: OpOverload, args: tuple, kwargs: dict) -> DispatchKey:
    where = kwargs.get("device")
    if where is None and "device" in op._schema.positions:
        position = op._schema.positions["device"]
        where = args[position] if position < len(args) else None
    if where is None:
        return DispatchKey.CPU
    found = present_device(where) if op._opname in _COPYING else device_for_operator(where, _allocating_operator(op._opname))
    return _BACKENDS.get(found.type, DispatchKey.CPU)


_BACKENDS = {"meta": DispatchKey.Meta, "cuda": DispatchKey.CUDA}
# Operators that copy between devices, or accept CPU indices.
_ACROSS_DEVICES = frozenset(("copy_", "_to_copy", "index", "index_put_", "_index_put_impl_", "set_", "resize_as_"))


def _require_one_device(kernel: Callable) -> Callable:
    """Wrap a kernel of the meta device so that it rejects CPU tensors with dimensions."""

    def checked(*args, **kwargs):
        impls = [value._impl for value in _tensors_in((*args, *kwargs.values()))]
        if any(impl.device.type == "meta" for impl in impls):
            for impl in impls:
                if impl.sizes and impl.device.type != "meta" and not impl.fake:
                    raise RuntimeError(f"Tensor on device {impl.device} is not on the expected device meta!")
        return kernel(*args, **kwargs)

    return checked


def _tensors_in(values: tuple) -> Iterator[_C.TensorBase]:
    for value in values:
        if isinstance(value, _C.TensorBase):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors_in(value)


_COPYING = frozenset(("to", "_to_copy"))


def _allocating_operator(name: str) -> str:
    """Return the operator that allocates the result of `name` in torch, as the error for an absent device names it."""
    if name in ("tril_indices", "triu_indices"):
        return f"aten::{name}"
    return "aten::empty_strided" if name.endswith("_like") or name == "empty_strided" else "aten::empty.memory_format"


def define(namespace: str, declaration: str) -> OpOverload:
    """Add the operator of a schema's text; RuntimeError when one of this name and overload exists.

    The text is parsed lazily, and so are mistakes found.
    """
    op = OpOverload(namespace, declaration)
    key = (f"{namespace}::{op._opname}", op._overloadname)
    with _lock:
        if key in _operators:
            raise RuntimeError(f"Tried to register an operator ({declaration}) with the same name and overload name twice.")
        _operators[key] = op
    return op


def find_operator(name: str, overload: str = "") -> OpOverload:
    """Return the operator `name` ("aten::add") with this overload name; RuntimeError when there is none."""
    found = _operators.get((name, "" if overload == "default" else overload))
    if found is None:
        raise RuntimeError(f"No such operator {name}{'.' + overload if overload else ''}")
    return found


def all_operators() -> list[OpOverload]:
    """Return every operator defined so far."""
    return list(_operators.values())


def undefine(op: OpOverload) -> None:
    """Remove an operator (its Library was destroyed)."""
    with _lock:
        _operators.pop((f"{op.namespace}::{op._opname}", op._overloadname), None)


def register_fallback(key: DispatchKey, kernel: Kernel) -> None:
    """Set the kernel that serves every operator without one of its own at `key`, hiding an earlier one."""
    with _lock:
        _fallbacks.setdefault(key, []).append(kernel)
        _forget_chains()


def unregister_fallback(key: DispatchKey, kernel: Kernel) -> None:
    """Remove a fallback; an earlier one that it hid becomes active again."""
    with _lock:
        _fallbacks[key].remove(kernel)
        _forget_chains()


def _forget_chains() -> None:
    for op in _operators.values():
        op._chains = {}
