"""Sample calls of every primitive, built with NumPy: for comparing backends, checking derivatives, and the oracle.

`samples()` gives Sample(op, args, kwargs), also those of the modules `samples_*`; floating tensors are float64, their values
away from kinks and poles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np

import rushlight as rl
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import PRIMITIVES, aten


def is_own(op: OpOverload) -> bool:
    """Whether ATen lacks an operator of this name: other namespaces, and primitives of compiled graphs."""
    return op.namespace != "aten" or op._schema.name == "_checked" or op._schema.name.startswith("_philox_")


@dataclass(frozen=True)
class Sample:
    """One call. `data_dependent`: the result's sizes depend on values, so that the Meta kernel refuses."""

    op: OpOverload
    args: tuple
    kwargs: dict = field(default_factory=dict)
    data_dependent: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the operator is this library's own: ATen has none of its name."""
        return is_own(self.op)

    def call(self):
        """Run the operator."""
        return self.op(*self.args, **self.kwargs)

    def mapped(self, change: Callable[[Tensor], object]) -> Sample:
        """This call with `change` applied to every tensor among the arguments."""
        args = tuple(map_tensors(value, change) for value in self.args)
        return Sample(self.op, args, {k: map_tensors(v, change) for k, v in self.kwargs.items()}, self.data_dependent)

    def __str__(self) -> str:
        shapes = ",".join(_describe(value) for value in (*self.args, *self.kwargs.values()))
        return f"{str(self.op).removeprefix('aten.')}-{shapes}".replace(" ", "")


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        strided = "" if value.is_contiguous() else "s" + "x".join(map(str, value.stride()))
        return f"{value.dtype.name[0]}{'x'.join(map(str, value.shape))}{strided}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_describe, value)) + "]"
    return str(value)


def map_tensors(value: object, change: Callable[[Tensor], object]) -> object:
    """`value` with `change` applied to the tensors in it."""
    if isinstance(value, Tensor):
        return change(value)
    return type(value)(map_tensors(item, change) for item in value) if isinstance(value, list | tuple) else value


_random = np.random.default_rng(0)


def real(*shape: int) -> Tensor:
    """Distinct values between -3 and 3, none near 0."""
    count = int(np.prod(shape))
    values = (np.arange(count) + _random.uniform(0.6, 0.9, count)) / max(count, 1) * 3
    values = _random.permutation(values) * _random.choice([-1.0, 1.0], count)
    return rl.from_numpy(values.reshape(shape).copy())


def positive(*shape: int) -> Tensor:
    """Values between 0.5 and 2.5."""
    return rl.from_numpy(_random.uniform(0.5, 2.5, shape))


def integers(high: int, *shape: int, low: int = 0) -> Tensor:
    """int64 values in [low, high)."""
    return rl.from_numpy(_random.integers(low, high, shape))


def index(*values: int) -> Tensor:
    """An int64 vector."""
    return rl.from_numpy(np.array(values, np.int64))


def mask(*shape: int) -> Tensor:
    """Booleans, half of them true."""
    flat = np.arange(int(np.prod(shape))) % 2 == 0
    return rl.from_numpy(_random.permutation(flat).reshape(shape))


def _layouts(make: Callable[..., Tensor], *shape: int) -> list[Tensor]:
    """A tensor in several layouts: row-major, permuted, with gaps, expanded."""
    backwards = make(*shape[::-1]).permute(list(range(len(shape)))[::-1])
    gaps = make(*shape[:-1], 2 * shape[-1])[..., ::2]
    return [make(*shape), backwards, gaps, make(*shape[:-1], 1).expand(shape)]


def channels_last(tensor: Tensor) -> Tensor:
    """The same values with the channels innermost."""
    return tensor.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


_BUILDERS: list[Callable[[], Iterator[tuple]]] = []


def group(function: Callable[[], Iterator[tuple]]) -> Callable:
    """Add the calls that `function` yields: (operator, arguments..., keyword arguments)."""
    _BUILDERS.append(function)
    return function


@group
def _views():
    x = real(3, 4, 2)
    for value in (x, x.permute(2, 0, 1)):
        for name in ("alias", "detach", "lift_fresh", "clone", "_to_copy"):
            yield name, value
        yield "expand", value.unsqueeze(0), (2, *value.shape)
        yield "permute", value, (1, -1, 0)
        yield "select.int", value, 1, -1
        yield "select.int", value, -1, 0
        for bounds in ((0, None, None, 1), (1, 1, 3, 1), (-1, 0, 9, 2), (1, -2, None, 3), (0, 2, 1, 1)):
            yield "slice.Tensor", value, *bounds
        yield "unsqueeze", value, -1
        yield "unsqueeze", value, 0
    yield "view", x, (4, -1)
    yield "view", real(1), ()
    yield "view", real(0, 3), (3, 0)
    for kind in (rl.int32, rl.float64, rl.uint8):
        yield "view.dtype", real(2, 4), kind
    yield "expand", real(1, 3), (2, -1, 3)
    yield "squeeze.dims", real(1, 3, 1), (0, 1)
    yield "squeeze.dims", real(1, 3, 1), (-1,)
    yield "as_strided", real(12), (3, 2), (4, 1), 1
    yield "as_strided", real(3, 4), (3, 3), (1, 2), 0
    yield "as_strided", real(4, 3).permute(1, 0), (2, 2), (3, 1)


@group
def _creation():
    yield "empty.memory_format", (2, 3)
    yield "empty_strided", (2, 3), (1, 2)
    yield "full", (2, 0), 1.5
    yield "full", (), 2
    yield "arange.start_step", 1, 9, 2
    yield "arange.start_step", 1.5, -3, -0.5
    yield "randperm", 5
    yield "_local_scalar_dense", real(1)
    yield "equal", real(2), real(2)


@group
def _writes():
    for target in (real(3, 4), real(4, 3).permute(1, 0)):
        yield "copy_", target, real(4)
        yield "fill_.Scalar", target, 2.5
        yield "uniform_", target
        yield "normal_", target
        yield "random_.from", target, 0, 10
        yield "bernoulli_.float", target, 0.3


SAME_KIND = """neg abs sign exp expm1 reciprocal sin cos tanh erf sigmoid floor ceil round trunc relu silu logical_not
isnan isinf gelu""".split()


@group
def _unary():
    for value in (*_layouts(real, 3, 4), real(), real(0, 2)):
        for name in SAME_KIND:
            yield name, value
        yield "gelu", value, {"approximate": "tanh"}
        yield "threshold_backward", value, value, 0.5
        yield "gelu_backward", value, value
        yield "gelu_backward", value, value, {"approximate": "tanh"}
    for value in (*_layouts(positive, 3, 4), positive()):
        for name in ("log", "log1p", "log2", "sqrt", "rsqrt"):
            yield name, value
    for value in (integers(9, 2, 3), mask(3)):
        yield "bitwise_not", value
        for name in ("exp", "logical_not", "sigmoid"):
            yield name, value


BINARY = """add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum remainder.Tensor fmod.Tensor""".split()
COMPARISONS = """eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or
logical_xor""".split()


@group
def _binary():
    pairs = [(real(3, 4), real(4)), (real(3, 1), real(4)), (real(), real(2)), (real(2, 3).permute(1, 0), real(3, 2))]
    pairs += [(real(2, 0), real(1)), (real(3, 4), 1.3), (real(3, 4)[:, ::2], real(3, 2))]
    for a, b in pairs:
        for name in (*BINARY, *COMPARISONS):
            yield name, a, b
        for mode in (None, "floor", "trunc"):
            yield "div.Tensor_mode", a, b, {"rounding_mode": mode}
        yield "add.Tensor", a, b, {"alpha": 2}
        yield "sub.Tensor", a, b, {"alpha": 2.5}
        yield "where.self", a > 0, a, b
    for a, b in ((positive(3, 4), real(4)), (positive(3), positive())):
        yield "pow.Tensor_Tensor", a, b
        yield "pow.Scalar", 1.7, b
    for exponent in (0, 1, 2, 3, -1, 0.5, 2.5):
        yield "pow.Tensor_Scalar", positive(2, 3), exponent
    for name in ("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor"):
        yield name, integers(9, 3), integers(9, 2, 3)
        yield name, mask(3), mask(3)


@group
def _reductions():
    for value in (*_layouts(real, 3, 4), real(5)):
        for dims in ((0,), (-1,), None):
            for keepdim in (False, True):
                yield "sum.dim_IntList", value, dims, keepdim
                yield "var.correction", value, dims, {"correction": 1, "keepdim": keepdim}
                yield "amax", value, dims or (), keepdim
                yield "amin", value, dims or (), keepdim
                yield "any.dims", value, dims, keepdim
                yield "all.dims", value, dims, keepdim
                if dims:
                    yield "prod.dim_int", value, dims[0], keepdim
                yield "argmax", value, None if dims is None else dims[0], keepdim
                yield "argmin", value, None if dims is None else dims[0], keepdim
    for value in (real(), real(0, 3)):
        yield "sum.dim_IntList", value, None
        yield "prod.dim_int", value, 0
    yield "sum.dim_IntList", integers(9, 3, 2), (0,)


@group
def _sorting_and_softmax():
    for value in (*_layouts(real, 3, 5)[:3], real(4), real()):
        for dim in (0, -1):
            yield "cumsum", value, dim
            yield "sort.stable", value, {"stable": True, "dim": dim, "descending": False}
            yield "sort.stable", value, {"stable": True, "dim": dim, "descending": True}
            yield "topk", value, 1, dim
            yield "topk", value, min(2, *value.shape, 2) if value.dim() else 1, dim, False
            yield "_softmax", value, dim, False
            yield "_log_softmax", value, dim, False
            yield "_softmax_backward_data", value, real(*value.shape), dim, value.dtype
            yield "_log_softmax_backward_data", value, real(*value.shape), dim, value.dtype
    yield "_softmax", real(0, 3), 1, False
    yield "cumsum", real(0, 3), 1


def _convolutions() -> Iterator[tuple]:
    """Input, weight, bias and geometry."""
    for rank in (1, 2, 3):
        spatial = (5, 4, 3)[:rank]
        for step, pad, spread, groups in ((1, 0, 1, 1), (2, 1, 1, 2), (1, 1, 2, 1)):
            geometry = ((step,) * rank, (pad,) * rank, (spread,) * rank)
            kernel = (2,) * rank
            x = real(2, 4, *spatial)
            yield x, real(4, 4 // groups, *kernel), real(4), *geometry, False, (0,) * rank, groups
            yield x, real(4, 6 // groups, *kernel), real(6), *geometry, True, (int(step > 1),) * rank, groups
    plain = ((1, 1), (1, 1), (1, 1), False, (0, 0))
    yield real(2, 4, 5, 4), real(4, 1, 3, 3), None, *plain, 4
    yield channels_last(real(2, 4, 5, 4)), real(3, 4, 3, 3), real(3), *plain, 1
    yield real(2, 4, 5, 4), channels_last(real(3, 4, 3, 3)), None, *plain, 1
    yield real(0, 4, 5, 4), real(3, 4, 3, 3), real(3), *plain, 1


@group
def _products():
    yield "mm", real(3, 4), real(4, 2)
    yield "mm", real(4, 3).permute(1, 0), real(4, 2)
    yield "mm", real(0, 4), real(4, 2)
    yield "addmm", real(2), real(3, 4), real(4, 2)
    yield "addmm", real(3, 2), real(3, 4), real(4, 2), {"beta": 0.5, "alpha": 2}
    yield "bmm", real(2, 3, 4), real(2, 4, 2)
    for x, weight, bias, *geometry in _convolutions():
        yield "convolution", x, weight, bias, *geometry
        out = aten("convolution")(x, weight, bias, *geometry)
        sizes = None if bias is None else list(bias.shape)
        yield "convolution_backward", real(*out.shape), x, weight, sizes, *geometry, [True, True, True]
    yield "convolution_backward", real(*out.shape), x, weight, sizes, *geometry, [False, True, False]


@group
def _attention():
    shapes = (2, 2, 3, 4), (2, 2, 5, 4)
    calls = [((), {}), ((0.0, True), {})]
    calls += [((), {"attn_mask": real(3, 5), "scale": 0.7}), ((), {"attn_mask": mask(3, 5)})]
    for tail, options in calls:
        inputs = real(*shapes[0]), real(*shapes[1]), real(*shapes[1])
        yield "_scaled_dot_product_flash_attention_for_cpu", *inputs, *tail, options
        out, sums = aten("_scaled_dot_product_flash_attention_for_cpu")(*inputs, *tail, **options)
        tail = tail or (0.0, False)
        name = "_scaled_dot_product_flash_attention_for_cpu_backward"
        yield name, real(*out.shape), *inputs, out, sums, *tail, options


@group
def _indexing():
    x, permuted = real(3, 4, 2), real(2, 4, 3).permute(2, 1, 0)
    yield "cat", [real(2, 3), real(1, 3)], 0
    yield "cat", [real(2, 3), real(2, 1), real(0)], -1
    yield "cat", [channels_last(real(1, 2, 3, 4)), channels_last(real(1, 2, 3, 4))], 1
    column = integers(3, 2, 1)
    selections = (
        [index(2, 0, 2)], [None, index(-1, 0)], [index(0, 1), None, index(1, 1)], [column, integers(4, 3)],
        [None, column, integers(2, 3)], [column, None, integers(2, 3)], [index()],
    )  # fmt: skip
    for value in (x, permuted):
        for chosen in selections:
            yield "index.Tensor", value, chosen
            part = aten("index.Tensor")(value, chosen)
            yield "index_put", value, chosen, real(*part.shape), True
            yield "index_put_", real(*value.shape), chosen, real(*part.shape), True
        # Writing a position twice without accumulation has no derivative.
        yield "index_put", value, [index(2, 0)], real(4, 2)
        yield "index_put", value, [None, index(-1, 0)], real(3, 2, 2)
        yield "index_put_", real(3, 4, 2), [index(2, 0), index(1, 3)], real()
        yield "index_select", value, 1, index(3, 0, 3)
        yield "gather", value, 1, integers(4, 3, 2, 2)
        yield "scatter_add", value, 1, integers(4, 2, 5, 2), real(3, 5, 2)
        places = rl.from_numpy(np.argsort(_random.random((2, 4, 2)), axis=1)[:, :3])
        yield "scatter.src", value, 1, places, real(3, 3, 2)
        yield "scatter.src", value, 1, places, real(2, 3, 2)
        yield "scatter_add", value, 0, integers(3, 2, 4, 2), real(2, 4, 2)
    for selected in ([mask(3)], [None, mask(4)], [mask(3, 4)]):
        yield "index.Tensor", x, selected, "data"
    yield "nonzero", mask(3, 4), "data"
    yield "index_select", real(), 0, index(0)
    yield "gather", real(), 0, index(0, 0)
    yield "gather", real(3), 0, rl.from_numpy(np.array(1))


@group
def _embedding_and_padding():
    words = integers(5, 2, 3)
    for tail in ((), (1,), (2, True)):
        yield "embedding", real(5, 4), words, *tail
    yield "embedding", real(4, 5).permute(1, 0), index()
    for padding, by_frequency in ((-1, False), (1, False), (-1, True)):
        yield "embedding_dense_backward", real(2, 3, 4), words, 5, padding, by_frequency
    for pad in ((1, 2), (0, 0, -1, 1), (-1, -1), (1, 0, 0, 2, 1, 1)):
        for value in (real(2, 3, 4), real(4, 3, 2).permute(2, 1, 0)):
            yield "constant_pad_nd", value, pad, 0.5
    yield "constant_pad_nd", channels_last(real(1, 2, 3, 4)), (1, 1), 0


def _norm_arguments(rank: int) -> Iterator[tuple]:
    shape = (2, 3, 4, 2)[:rank]
    values = [real(*shape)]
    if rank == 4:
        values.append(channels_last(real(*shape)))
    for value in values:
        for weight, bias in ((None, None), (positive(3), real(3))):
            for training in (True, False):
                yield value, weight, bias, real(3), positive(3), training


@group
def _normalisation():
    for value, normalized in ((real(3, 4), (4,)), (real(2, 3, 4), (3, 4)), (real(4, 3).permute(1, 0), (4,))):
        for weight, bias in ((None, None), (real(*normalized), real(*normalized))):
            yield "native_layer_norm", value, normalized, weight, bias, 1e-5
            _, mean, rstd = aten("native_layer_norm")(value, normalized, weight, bias, 1e-5)
            wanted = [True, weight is not None, bias is not None]
            yield "native_layer_norm_backward", real(*value.shape), value, normalized, mean, rstd, weight, bias, wanted
    for rank in (2, 3, 4):
        for value, weight, bias, mean, variance, training in _norm_arguments(rank):
            yield "native_batch_norm", value, weight, bias, mean, variance, training, 0.1, 1e-5
            if not training:
                yield "_native_batch_norm_legit_no_training", value, weight, bias, mean, variance, 0.1, 1e-5
            saved = aten("native_batch_norm")(value, weight, bias, None, None, True, 0.1, 1e-5)[1:]
            wanted = [True, weight is not None, bias is not None]
            tail = (*saved, training, 1e-5, wanted)
            yield "native_batch_norm_backward", real(*value.shape), value, weight, mean, variance, *tail
    for training in (True, False):
        yield "native_dropout", real(3, 4), 0.4, training


@group
def _pooling_and_losses():
    for value in (real(2, 2, 5, 6), channels_last(real(2, 2, 5, 6)), real(2, 5, 6)):
        for kernel, stride, pad, spread, ceil in (((2,), (), (0,), 1, False), ((3, 2), (2, 1), (1, 1), 1, True)):
            geometry = (kernel, stride, pad)
            yield "max_pool2d_with_indices", value, *geometry, spread, ceil
            out, where = aten("max_pool2d_with_indices")(value, *geometry, spread, ceil)
            yield "max_pool2d_with_indices_backward", real(*out.shape), value, *geometry, spread, ceil, where
            for tail in ((True, None), (False, None), (True, 3)):
                yield "avg_pool2d", value, *geometry, ceil, *tail
                yield "avg_pool2d_backward", real(*out.shape), value, *geometry, ceil, *tail
        for output_size in ((3, 4), (7, 2), (1, 3)):
            yield "_adaptive_avg_pool2d", value, output_size
            yield "adaptive_max_pool2d", value, output_size
            out, where = aten("adaptive_max_pool2d")(value, output_size)
            yield "_adaptive_avg_pool2d_backward", real(*out.shape), value
            yield "adaptive_max_pool2d_backward", real(*out.shape), value, where
    for reduction in (0, 1, 2):
        for weight in (None, positive(4)):
            labels = rl.from_numpy(np.array([1, 3, -100]))
            arguments = (labels, weight, reduction, -100)
            yield "nll_loss_forward", real(3, 4), *arguments
            out, total = aten("nll_loss_forward")(real(3, 4), *arguments)
            yield "nll_loss_backward", real(*out.shape), real(3, 4), *arguments, total


def samples() -> list[Sample]:
    """All sample calls: those of the groups here, and of the sibling modules `samples_*`."""
    for path in sorted(Path(__file__).parent.glob("samples_*.py")):
        import_module(f"tests.ops.{path.stem}")
    made = []
    for build in _BUILDERS:
        for name, *args in build():
            data_dependent = args[-1:] == ["data"]
            if data_dependent:
                args.pop()
            kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
            made.append(Sample(aten(name), tuple(args), kwargs, data_dependent))
    return made


def primitives_without_samples() -> set[str]:
    """Names of primitives without a sample."""
    return {str(op) for op in PRIMITIVES} - {str(sample.op) for sample in samples()}
