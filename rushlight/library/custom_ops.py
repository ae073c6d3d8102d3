"""Operators made of Python functions. What compiles treats a call as one node and does not look inside.

    @torch.library.custom_op("mylib::scaled", mutates_args=())
    def scaled(x: Tensor, by: float) -> Tensor:
        return torch.from_numpy(x.numpy() * by)

    @scaled.register_fake
    def _(x, by):
        return torch.empty_like(x)

Stage: between the user's program and the dispatcher. A kernel for the CPU runs the function; one for Meta runs the rule for
shapes, also where tensors are fake; one for Autograd, if an argument requires grad, records a Function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rushlight.amp import casts
from rushlight.autograd.function import Function, FunctionCtx
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey
from rushlight.core.dtype import dtype
from rushlight.core.pytree import tree_flatten, tree_map
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.library.batching import apply_rule
from rushlight.library.names import split_name
from rushlight.library.schemas import infer_schema
from rushlight.ops.dispatcher import Kernel, OpOverload, define, find_operator, undefine
from rushlight.ops.libraries import has_own_rules
from rushlight.ops.library import OperatorHandle
from rushlight.ops.modes import answer_for
from rushlight.ops.packet import namespaces
from rushlight.ops.schema import parse_schema


class CustomOpDef(OperatorHandle):
    """An operator made of a function, and its rules. It is also `torch.ops.namespace.name`."""

    def __init__(self, op: OpOverload, function: Callable) -> None:
        super().__init__(op)
        self._name = op._opname
        self._backward: Callable | None = None
        self._setup_context: Callable | None = None
        self.__doc__ = inspect.getdoc(function)
        self.__name__ = self._name
        op.__doc__ = self.__doc__ or op.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._opoverload.name})>"

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /) -> Callable:
        """Run `fn` on tensors of these devices; None means all. Those that this library does not have are left out."""

        def register(function: Callable) -> Callable:
            kinds = ("cpu",) if device_types is None else (device_types,) if isinstance(device_types, str) else device_types
            if "cpu" in kinds:
                self._opoverload.register(DispatchKey.CPU, Kernel(self._count_writes_of(self._check_aliasing(function))))
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Let `fn`, called with tensors that have no data, make results of the right shapes, dtypes and strides."""
        self._opoverload.register(DispatchKey.Meta, Kernel(self._count_writes_of(fn)))
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Differentiate by `backward(ctx, *grads)`, which returns a gradient, or None, per positional argument: for a list of
        tensors, a list.

        `setup_context(ctx, inputs, output)` keeps what it needs; where the operator has keyword-only arguments, it gets them
        as `keyword_only_inputs`, too. RuntimeError for an operator that writes to its arguments.
        """
        if self._opoverload.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self._opoverload} with schema "
                f"{self._opoverload._schema}. Please create a functional operator and register an autograd formula for that."
            )
        self._backward, self._setup_context = backward, setup_context
        self._opoverload.register(DispatchKey.Autograd, Kernel(self._record_call))

    def register_vmap(self, func: Callable | None = None) -> Callable:
        """Let `func(info, in_dims, *args, **kwargs)` do the work of `vmap`: it returns an output and its `out_dims`.

        `info` has `batch_size` and `randomness`; `in_dims` says per positional argument which dimension is mapped over, or
        None.
        A decorator without `func`. Without a rule the operator runs example by example.
        """

        def register(function: Callable) -> Callable:
            name = str(self._opoverload)
            kernel = Kernel(lambda *args, **kwargs: apply_rule(name, function, args, kwargs))
            self._opoverload.register(DispatchKey.Batched, kernel)
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """Cast the floating-point arguments to `cast_inputs` under autocast, except float64, as for the library's operators.

        `device_type` is "cpu"; rules for devices that this library does not have are left out.
        """
        if not isinstance(device_type, str):
            raise ValueError(f"device_type should be str, got {type(device_type).__name__}")
        if device_type == "cpu":
            casts.register_for(self._opoverload, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable | None = None, /) -> Callable:
        """Have `fn` answer for a subclass of Tensor, `fn(func, types, args, kwargs)`, or for a mode, `fn(mode, func, ...)`,
        in the place of their `__torch_dispatch__`. A decorator without `fn`."""

        def register(function: Callable) -> Callable:
            answer_for(self._opoverload, torch_dispatch_class, function)
            return function

        return register if fn is None else register(fn)

    def _register_defaults(self) -> None:
        """Register the kernels that apply until the user registers rules: an operator without results needs no shape rule, and
        nothing is differentiated."""
        self._opoverload.register(DispatchKey.Autograd, Kernel(self._record_call))
        if not self._opoverload._schema.returns:
            self.register_fake(lambda *args, **kwargs: None)
        else:
            self._opoverload.register(DispatchKey.Meta, Kernel(self._refuse))

    def _refuse(self, *args, **kwargs):
        raise DataDependentError(
            f"There was no fake impl registered for {self}: what its results are like is not known before it has run. Please "
            f"use `{self._name}.register_fake` to add one."
        )

    def _check_aliasing(self, function: Callable) -> Callable:
        """Return the function as a kernel that raises RuntimeError if a result shares memory with another or an argument."""

        def kernel(*args, **kwargs):
            result = function(*args, **kwargs)
            given = {id(tensor._impl.storage) for tensor in tensors_in((*args, *kwargs.values()))}
            for tensor in tensors_in((result,)):
                if id(tensor._impl.storage) in given and tensor._impl.storage.nbytes:
                    raise RuntimeError(
                        f"{self._opoverload.name}: a result of this custom operator shares its memory with an argument or with "
                        "another result; return a clone of it"
                    )
                given.add(id(tensor._impl.storage))
            return result

        return kernel

    def _count_writes_of(self, function: Callable) -> Callable:
        """Return the function, with the versions of what it writes to going up: it may write where no operator sees it."""
        written = written_positions(self._opoverload)
        if not written:
            return function

        def kernel(*args, **kwargs):
            result = function(*args, **kwargs)
            stack = self._opoverload.normalize(args, kwargs)
            for tensor in tensors_in([stack[position] for position in written]):
                if not tensor._impl.inference:
                    tensor._impl.version.value += 1
            return result

        return kernel

    def _record_call(self, *args, **kwargs):
        if not state.grad_enabled or not any(tensor.requires_grad for tensor in tensors_in((*args, *kwargs.values()))):
            with ExcludeKeys(AUTOGRAD_BITS):
                return self._opoverload(*args, **kwargs)
        if self._opoverload.is_mutable:
            return self._write(args, kwargs)
        stack = self._opoverload.normalize(args, kwargs)
        count = self._opoverload._schema.positional_count
        names = [argument.name for argument in self._opoverload._schema.arguments]
        call = _Call(self, stack[:count], dict(zip(names[count:], stack[count:], strict=True)))
        found = _Recorded.apply(call, *tensors_in(call.inputs))
        found = found if isinstance(found, tuple) else (found,)
        return filled(places_of(call.output), iter(found))

    def _write(self, args: tuple, kwargs: dict):
        stack = self._opoverload.normalize(args, kwargs)
        for tensor in tensors_in([stack[position] for position in written_positions(self._opoverload)]):
            if tensor.requires_grad:
                raise RuntimeError(
                    f"{self._opoverload.name}: a custom operator has no derivative with respect to a tensor that it writes to, "
                    "and one was given that requires grad; detach it"
                )
        with ExcludeKeys(AUTOGRAD_BITS), no_grad():
            return self._opoverload(*args, **kwargs)


@dataclass
class _Call:
    """A call that is recorded: the positional arguments, those by keyword, and the result once it is there."""

    definition: CustomOpDef
    inputs: Sequence
    keywords: dict
    output: object = None


class _Recorded(Function):
    """The call of an operator; its tensors, also those in lists, are the arguments after the first."""

    @staticmethod
    def forward(ctx: FunctionCtx, call: _Call, *tensors: Tensor):
        definition, needed = call.definition, iter(ctx.needs_input_grad[1:])
        ctx._definition, ctx._inputs = definition, list(map(places_of, call.inputs))
        ctx.needs_input_grad = tuple(filled(value, needed) if _count(value) else False for value in ctx._inputs)
        with ExcludeKeys(AUTOGRAD_BITS):
            call.output = definition._opoverload(*call.inputs, **call.keywords)
        if definition._setup_context is not None:
            more = {"keyword_only_inputs": call.keywords} if call.keywords else {}
            definition._setup_context(ctx=ctx, inputs=tuple(call.inputs), output=call.output, **more)
        ctx._output = places_of(call.output)
        return tuple(tensors_in((call.output,)))

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor):
        definition, inputs, output = ctx._definition, ctx._inputs, ctx._output
        if definition._backward is None:
            raise RuntimeError(
                f"Trying to backward through {definition._opoverload} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        given = filled(output, iter(grads))
        found = definition._backward(ctx, *(given if isinstance(output, tuple) else (given,)))
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(inputs):
            raise RuntimeError(
                f"{definition._opoverload}: its backward returned {len(found)} gradients, expected one, or None, for each of "
                f"its {len(inputs)} positional arguments"
            )
        flat = []
        for value, grad in zip(inputs, found, strict=True):
            if value is _TENSOR:
                flat.append(grad)
            else:
                flat.extend([None] * _count(value) if grad is None else list(grad)[: _count(value)])
        return None, *flat


def tensors_in(values: Sequence) -> list[Tensor]:
    """Return the tensors among arguments or results, and in lists of them, in order."""
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, Tensor)]


_TENSOR = object()


def places_of(value: object) -> object:
    """Return an argument or result with `_TENSOR` in place of each tensor: how it is built, without keeping any."""
    return tree_map(lambda leaf: _TENSOR if isinstance(leaf, Tensor) else leaf, value)


def _count(places: object) -> int:
    return sum(leaf is _TENSOR for leaf in tree_flatten(places)[0])


def filled(places: object, values: Iterator) -> object:
    """Return the result of `places_of` with the next of `values` in each place."""
    return tree_map(lambda leaf: next(values) if leaf is _TENSOR else leaf, places)


def written_positions(op: OpOverload) -> list[int]:
    """Return the positions of the arguments that an operator writes to."""
    return [index for index, argument in enumerate(op._schema.arguments) if argument.is_write]


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Callable:
    """Make `fn` the operator "namespace::name". A decorator without it.

    The schema is read off the annotations of `fn`, unless `schema` says it: "(Tensor x) -> Tensor". `mutates_args` names the
    arguments that `fn` writes to. Results must not share memory with arguments. A name that was used before means the new
    operator from then on. ValueError for annotations that make no schema, RuntimeError where an operator exists that was
    defined otherwise.
    """

    def register(function: Callable) -> CustomOpDef:
        namespace, short = split_name(name)
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        declared = str(parse_schema(short + text))
        _unregister_previous(f"{namespace}::{short}")
        op = namespaces.add(define(namespace, declared))
        made = CustomOpDef(op, function)
        made._register_defaults()
        made.register_kernel(device_types, function)
        _definitions[op.name] = _made[f"{namespace}::{short}"] = made
        return made

    return register if fn is None else register(fn)


def _unregister_previous(name: str) -> None:
    """Unregister the operator that `custom_op` made under this name, for example when a notebook's cell runs again."""
    earlier = _made.pop(name, None)
    if earlier is not None:
        undefine(earlier._opoverload)
        namespaces.remove(earlier._opoverload)


_made: dict[str, CustomOpDef] = {}
_definitions: dict[str, CustomOpDef] = {}


def _definition(op: str | OpOverload | CustomOpDef) -> CustomOpDef:
    """Return the CustomOpDef that holds an operator's rules, creating it for an operator that was defined in another way."""
    if isinstance(op, CustomOpDef):
        return op
    found = op if isinstance(op, OpOverload) else find_operator(*_name_and_overload(op))
    if found.name not in _definitions:
        if found.namespace == "aten":
            raise RuntimeError(f"{found} belongs to Rushlight; rules can be registered for operators from outside")
        _definitions[found.name] = CustomOpDef(found, found)
    return _definitions[found.name]


def register_vmap(op: str | OpOverload | CustomOpDef, func: Callable | None = None, /, *, lib: object = None) -> Callable:
    """Call `CustomOpDef.register_vmap` for an operator given by name, as "namespace::name", or as an object."""
    return _definition(op).register_vmap(func)


def register_autocast(
    op: str | OpOverload | CustomOpDef, device_type: str, cast_inputs: dtype, /, *, lib: object = None
) -> None:
    """Call `CustomOpDef.register_autocast` for an operator given by name, as "namespace::name", or as an object."""
    _definition(op).register_autocast(device_type, cast_inputs)


def register_torch_dispatch(
    op: str | OpOverload | CustomOpDef, torch_dispatch_class: type, func: Callable | None = None, /, *, lib: object = None
) -> Callable:
    """Call `CustomOpDef.register_torch_dispatch` for an operator given by name, as "namespace::name", or as an object."""
    return _definition(op).register_torch_dispatch(torch_dispatch_class, func)


def _name_and_overload(name: str) -> tuple[str, str]:
    namespace, short = split_name(name)
    plain, _, overload = short.partition(".")
    return f"{namespace}::{plain}", overload


def register_fake(op: str | OpOverload | CustomOpDef, func: Callable | None = None, /, *, lib: object = None) -> Callable:
    """Call `CustomOpDef.register_fake` for an operator given by name, as "namespace::name", or as an object."""
    register = _definition(op).register_fake
    return register if func is None else register(func)


def register_kernel(
    op: str | OpOverload | CustomOpDef, device_types: str | Sequence[str] | None, func: Callable | None = None, /, *,
    lib: object = None,
) -> Callable:  # fmt: skip
    """Call `CustomOpDef.register_kernel` for an operator given by name, as "namespace::name", or as an object."""
    return _definition(op).register_kernel(device_types, func)


def register_autograd(
    op: str | OpOverload | CustomOpDef, backward: Callable, /, *, setup_context: Callable | None = None, lib: object = None
) -> None:
    """Call `CustomOpDef.register_autograd` for an operator given by name, as "namespace::name", or as an object.

    torchvision's operators have their derivatives here already: what is registered for one is left out.
    """
    if isinstance(op, str) and has_own_rules(find_operator(*_name_and_overload(op))):
        return
    _definition(op).register_autograd(backward, setup_context=setup_context)
