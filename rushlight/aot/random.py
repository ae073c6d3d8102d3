"""Rewrite a graph's random operators as functions of one seed, which the default generator draws at each call.

In: a graph of aten operators with fake values in `meta["val"]`, before functionalization. Out: a graph with the same
distributions: `_philox_seed` at its start, and pure operators of that seed, which fuse, and which a backward may recompute.
Operators with a generator of their own, and those without a rule here (`randperm`, `poisson`, ...), still draw in eager.
Arguments that eager rejects (a probability above 1) are left to eager. Stage: aot.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.aot.decompose import decompose
from rushlight.core.device import CPU, device
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.dtype import bool_, dtype, float32, float64, uint8
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.cpu.random import largest_random
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import aten as overload

aten = namespaces.namespace("aten")
_WORD = 1 << 32
_MIN_POSITIVE = 2.0**-25  # replaces a uniform 0, which has no logarithm
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
RULES: dict[OpOverload, Callable] = {}


def rule(*names: str) -> Callable:
    """Register the decorated function `(Draws, arguments by name) -> result`, or NotImplemented, for aten operators."""

    def register(function: Callable) -> Callable:
        for name in names:
            RULES[overload(name)] = function
        return function

    return register


def seed_random(module: GraphModule) -> None:
    """Rewrite the graph; see the module's docstring."""
    if any(node.target in RULES for node in module.graph.nodes if node.op == "call_function"):
        draws = Draws(module)
        table = {op: draws.applied(op, function) for op, function in RULES.items()}
        decompose(module, table, (draws.node,))
        if not draws.node.users:
            module.graph.erase_node(draws.node)


def _place_of_draws(module: GraphModule) -> device:
    """Return the device of a graph's random numbers: a GPU if one of them is there. Others are then drawn in eager."""
    drawn = (node for node in module.graph.nodes if node.op == "call_function" and node.target in RULES)
    made = [leaf for node in drawn for leaf in tree_flatten(node.meta["val"])[0] if isinstance(leaf, Tensor)]
    return next((tensor.device for tensor in made if tensor.device.type == "cuda"), CPU)


class Draws:
    """The seed of a graph, and the number of streams taken so far."""

    def __init__(self, module: GraphModule):
        graph, op = module.graph, overload("_philox_seed")
        self.place = _place_of_draws(module)
        named = {} if self.place == CPU else {"device": self.place}
        first = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
        with graph.inserting_before(first):
            self.node: Node = graph.create_node("call_function", op, (), named, name="seed")
        with ExcludeKeys(AUTOGRAD_BITS), FakeTensorMode():
            self.node.meta["val"] = op(**named)
        self._streams = 0

    def applied(self, op: OpOverload, function: Callable) -> Callable:
        """Turn a rule into a decomposition."""
        names = [argument.name for argument in op._schema.arguments]
        defaults = {argument.name: argument.default for argument in op._schema.arguments}

        def decomposition(*args: object, **kwargs: object) -> object:
            given = defaults | dict(zip(names, args, strict=False)) | kwargs
            numbers = [value for value in given.values() if value is not None and not isinstance(value, Tensor)]
            if any(value.device != self.place for value in given.values() if isinstance(value, Tensor)):
                return NotImplemented
            if given.get("generator") is not None or not all(isinstance(value, bool | int | float) for value in numbers):
                return NotImplemented
            return function(self, given)

        return decomposition

    def uniform(self, like: Tensor, kind: dtype | None = None) -> Tensor:
        """Return numbers in [0, 1) with the sizes of `like`, generated in its memory order."""
        kind = kind or (float64 if like.dtype is float64 else float32)
        sizes, order = _memory_order(like)
        made = aten._philox_uniform(self.node.meta["val"], self._take(2 if kind is float64 else 1), sizes, dtype=kind)
        return _undo_order(made, order)

    def bits(self, like: Tensor) -> Tensor:
        """Return integers in [0, 2**32) with the sizes of `like`."""
        sizes, order = _memory_order(like)
        return _undo_order(aten._philox_bits(self.node.meta["val"], self._take(1), sizes), order)

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers, by Box and Muller's method."""
        radius = (-2 * (1 - self.uniform(like)).log()).sqrt()
        return radius * (2 * math.pi * self.uniform(like)).cos()

    def positive(self, like: Tensor) -> Tensor:
        """Return uniform numbers in (0, 1)."""
        number = self.uniform(like)
        return aten.where.self(number == 0, aten.full.default((), _MIN_POSITIVE, dtype=number.dtype), number)

    def _take(self, count: int) -> int:
        self._streams += count
        return self._streams - count


def _memory_order(like: Tensor) -> tuple[list, list[int] | None]:
    """Return the sizes, outermost in memory first, and the dimensions in that order; None instead if they are in order
    already."""
    if like.is_contiguous():
        return list(like.shape), None
    order = sorted(range(like.dim()), key=lambda dim: (-like.stride(dim), dim))
    return [like.shape[dim] for dim in order], order


def _undo_order(made: Tensor, order: list[int] | None) -> Tensor:
    return made if order is None else made.permute(sorted(range(len(order)), key=order.__getitem__))


def _floating(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point


@rule("native_dropout")
def native_dropout(draws: Draws, given: dict) -> object:
    tensor, p = given["input"], given["p"]
    if given["train"] is False or not _floating(tensor) or not 0 <= p <= 1:
        return NotImplemented
    mask = draws.uniform(tensor, float32) < 1 - p
    return tensor * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


@rule("uniform_")
def uniform(draws: Draws, given: dict) -> object:
    tensor, low, high = given["self"], given["from"], given["to"]
    if not _floating(tensor) or not low <= high or math.isinf(high - low):
        return NotImplemented
    number = draws.uniform(tensor)
    if tensor.dtype not in (float32, float64):  # keeps only as many bits as the dtype has, so that no number is rounded up to 1
        scale = 1 << _BITS[tensor.dtype.name]
        number = (number * scale).floor() * (1 / scale)
    if (low, high) == (0, 1):
        return tensor.copy_(number)
    number = (number * (high - low) + low).to(tensor.dtype)
    return tensor.copy_(aten.where.self(number == high, aten.full.default((), low, dtype=tensor.dtype), number))


@rule("normal_")
def normal(draws: Draws, given: dict) -> object:
    tensor, mean, std = given["self"], given["mean"], given["std"]
    if not _floating(tensor) or not std >= 0:
        return NotImplemented
    return tensor.copy_(_scale_and_shift(draws.normal(tensor), mean, std))


def _scale_and_shift(number: Tensor, mean: float, std: float) -> Tensor:
    number = number if std == 1 else number * std
    return number if mean == 0 else number + mean


@rule("log_normal_")
def log_normal(draws: Draws, given: dict) -> object:
    tensor, mean, std = given["self"], given["mean"], given["std"]
    if not _floating(tensor) or not std > 0:
        return NotImplemented
    return tensor.copy_(_scale_and_shift(draws.normal(tensor), mean, std).exp())


@rule("exponential_")
def exponential(draws: Draws, given: dict) -> object:
    tensor, rate = given["self"], given["lambd"]
    if not _floating(tensor) or not rate > 0:
        return NotImplemented
    return tensor.copy_(draws.positive(tensor).log() * (-1 / rate))


@rule("cauchy_")
def cauchy(draws: Draws, given: dict) -> object:
    tensor, median, sigma = given["self"], given["median"], given["sigma"]
    if not _floating(tensor) or not sigma > 0:
        return NotImplemented
    return tensor.copy_(((draws.positive(tensor) - 0.5) * math.pi).tan() * sigma + median)


@rule("geometric_")
def geometric(draws: Draws, given: dict) -> object:
    tensor, p = given["self"], given["p"]
    if not _floating(tensor) or not 0 < p < 1:
        return NotImplemented
    return tensor.copy_((draws.positive(tensor).log() * (1 / math.log1p(-p))).ceil())


@rule("bernoulli_.float")
def bernoulli(draws: Draws, given: dict) -> object:
    if given["self"].dtype.is_complex or not 0 <= given["p"] <= 1:
        return NotImplemented
    return given["self"].copy_(draws.uniform(given["self"], float32) < given["p"])


@rule("bernoulli_.Tensor")
def bernoulli_by_element(draws: Draws, given: dict) -> object:
    if given["self"].dtype.is_complex or not _floating(given["p"]):
        return NotImplemented
    p = given["p"]
    p = aten._checked.default(p, (p >= 0) & (p <= 1), "RuntimeError", "Expected p_in >= 0 && p_in <= 1 to be true, got {}")
    return given["self"].copy_(draws.uniform(given["self"], float32) < p)


@rule("random_.from", "random_")
def integers(draws: Draws, given: dict) -> object:
    tensor, low, end = given["self"], given.get("from", 0), given.get("to")
    if tensor.dtype.is_complex:
        return NotImplemented
    largest = largest_random(tensor.dtype)
    smallest = -largest if _floating(tensor) else 0 if tensor.dtype in (bool_, uint8) else -largest - 1
    end = largest + 1 if end is None else end
    if not smallest <= low < end <= largest + 1 or end - low >= 1 << 62:
        return NotImplemented
    span = end - low
    if span <= _WORD // 2:
        number = draws.bits(tensor) * span >> 32
    else:
        number = ((draws.bits(tensor) << 31) + (draws.bits(tensor) >> 1)) % span
    return tensor.copy_(number if low == 0 else number + low)


@rule("multinomial")
def multinomial(draws: Draws, given: dict) -> object:
    """Draw without replacement the indices of the largest quotients of weights and exponential numbers (Efraimidis and Spirakis

    2006); with replacement, the intervals of the cumulative sums into which uniform numbers fall.
    """
    weights, count = given["self"], given["num_samples"]
    if weights.dtype not in (float32, float64) or 0 in weights.shape:
        return NotImplemented
    wrong = "probability tensor contains either `inf`, `nan` or element < 0"
    weights = aten._checked.default(weights, (weights >= 0) & (weights < math.inf), "RuntimeError", wrong)
    total = weights.sum(-1, keepdim=True)
    none = "invalid multinomial distribution (sum of probabilities <= 0)"
    total = aten._checked.default(total, total > 0, "RuntimeError", none)
    weights = weights / total
    if not given["replacement"] or count == 1:
        return aten.topk.default(weights / -draws.positive(weights).log(), count, -1)[1]
    levels = weights.cumsum(-1)
    like = aten.empty.memory_format([*weights.shape[:-1], count], dtype=weights.dtype, device=weights.device)
    found = aten.searchsorted.Tensor(levels, draws.uniform(like) * levels[..., -1:], right=True)
    return found.clamp(max=weights.shape[-1] - 1)
