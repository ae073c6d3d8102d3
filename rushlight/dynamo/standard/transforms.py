"""`vmap`, `func.grad`, `vjp`, `jvp`, `jacrev` and the like in captured functions: each call is one node, which holds a subgraph
for the function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.core.lazy_module import LazyModule
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import CLOSURES, HANDLERS
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.func import captured, transforms
from rushlight.func.vmap import batch_size, dims_of, expand_dims_tree, vmap

if TYPE_CHECKING:
    from rushlight.dynamo.subgraphs import Tree
    from rushlight.dynamo.values.base import Following

# Lazy, because it imports all kinds of values, and these import the handlers.
subgraphs = LazyModule("rushlight.dynamo.subgraphs")
Call = Callable[["Following", Value, list[Value], dict[str, Value]], Value]


class TransformedValue(Value):
    """A function that a transform returned: `run` follows a call of it, given the original function."""

    def __init__(self, name: str, function: Value, run: Call) -> None:
        self.name = name
        self.function = function
        self.run = run

    def python_type(self) -> type:
        return types.FunctionType

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.run(tx, self.function, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return self.function.attribute(tx, name)

    def __str__(self) -> str:
        return f"{self.name} of {self.function}"


# Handlers of vmap


def _map_options(options: dict[str, Value]) -> dict[str, Any]:
    names = {"in_dims": 0, "out_dims": 0, "randomness": "error", "chunk_size": None}
    return {name: subgraphs.constant_or(options.get(name), default) for name, default in names.items()}


def _call_vmap(tx: Following, function: Value, args: list[Value], kwargs: dict[str, Value], options: dict[str, Any]) -> Value:
    tree = subgraphs.Tree(SequenceValue(args, tuple))
    leaves, spec = tree_flatten(tree.skeleton)
    try:
        dims = dims_of(_Named(function), options["in_dims"], tree.skeleton, leaves, spec)
        batch_size(leaves, dims)
    except ValueError as error:
        raise raised(error) from None
    dims = [dim for leaf, dim in zip(leaves, dims, strict=True) if isinstance(leaf, Tensor)]
    chosen = [value for value, dim in zip(tree.tensors, dims, strict=True) if dim is not None]
    with tx.graph.fakes:
        fakes = [_example_of_batch(value.fake, dim) for value, dim in zip(tree.tensors, dims, strict=True) if dim is not None]

    def call(inputs: list[Value]) -> Value:
        given = iter(inputs)
        placed = [value if dim is None else next(given) for value, dim in zip(tree.tensors, dims, strict=True)]
        tx.session.maps += 1
        result = function.call(tx, tree.rebuilt(placed).items_of(tx), kwargs)
        tx.session.maps -= 1
        return result

    graph = subgraphs.follow(tx, f"vmap of {function}", function, fakes, call)
    out_dims = _out_dims(function, options["out_dims"], graph.result)
    mapped_dims = tuple(dim for dim in dims if dim is not None)
    run = captured.mapped(mapped_dims, out_dims, options["randomness"], options["chunk_size"])
    target = captured.CapturedTransform("vmap", graph.module, run)
    return graph.result.rebuilt(subgraphs.call_transform(tx, target, chosen, graph))


class _Named:
    """A stand-in with a function's `__name__`, for messages."""

    def __init__(self, function: Value) -> None:
        self.__name__ = getattr(function, "name", str(function)).rpartition(".")[2]


def _example_of_batch(fake: Tensor, dim: int) -> Tensor:
    """Return a fake of one example of a batch."""
    sizes = list(fake.shape)
    del sizes[dim]
    made = fake.detach().new_empty(sizes) if not fake.shape[dim] else fake.detach().select(dim, 0)
    return made.requires_grad_() if fake.requires_grad else made


def _out_dims(function: Value, out_dims: Any, result: Tree) -> tuple:
    leaves, spec = tree_flatten(result.skeleton)
    if not isinstance(result.skeleton, tuple) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    found = expand_dims_tree(out_dims, spec)
    if found is None or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise GraphBreak(f"vmap of {function}, whose result does not fit out_dims, or holds other values than tensors")
    return tuple(found)


def _vmap(tx: Following, func: Value, in_dims: Value | None = None, out_dims: Value | None = None,
          randomness: Value | None = None, *, chunk_size: Value | None = None) -> Value:  # fmt: skip
    given = {"in_dims": in_dims, "out_dims": out_dims, "randomness": randomness, "chunk_size": chunk_size}
    options = _map_options(given)
    return TransformedValue("vmap", func, lambda tx, function, args, kwargs: _call_vmap(tx, function, args, kwargs, options))


def _call_mapped(tx: Following, closed: dict[str, Value], args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _call_vmap(tx, closed["func"], args, kwargs, _map_options(closed))


# Handlers of grad, vjp, jvp and Jacobians


class _Points:
    """The arguments by which a function is differentiated."""

    def __init__(self, tx: Following, args: list[Value], argnums: Any) -> None:
        self.args = args
        self.is_single = isinstance(argnums, int)
        self.numbers = [argnums] if self.is_single else list(argnums)
        if any(not -len(args) <= number < len(args) for number in self.numbers):
            raise raised(RuntimeError(f"Got argnums={argnums}, but only {len(args)} positional inputs"))
        self.tree = subgraphs.Tree(SequenceValue([args[number] for number in self.numbers], tuple))
        self.tensors = self.tree.tensors
        with tx.graph.fakes:
            self.fakes = [value.fake.detach().requires_grad_() for value in self.tensors]

    def arguments(self, tx: Following, points: list[Value]) -> list[Value]:
        """Return all arguments, with the chosen ones replaced by these."""
        made = list(self.args)
        for number, value in zip(self.numbers, self.tree.rebuilt(points).items_of(tx), strict=True):
            made[number] = value
        return made

    def like(self, tx: Following, values: list[Value]) -> Value:
        """Return values for the points' tensors, in the structure of the chosen arguments."""
        made = self.tree.rebuilt(values)
        return made.items_of(tx)[0] if self.is_single else made


def _split_aux(tx: Following, result: Value, has_aux: bool) -> list[Value]:
    if not has_aux:
        return [result]
    items = result.items_of(tx) if isinstance(result, SequenceValue) else []
    if len(items) != 2:
        raise GraphBreak("a function with has_aux=True that does not return a pair")
    return items


def _follow_function(tx: Following, what: str, function: Value, points: _Points, kwargs: dict[str, Value]) -> Any:
    def call(inputs: list[Value]) -> Value:
        recorded = _set_grad_enabled(tx, True)
        result = function.call(tx, points.arguments(tx, inputs), kwargs)
        _set_grad_enabled(tx, recorded)
        return result

    return subgraphs.follow(tx, f"{what} of {function}", function, points.fakes, call)


def _set_grad_enabled(tx: Following, enabled: bool) -> bool:
    before = state.grad_enabled
    state.grad_enabled = enabled  # transforms record gradients in any grad mode
    return before


def _grad_and_value(argnums: Any, has_aux: bool, with_value: bool) -> Call:
    def run(tx: Following, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        points = _Points(tx, args, argnums)
        graph = _follow_function(tx, "grad", function, points, kwargs)
        output, *more = _split_aux(tx, graph.result.value, has_aux)
        if output not in graph.result.tensors or output.fake.dim():
            raise GraphBreak(f"grad of {function}, whose output is no tensor of one number")
        target = captured.CapturedTransform("grad", graph.module, captured.gradients)
        found = subgraphs.call_transform(tx, target, points.tensors, graph)
        gradient = points.like(tx, found[: len(points.tensors)])
        results = _split_aux(tx, graph.result.rebuilt(found[len(points.tensors) :]), has_aux)
        value = SequenceValue(results, tuple) if has_aux else results[0]
        if with_value:
            return SequenceValue([gradient, value], tuple)
        return SequenceValue([gradient, results[1]], tuple) if has_aux else gradient

    return run


def _vjp(tx: Following, func: Value, *primals: Value, has_aux: Value | None = None) -> Value:
    with_more = subgraphs.constant_or(has_aux, False)
    points = _Points(tx, list(primals), tuple(range(len(primals))))
    graph = _follow_function(tx, "vjp", func, points, {})
    outputs = subgraphs.Tree(_split_aux(tx, graph.result.value, with_more)[0])
    shown = captured.CapturedTransform("vjp", graph.module, lambda function, *inputs: function(*inputs))
    found = _split_aux(tx, graph.result.rebuilt(subgraphs.call_transform(tx, shown, points.tensors, graph)), with_more)

    def pull_back(tx: Following, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        cotangents = subgraphs.Tree(SequenceValue(args, tuple)).tensors
        if len(cotangents) != len(outputs.tensors):
            raise raised(RuntimeError(f"Expected {len(outputs.tensors)} cotangents, got {len(cotangents)}"))
        target = captured.CapturedTransform("vjp", graph.module, captured.vjp_run(len(cotangents)))
        slopes = subgraphs.call_transform(tx, target, [*points.tensors, *cotangents], graph)
        return points.like(tx, slopes)

    pulled = TransformedValue("vjp", func, pull_back)
    return SequenceValue([found[0], pulled, *found[1:]], tuple)


def _jvp(tx: Following, func: Value, primals: Value, tangents: Value, *, has_aux: Value | None = None) -> Value:
    with_more = subgraphs.constant_or(has_aux, False)
    given = primals.items_of(tx)
    points = _Points(tx, given, tuple(range(len(given))))
    directions = subgraphs.Tree(tangents).tensors
    if len(directions) != len(points.tensors):
        raise GraphBreak("jvp whose tangents are not like its primals")
    graph = _follow_function(tx, "jvp", func, points, {})
    output, *more = _split_aux(tx, graph.result.value, with_more)
    outputs = subgraphs.Tree(output)
    count = len(outputs.tensors)
    target = captured.CapturedTransform("jvp", graph.module, captured.jvp_run(len(points.tensors), count))
    found = subgraphs.call_transform(tx, target, [*points.tensors, *directions], graph)
    results = [outputs.rebuilt(found[:count]), outputs.rebuilt(found[count : 2 * count])]
    results += [subgraphs.Tree(value).rebuilt(found[2 * count :]) for value in more]
    return SequenceValue(results, tuple)


def _jacobian(argnums: Any, has_aux: bool, chunk_size: int | None) -> Call:
    def run(tx: Following, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        points = _Points(tx, args, argnums)
        graph = _follow_function(tx, "jacrev", function, points, kwargs)
        output, *more = _split_aux(tx, graph.result.value, has_aux)
        outputs, width = subgraphs.Tree(output), len(points.tensors)
        count = len(outputs.tensors)
        target = captured.CapturedTransform("jacrev", graph.module, captured.jacobians(count, chunk_size))
        found = subgraphs.call_transform(tx, target, points.tensors, graph)
        rows = [points.like(tx, found[index * width : (index + 1) * width]) for index in range(count)]
        made = outputs.rebuilt(rows)
        return SequenceValue([made, *(subgraphs.Tree(value).rebuilt(found[count * width :]) for value in more)], tuple) if (
            has_aux) else made  # fmt: skip

    return run


_DEFAULTS = {"argnums": 0, "has_aux": False, "chunk_size": None}


def _transform_handler(name: str, make: Callable[..., Call], *options: str) -> Callable:
    """Return a handler of a transform: it returns the transformed function."""

    def transform(tx: Following, func: Value, /, *args: Value, **kwargs: Value) -> Value:
        given = dict(zip(("argnums", "has_aux"), args, strict=False)) | kwargs
        chosen = {option: subgraphs.constant_or(given.get(option), _DEFAULTS[option]) for option in options}
        return TransformedValue(name, func, make(**chosen))

    return transform


def _closure(transform: Callable, *options: str) -> Callable:
    """Return a handler for calls of a function that the transform returned before the capture."""

    def call(tx: Following, closed: dict[str, Value], args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = {name: closed[name] for name in options if name in closed}
        return transform(tx, closed["func"], **given).call(tx, args, kwargs)

    return call


def _hessian(tx: Following, func: Value, argnums: Value | None = None) -> Value:
    numbers = ConstantValue(0) if argnums is None else argnums
    jacobian = HANDLERS[transforms.jacrev]
    return jacobian(tx, jacobian(tx, func, numbers), numbers)


def _code_in(function: Callable, name: str) -> types.CodeType:
    return next(code for code in function.__code__.co_consts if isinstance(code, types.CodeType) and code.co_name == name)


_BY_GRAD = {
    transforms.grad: ("gradient", lambda **options: _grad_and_value(**options, with_value=False)),
    transforms.grad_and_value: ("both", lambda **options: _grad_and_value(**options, with_value=True)),
}
for _transform, (_inner, _make) in _BY_GRAD.items():
    HANDLERS[_transform] = _transform_handler(_transform.__name__, _make, "argnums", "has_aux")
    CLOSURES[_code_in(_transform, _inner)] = _closure(HANDLERS[_transform], "argnums", "has_aux")
HANDLERS[transforms.jacrev] = HANDLERS[transforms.jacfwd] = _transform_handler(
    "jacrev", _jacobian, "argnums", "has_aux", "chunk_size"
)
CLOSURES[_code_in(transforms.jacrev, "jacobian")] = _closure(HANDLERS[transforms.jacrev], "argnums", "has_aux", "chunk_size")
HANDLERS[transforms.hessian] = _hessian
HANDLERS[transforms.vjp], HANDLERS[transforms.jvp] = _vjp, _jvp
HANDLERS[vmap] = _vmap
CLOSURES[_code_in(vmap, "mapped")] = _call_mapped
