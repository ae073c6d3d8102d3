"""Library classes with tracked values of their own kind, functions that ask about the capture, and built-in `__new__` called by
name."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from rushlight.amp.autocast_mode import autocast, is_autocast_enabled
from rushlight.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight.core.dtype import promote_types
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.arrays import ArrayValue
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold, raised
from rushlight.dynamo.values.construction import CONSTRUCTORS, allocate
from rushlight.dynamo.values.contexts import GradModeValue, RegionValue, switched
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.number_tensors import tensor_of_numbers
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.targets import TORCH
from rushlight.nn.modules.transformer import _is_causal
from rushlight.ops.construct import as_tensor, asarray, tensor

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


TRUE = ConstantValue(True)


def _switch(kind: type) -> None:
    def make(tx: Following, function: Value | None = None) -> Value:
        made = GradModeValue(kind)
        return made if function is None else made.call(tx, [function], {})

    CONSTRUCTORS[kind] = make


_switch(no_grad)
_switch(enable_grad)
CONSTRUCTORS[set_grad_enabled] = lambda tx, mode: switched(tx, mode.truth(tx))


def _inference_mode(tx: Following, mode: Value = TRUE) -> Value:
    if not mode.is_constant() or not isinstance(mode.constant(), bool):
        return RegionValue(inference_mode, (True,)).call(tx, [mode], {})
    return RegionValue(inference_mode, (mode.constant(),))


def _autocast(
    tx: Following, device_type: Value, dtype: Value = NONE, enabled: Value = TRUE, cache_enabled: Value = NONE
) -> Value:
    arguments = tuple(value.constant() for value in (device_type, dtype, enabled, cache_enabled))
    autocast(*arguments)  # called only for its errors and warnings
    return RegionValue(autocast, arguments)


def _size(tx: Following, numbers: Value | None = None) -> Value:
    return SequenceValue([] if numbers is None else numbers.items_of(tx), Size)


def _constant_tensor(tx: Following, data: Value, **options: Value) -> Value:
    """Follow `torch.tensor(...)` of numbers: it becomes a constant of the graph, which each run copies."""
    if isinstance(data, ArrayValue) and "requires_grad" not in options:
        return tx.call_in_graph("call_method", "to", [data.tensor], {**options, "copy": ConstantValue(True)})
    if "requires_grad" in options and (not options["requires_grad"].is_constant() or options["requires_grad"].constant()):
        raise GraphBreak("a tensor made by the program that requires grad")
    options.pop("requires_grad", None)
    if isinstance(data, TensorValue):  # `torch.tensor(tensor)` copies; eager also warns
        detached = tx.call_in_graph("call_method", "detach", [data], {})
        return tx.call_in_graph("call_method", "to", [detached], {**options, "copy": ConstantValue(True)})
    if _contains_tensor(data) and not options.keys() - {"dtype"}:
        return _stacked(tx, data, options.get("dtype", NONE))
    arguments = {name: value.constant() for name, value in options.items()}
    opened = tensor_of_numbers(tx, data, arguments.get("dtype"))
    if opened is not None and not arguments.keys() - {"dtype"}:
        return tx.call_in_graph("call_method", "clone", [opened], {})
    try:
        made = tensor(data.snapshot(), **arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        raise raised(error) from None
    constant = tx.graph.attribute(made, "_tensor_constant")
    found = tx.call_in_graph("call_method", "clone", [tx.tensor_value(constant, None, Tensor)], {})
    found.constant_at_first = made
    return found


def _contains_tensor(data: Value) -> bool:
    parts = data.items if isinstance(data, SequenceValue) else []
    return any(isinstance(part, TensorValue) or _contains_tensor(part) for part in parts)


def _stacked(tx: Following, data: Value, kind: Value) -> Value:
    """Evaluate `torch.tensor(data)` of nested sequences in which numbers and tensors of one element mix."""
    if isinstance(data, TensorValue):
        if data.fake.numel() != 1:
            raise raised(ValueError("only one element tensors can be converted to Python scalars"))
        detached = tx.call_in_graph("call_method", "detach", [data], {})
        return tx.call_in_graph("call_method", "reshape", [detached, SequenceValue([], tuple)], {})
    if not isinstance(data, SequenceValue):
        return _constant_tensor(tx, data)
    parts = [_stacked(tx, part, NONE) for part in data.items]
    common = functools.reduce(promote_types, [part.fake.dtype for part in parts]) if kind is NONE else kind.constant()
    cast = [tx.call_in_graph("call_method", "to", [part, ConstantValue(common)], {}) for part in parts]
    return tx.call_in_graph("call_function", TORCH.stack, [SequenceValue(cast, list)], {})


def _as_tensor(tx: Following, data: Value, dtype: Value = NONE, device: Value = NONE) -> Value:
    """Follow `torch.as_tensor(...)`: a tensor with that dtype and device is returned itself, anything else is converted."""
    options = {name: value for name, value in (("dtype", dtype), ("device", device)) if value is not NONE}
    data = data.tensor if isinstance(data, ArrayValue) else data
    if not isinstance(data, TensorValue):
        return _constant_tensor(tx, data, **options)
    return tx.call_in_graph("call_method", "to", [data], options) if options else data


HANDLERS[tensor], HANDLERS[as_tensor], HANDLERS[asarray] = _constant_tensor, _as_tensor, _as_tensor
CONSTRUCTORS[Size] = _size
CONSTRUCTORS[inference_mode] = _inference_mode
CONSTRUCTORS[autocast] = _autocast
# Every capture guards the thread's autocast settings, so the answer is a constant.
HANDLERS[is_autocast_enabled] = lambda tx, *args: fold(is_autocast_enabled, *args)
HANDLERS[inspect.isgeneratorfunction] = lambda tx, function: ConstantValue(
    isinstance(function, FunctionValue) and bool(function.code.co_flags & inspect.CO_GENERATOR)
)
# A mask with unknown values is used as it is: knowing that it is causal would only be a hint.
HANDLERS[_is_causal] = lambda tx, mask, hint: ConstantValue(bool(hint.constant()) if hint.is_constant() else hint.truth(tx))


def _allocate(tx: Following, kind: Value, /, *args: Value, **kwargs: Value) -> Value:
    return allocate(tx, kind.constant(), list(args), kwargs)


for _base in (object, list, tuple, dict, set, frozenset, int, float, str, bytes):
    HANDLERS[_base.__new__] = _allocate
