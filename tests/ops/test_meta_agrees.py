"""The Meta kernel of every primitive gives the sizes, strides and dtypes that the CPU kernel gives."""

from __future__ import annotations

import pytest

import rushlight as rl
from rushlight.core.device import META
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import empty_meta_impl
from tests.ops.samples import Sample, primitives_without_samples, samples

WITHOUT_TENSORS = ("empty", "full", "arange", "randperm", "_philox_seed")
READS_VALUES = ("_local_scalar_dense", "equal", "nonzero")


def to_meta(tensor: Tensor) -> Tensor:
    """A meta tensor of the same sizes, strides and offset over a storage of the same size."""
    impl = tensor._impl
    made = empty_meta_impl(impl.sizes, impl.dtype, META, impl.strides)
    made.storage.nbytes = impl.storage.nbytes
    made.storage_offset = impl.storage_offset
    return wrap(made)


def geometry(result: object) -> list:
    """Sizes, strides, offset and dtype of each result."""
    results = result if isinstance(result, tuple | list) else (result,)
    return [
        (tuple(r.shape), r.stride(), r.storage_offset(), r.dtype) if isinstance(r, Tensor) else r for r in results
    ]


SAMPLES = samples()


def on_meta(sample: Sample) -> object:
    """The result of the sample's call with meta tensors."""
    moved = sample.mapped(to_meta)
    if any(sample.op._schema.name.startswith(name) for name in WITHOUT_TENSORS):
        return moved.op(*moved.args, **moved.kwargs, device="meta")
    return moved.call()


def test_every_primitive_has_a_sample():
    assert primitives_without_samples() == set()


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_meta_gives_the_geometry_of_cpu(sample: Sample):
    if sample.data_dependent:
        with pytest.raises(NotImplementedError, match="depends on the values"):
            on_meta(sample)
        sample.call()
        return
    if sample.op._schema.name in READS_VALUES:
        with pytest.raises(RuntimeError):
            on_meta(sample)
        return
    assert geometry(on_meta(sample)) == geometry(sample.call())


@pytest.mark.parametrize("size, stride", [((9, 7, 1), (14, 2, 2)), ((3,), (0,)), ((2, 0), (5, 1)), ((2, 3), (1, 2)), ((), ())])
def test_storages_of_strided_tensors_have_the_size_that_memory_has(size, stride):
    made = [rl.empty_strided(size, stride, device=device).untyped_storage().nbytes() for device in ("meta", "cpu")]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x + 2**70, "int too big"), (lambda x: x == 2**64 + 1, "int too big"), (lambda x: x % -(2**70), "int too big"),
        (lambda x: x**-1, "negative integer powers"), (lambda x: rl.add(x, x, alpha=0.5), "must not be a floating point"),
        (lambda x: rl.add(x.to(rl.int8), x.to(rl.int8), alpha=300), "without overflow"),
        (lambda x: x.to(rl.uint8).fill_(300), "without overflow"), (lambda x: -(x > 0), "Negation"),
        (lambda x: rl.relu(x > 0), "Boolean inputs"), (lambda x: x.float().uniform_(3, -1), "from=3 > to=-1"),
        (lambda x: x.float().normal_(0, -1), "std >= 0.0"), (lambda x: x.float().exponential_(0), "lambda > 0.0"),
        (lambda x: rl.nn.functional.gelu(x.float(), approximate="other"), "either none or tanh"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["memory", "meta", "compiled"])
def test_numbers_are_refused_in_every_form(call, message, form):
    x = rl.ones(2, dtype=rl.int64, device="meta" if form == "meta" else "cpu")
    with pytest.raises((RuntimeError, OverflowError), match=message):
        (rl.compile(call) if form == "compiled" else call)(x)
