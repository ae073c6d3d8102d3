"""Builtins and `itertools` on iterables."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rushlight.core.dtype import bool_
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values import open_floats
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.constant import NONE, ConstantValue, is_none, raised
from rushlight.dynamo.values.iterators import (
    AccumulatingIteratorValue,
    EndlessIteratorValue,
    IteratorValue,
    SlicedIteratorValue,
    WrappedIteratorValue,
    iterate,
)  # fmt: skip
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.operators import binary, compare
from rushlight.dynamo.values.polyfills import until
from rushlight.dynamo.values.sequences import RangeValue, SequenceValue, sort_values
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.targets import TORCH

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


@handles(iter)
def _iter(tx: Following, value: Value, sentinel: Value | None = None) -> Value:
    if sentinel is not None:
        return tx.wrap_constant(until).call(tx, [value, sentinel], {})
    return iterate(tx, value)


@handles(next)
def _next(tx: Following, iterator: Value, *default: Value) -> Value:
    try:
        return tx.next_or_raise(iterator)
    except Raised as error:
        if default and issubclass(error.value.python_type(), StopIteration):
            return default[0]
        raise


@handles(reversed)
def _reversed(tx: Following, values: Value) -> Value:
    if isinstance(values, ObjectValue):
        return values.backwards(tx)
    is_list = isinstance(values, SequenceValue) and values.is_mutable
    return IteratorValue(iter(values.items_of(tx)[::-1]), runs_code=is_list)


@handles(enumerate)
def _enumerate(tx: Following, values: Value, start: Value = ConstantValue(0)) -> Value:  # noqa: B008
    first, inner = start.constant(), _iter(tx, values)
    pairs = (SequenceValue([ConstantValue(first + i), value], tuple) for i, value in enumerate(tx.drain(inner)))
    return WrappedIteratorValue(enumerate, pairs, [inner], start=first)


@handles(zip)
def _zip(tx: Following, *values: Value, strict: Value = ConstantValue(False)) -> Value:  # noqa: B008
    inner = [_iter(tx, value) for value in values]
    if strict.truth(tx):
        made = WrappedIteratorValue(zip, _check_lengths(zip(*map(tx.drain, inner), strict=True)), inner)
        made.is_strict = True
        return made
    groups = zip(*map(tx.drain, inner), strict=False)
    return WrappedIteratorValue(zip, (SequenceValue(list(group), tuple) for group in groups), inner)


def _check_lengths(groups: Iterator[tuple]) -> Iterator[Value]:
    try:
        for group in groups:
            yield SequenceValue(list(group), tuple)
    except ValueError as error:
        raise raised(error) from None


@handles(map)
def _map(tx: Following, function: Value, *values: Value) -> Value:
    inner = [_iter(tx, value) for value in values]
    results = (function.call(tx, list(group), {}) for group in zip(*map(tx.drain, inner), strict=False))
    return WrappedIteratorValue(map, results, inner, function)


@handles(filter)
def _filter(tx: Following, function: Value, values: Value) -> Value:
    keeps_true = function.is_constant() and function.constant() is None
    inner = _iter(tx, values)
    kept = (v for v in tx.drain(inner) if (v if keeps_true else function.call(tx, [v], {})).truth(tx))
    return WrappedIteratorValue(filter, kept, [inner], function)


def _runs_code(values: Value) -> bool:
    """Return whether iterating runs code of the program, or sees changes made between two steps."""
    return not (isinstance(values, RangeValue) or (isinstance(values, SequenceValue) and not values.is_mutable))


@handles(sorted)
def _sorted(tx: Following, values: Value, key: Value = NONE, reverse: Value = ConstantValue(False)) -> Value:  # noqa: B008
    return SequenceValue(sort_values(tx, values.items_of(tx), key, reverse), list)


@handles(sum)
def _sum(tx: Following, values: Value, start: Value = ConstantValue(0)) -> Value:  # noqa: B008
    total = start
    for value in tx.lazily(values):
        total = binary(tx, "+", total, value)
    return total


@handles(any)
def _any(tx: Following, values: Value) -> Value:
    return ConstantValue(any(value.truth(tx) for value in tx.lazily(values)))


@handles(all)
def _all(tx: Following, values: Value) -> Value:
    return ConstantValue(all(value.truth(tx) for value in tx.lazily(values)))


def _are_single(*values: Value) -> bool:
    """Return whether values are tensors of one element and one dtype, or such a tensor and a number that it can hold."""
    tensors = [value for value in values if isinstance(value, TensorValue)]
    if not tensors or any(value.fake.numel() != 1 for value in tensors):
        return False
    if len(tensors) == 2:
        return tensors[0].fake.dtype is tensors[1].fake.dtype and tensors[0].fake.shape == tensors[1].fake.shape
    number, fake = next(value for value in values if not isinstance(value, TensorValue)), tensors[0].fake
    if fake.dtype is bool_:
        return False
    return number.is_constant() and type(number.constant()) in ((int, float) if fake.is_floating_point() else (int,))


def _chosen(tx: Following, symbol: str, value: Value, best: Value) -> Value:
    """Return `value` if it is beyond the best so far, else that: the graph chooses, so the result is a new tensor."""
    is_beyond = compare(tx, symbol, value, best)
    return tx.call_in_graph("call_function", TORCH.where, [is_beyond, value, best], {})


def _min_or_max_handler(symbol: str, name: str) -> Callable:
    def extreme(tx: Following, *values: Value, key: Value = NONE, default: Value | None = None) -> Value:
        candidates = values[0].items_of(tx) if len(values) == 1 else list(values)
        if not candidates:
            if default is not None:
                return default
            raise raised(ValueError(f"{name}() iterable argument is empty"))
        has_key = not (key.is_constant() and key.constant() is None)
        opened = None if has_key else open_floats.extreme(name, candidates)
        if opened is not None:
            return opened
        best = candidates[0]
        best_key = key.call(tx, [best], {}) if has_key else best
        for value in candidates[1:]:
            value_key = key.call(tx, [value], {}) if has_key else value
            if _are_single(value_key, best_key) and not has_key:
                best = best_key = _chosen(tx, symbol, value, best)
            elif compare(tx, symbol, value_key, best_key).truth(tx):
                best, best_key = value, value_key
        return best

    return extreme


HANDLERS[min], HANDLERS[max] = _min_or_max_handler("<", "min"), _min_or_max_handler(">", "max")


@handles(itertools.chain)
def _chain(tx: Following, *values: Value) -> Value:
    inner = [_iter(tx, value) for value in values]
    return WrappedIteratorValue(itertools.chain, itertools.chain.from_iterable(map(tx.drain, inner)), inner)


@handles(itertools.product)
def _product(tx: Following, *values: Value, repeat: Value = ConstantValue(1)) -> Value:  # noqa: B008
    groups = itertools.product(*[value.items_of(tx) for value in values], repeat=repeat.constant())
    return IteratorValue(SequenceValue(list(group), tuple) for group in groups)


@handles(itertools.islice)
def _islice(tx: Following, values: Value, *bounds: Value) -> Value:
    inner, numbers = _iter(tx, values), [bound.constant() for bound in bounds]
    try:
        taken = itertools.islice(tx.drain(inner), *numbers)
    except (TypeError, ValueError) as error:
        raise raised(error) from None
    start, stop, step = (0, *numbers, None) if len(numbers) == 1 else (*numbers, None)[:3]
    return SlicedIteratorValue(taken, inner, (start or 0, stop, step or 1))


@handles(itertools.compress)
def _compress(tx: Following, data: Value, selectors: Value) -> Value:
    inner = [_iter(tx, data), _iter(tx, selectors)]
    pairs = zip(*map(tx.drain, inner), strict=False)
    return WrappedIteratorValue(itertools.compress, (value for value, selector in pairs if selector.truth(tx)), inner)


@handles(itertools.starmap)
def _starmap(tx: Following, function: Value, values: Value) -> Value:
    inner = _iter(tx, values)
    results = (function.call(tx, arguments.items_of(tx), {}) for arguments in tx.drain(inner))
    return WrappedIteratorValue(itertools.starmap, results, [inner], function)


@handles(itertools.filterfalse)
def _filter_false(tx: Following, function: Value, values: Value) -> Value:
    keeps_false = is_none(function)
    inner = _iter(tx, values)
    kept = (v for v in tx.drain(inner) if not (v if keeps_false else function.call(tx, [v], {})).truth(tx))
    return WrappedIteratorValue(itertools.filterfalse, kept, [inner], function)


@handles(itertools.count)
def _count(tx: Following, start: Value = ConstantValue(0), step: Value = ConstantValue(1)) -> Value:  # noqa: B008
    following = [start]

    def numbers() -> Iterator[Value]:
        while True:
            found = following[0]
            following[0] = binary(tx, "+", found, step)
            yield found

    return EndlessIteratorValue(
        itertools.count, numbers(), lambda writer: f"{writer.expression(following[0])}, {writer.expression(step)}"
    )


@handles(itertools.repeat)
def _repeat(tx: Following, object: Value, times: Value | None = None) -> Value:
    if times is None:
        return EndlessIteratorValue(itertools.repeat, itertools.repeat(object), lambda writer: writer.expression(object))
    left = itertools.repeat(object, times.constant())
    return EndlessIteratorValue(
        itertools.repeat, left, lambda writer: f"{writer.expression(object)}, {operator.length_hint(left)}"
    )


@handles(itertools.accumulate)
def _accumulate(tx: Following, iterable: Value, func: Value = NONE, initial: Value = NONE) -> Value:
    def combine(left: Value, right: Value) -> Value:
        return binary(tx, "+", left, right) if func is NONE else func.call(tx, [left, right], {})

    first = None if initial.is_constant() and initial.constant() is None else initial
    inner = _iter(tx, iterable)
    found = itertools.accumulate(tx.drain(inner), combine, initial=first)
    return AccumulatingIteratorValue(found, inner, func, first)


def _tuple_iterator(kind: type) -> Callable:
    """Return the handler of an itertools class that yields tuples, such as `combinations`: it reads all items at once."""

    def follow_call(tx: Following, iterable: Value, *length: Value, **named: Value) -> Value:
        options = {name: value.constant() for name, value in named.items()}
        groups = kind(iterable.items_of(tx), *[value.constant() for value in length], **options)
        return IteratorValue((SequenceValue(list(group), tuple) for group in groups), kind)

    return follow_call


for _kind in (itertools.permutations, itertools.combinations, itertools.combinations_with_replacement, itertools.pairwise):
    HANDLERS[_kind] = _tuple_iterator(_kind)


@handles(itertools.zip_longest)
def _zip_longest(tx: Following, *values: Value, fillvalue: Value = NONE) -> Value:
    groups = itertools.zip_longest(*map(tx.lazily, values), fillvalue=fillvalue)
    found = (SequenceValue(list(group), tuple) for group in groups)
    return IteratorValue(found, itertools.zip_longest, any(map(_runs_code, values)))


HANDLERS[itertools.chain.from_iterable] = lambda tx, groups: IteratorValue(
    itertools.chain.from_iterable(tx.lazily(group) for group in groups.items_of(tx))
)
