"""Graphs of single operators: how eager runs an operator on a device.

In: an operator and its arguments, on one device. Out: its results, or NotImplemented if it has no Triton form for these
arguments. A graph is compiled once for each operator, dtypes, ranks, memory formats and other arguments, and kept; sizes stay
open where the operator allows that. Python numbers among the arguments become 0-dim tensors where another number would else
need another graph.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler import passes
from rushlight.compiler.logs import StageLog
from rushlight.compiler.open_numbers import open_form
from rushlight.compiler.settings import Settings
from rushlight.core.device import CPU
from rushlight.core.dtype import get_default_dtype, int32, int64
from rushlight.core.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.symbolic import ShapeEnv
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError, TensorImpl
from rushlight.cuda import runtime, tensors
from rushlight.cuda.generators import seed_tensor
from rushlight.cuda.single_graphs import TakesPlans, graphs
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import open_sizes
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.late_inputs import as_last_inputs, seed_nodes
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.graph import TritonGraph
from rushlight.inductor.triton.pieces import TritonCompiler
from rushlight.inductor.triton.strided_copy import strided_step
from rushlight.inductor.triton.tuning import limits_of
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import INPLACE_OF, check_castable
from rushlight.switches import get_float32_matmul_precision

aten = namespaces.namespace("aten")

# Operators with results that no kernel makes, as functions that make these apart.
_REWRITTEN: dict[str, Callable] = {
    "_native_batch_norm_legit_no_training": lambda *args: (
        aten._native_batch_norm_legit_no_training.default(*args)[0], *(args[0].new_zeros(0) for _ in range(2)),
    ),
}  # fmt: skip


# Operators whose kernels need to know sizes: how many of their first tensors have batches, whose number alone stays open.
_IMAGES = {"convolution": 1, "convolution_backward": 2}


class _Graph(NamedTuple):
    """A compiled operator. `run` takes flat tensors; `spec` is the structure of the results, and `draws` says that the last
    input is a seed."""

    run: Callable[..., tuple]
    spec: TreeSpec
    draws: bool


_graphs: dict[tuple, _Graph | None] = {}
_lock = threading.RLock()
runtime.on_forget(_graphs.clear)


def run(op: OpOverload, args: tuple, kwargs: dict, index: int, calls: TakesPlans | None = None) -> object:
    """Run an operator on a device, or return NotImplemented. `calls`, which were asked for this call, get its launch plan."""
    asked = args, kwargs
    args, kwargs = _open_numbers(op, args, kwargs, index)
    with_integers = _open_integers(op, args, index)
    if with_integers is not args:  # plans do not take integers as tensors
        args, calls = with_integers, None
    leaves, spec = tree_flatten((args, kwargs))
    given = _distinct(leaves)
    chosen = kwargs.get("generator")
    try:
        key = (op, index, spec, _key_of(leaves), _closed_sizes(op, leaves), get_float32_matmul_precision(), get_default_dtype())
        found = _graphs.get(key, False)
    except TypeError:  # an argument that cannot be hashed
        return NotImplemented
    if found is False:
        _check_cast(op, *asked)
        found = _made(key, op, leaves, spec, index, is_open=True)
    if found is None:
        return NotImplemented
    seeds = (seed_tensor(index, chosen),) if found.draws else ()

    def run_graph() -> object:
        results = list(found.run(*given, *seeds))
        if calls is not None and isinstance(found.run, TritonGraph):
            plan = found.run.plan_of(*given, *seeds)
            if plan is not None:
                draw = partial(seed_tensor, index, chosen) if found.draws else None
                calls.remember(*asked, plan, _structure(found.spec), draw)
        return tree_unflatten(results, found.spec)

    try:
        return run_graph()
    except RuntimeError as error:
        if "the compiled graph" not in str(error):  # not from the check of its inputs
            raise
    exact = (*key, tuple([(leaf._impl.sizes, leaf._impl.strides) for leaf in given]))
    found = _graphs.get(exact, False)
    if found is False:
        found = _made(exact, op, leaves, spec, index, is_open=False)
    return NotImplemented if found is None else run_graph()


def _check_cast(op: OpOverload, args: tuple, kwargs: dict) -> None:
    """Raise RuntimeError if an operator's result has a dtype that the tensor that it is written to cannot take."""
    functional = INPLACE_OF.get(op)
    if functional is None:
        return
    leaves, spec = tree_flatten((args, kwargs))
    metas = [
        aten.empty.memory_format(leaf._impl.sizes, dtype=leaf._impl.dtype, device="meta") if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    ]  # fmt: skip
    given, named = tree_unflatten(metas, spec)
    try:
        with set_grad_enabled(False):
            result = functional(*given, **named)
    except NotImplementedError:  # no rule tells the result's dtype
        return
    if isinstance(result, Tensor):
        check_castable(f"{functional._opname}_", result.dtype, args[0].dtype)


def _distinct(leaves: Sequence[object]) -> list[Tensor]:
    """Return the tensors, each once."""
    found: dict[int, Tensor] = {}
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            found.setdefault(id(leaf._impl), leaf)
    return list(found.values())


def _structure(spec: TreeSpec) -> object:
    """Return how results are returned, for `PlannedCalls`."""
    if spec.kind is None:
        return "single"
    if spec.kind in (tuple, list) and all(child.kind is None for child in spec.children):
        return spec.kind.__name__
    return lambda results: tree_unflatten(results, spec)


graphs.run, graphs.copy, graphs.opens = run, strided_step, lambda op: open_form(op) is not None


def _open_numbers(op: OpOverload, args: tuple, kwargs: dict, index: int) -> tuple[tuple, dict]:
    """Replace Python numbers by tensors for operators in which they often change."""
    if open_form(op) is None:
        return args, kwargs
    # Elsewhere the result's dtype is that of a Python number, and would be another for a 0-dim tensor.
    if not any(isinstance(value, Tensor) and value._impl.sizes and not value.dtype.is_integral for value in args):
        return args, kwargs

    def opened(value: object) -> object:
        return tensors.number(value, index) if type(value) is float else value

    return tuple(map(opened, args)), {name: opened(value) for name, value in kwargs.items()}


def _open_integers(op: OpOverload, args: tuple, index: int) -> tuple:
    """Replace Python integers by tensors beside tensors of integers, whose dtype the result then has: positions and lengths,
    which change from call to call."""
    if open_form(op) is None or not any(type(value) is int for value in args):
        return args
    kinds = {value._impl.dtype for value in args if isinstance(value, Tensor)}
    has_sizes = any(value._impl.sizes for value in args if isinstance(value, Tensor))
    if kinds != {int64} and not (kinds == {int32} and has_sizes):
        return args
    least, most = -(1 << 63), (1 << 63) - 1
    return tuple([
        tensors.number(value, index) if type(value) is int and least <= value <= most else value for value in args
    ])  # fmt: skip


def _key_of(leaves: Sequence[object]) -> tuple:
    """Return what a graph depends on: dtypes, which sizes are equal or 0 or 1, the order in memory, and all other values."""
    first: dict[int, int] = {0: 0, 1: 1}
    impls: dict[int, int] = {}
    found: list = []
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            found.append((type(leaf), repr(leaf) if type(leaf) is float else leaf))
            continue
        impl = leaf._impl
        same = impls.setdefault(id(impl), len(impls))
        sizes = tuple([first.setdefault(size, -len(first)) for size in impl.sizes])
        found.append((impl.dtype, same, sizes, _memory_order(impl)))
    hash(tuple(found))
    return tuple(found)


def _open_dims(op: OpOverload, leaves: Sequence[object]) -> list[list[int]]:
    """Return for each tensor the dimensions whose sizes stay open."""
    tensors_given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    images = _IMAGES.get(op._opname) if op.namespace == "aten" else None
    if images is None:
        return [[*range(leaf.dim())] for leaf in tensors_given]
    return [[0] if place < images else [] for place, _ in enumerate(tensors_given)]


def _closed_sizes(op: OpOverload, leaves: Sequence[object]) -> tuple:
    """Return the sizes that a graph is compiled for."""
    given = [leaf._impl.sizes for leaf in leaves if isinstance(leaf, Tensor)]
    return tuple([
        size for sizes, dims in zip(given, _open_dims(op, leaves), strict=True)
        for dim, size in enumerate(sizes) if dim not in dims
    ])  # fmt: skip


def _memory_order(impl: TensorImpl) -> object:
    if impl.is_contiguous():
        return "contiguous"
    if is_non_overlapping_and_dense(impl.sizes, impl.strides):
        return tuple(sorted(range(len(impl.sizes)), key=lambda dim: (-impl.strides[dim], dim)))
    return impl.sizes, impl.strides


def _made(key: tuple, op: OpOverload, leaves: list, spec: TreeSpec, index: int, is_open: bool) -> _Graph | None:
    with _lock:
        if key not in _graphs:
            _graphs[key] = _compile(op, leaves, spec, index, is_open)
        return _graphs[key]


def _compile(op: OpOverload, leaves: list, spec: TreeSpec, index: int, is_open: bool) -> _Graph | None:
    """Compile a graph, with open sizes if that is possible; None if the operator has no Triton form."""
    if is_open:
        try:
            return _compile_for(op, leaves, spec, index, ShapeEnv())
        except Exception:  # noqa: S110  (open sizes may be in the way; an error of the operator itself comes again below)
            pass
    try:
        return _compile_for(op, leaves, spec, index, None)
    except (_NoForm, DataDependentError, NotImplementedError):
        return None


class _NoForm(Exception):
    """The operator has no Triton form."""


def _compile_for(op: OpOverload, leaves: list, spec: TreeSpec, index: int, environment: ShapeEnv | None) -> _Graph:
    rewritten = _REWRITTEN.get(op.__name__.removesuffix(".default")) if op.namespace == "aten" else None
    function = rewritten or open_form(op) or op
    args, kwargs = tree_unflatten([None if _is_generator(leaf) else leaf for leaf in leaves], spec)
    opened = None
    if environment is not None:
        given = [leaf for leaf in tree_flatten((args, kwargs))[0]]
        dims = iter(_open_dims(op, given))
        opened = [
            open_sizes(environment, leaf._impl, next(dims), f"input {number}") if isinstance(leaf, Tensor) else None
            for number, leaf in enumerate(given)
        ]  # fmt: skip
    kwargs = {name: value for name, value in kwargs.items() if name != "generator"}
    log = StageLog(Settings(), str(op))
    with set_grad_enabled(False):
        captured = capture(function, args, kwargs, open_leaves=opened if opened is None else opened[: _count(args, kwargs)])
        try:
            passes.run(passes.for_fusion(False), captured.module, log)
            module, seeds = captured.module, seed_nodes(captured.module)
            if seeds:
                module = as_last_inputs(module, seeds)
            precision = Precision("ieee" if get_float32_matmul_precision() == "highest" else "tf32")
            launcher = partial(DeviceLauncher, index=index)
            compiler = TritonCompiler(launcher, precision, counts_writes=False, limits=limits_of(index))
            compiled, pieces = compiler.compile(module)
        except Exception as error:  # the operator is right, so it runs on the CPU, which a warning says
            raise _NoForm from error
    if pieces.eager or any(tensor.device == CPU for tensor in captured.constants.values()):
        raise _NoForm
    return _Graph(compiled, captured.output_spec, bool(seeds))


def _count(args: tuple, kwargs: dict) -> int:
    return len(tree_flatten((args, kwargs))[0])


def _is_generator(leaf: object) -> bool:
    return hasattr(leaf, "next_seed")


