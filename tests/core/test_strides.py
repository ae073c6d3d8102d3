"""Size-and-stride algebra, against enumeration of elements and against NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight.core import strides as algebra

SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def offsets(sizes, strides):
    """The storage offset of each element, in row-major order."""
    return [sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, sizes))]


@st.composite
def geometries(draw):
    sizes = draw(SIZES)
    return sizes, tuple(draw(st.lists(st.integers(0, 8), min_size=len(sizes), max_size=len(sizes))))


@given(SIZES)
def test_contiguous_strides_are_numpys(sizes):
    strides = algebra.contiguous_strides(sizes)
    assert algebra.is_contiguous(sizes, strides)
    assert offsets(sizes, strides) == list(range(math.prod(sizes)))


@given(geometries())
def test_contiguity_is_what_enumeration_says(geometry):
    sizes, strides = geometry
    assert algebra.is_contiguous(sizes, strides) == (offsets(sizes, strides) == list(range(math.prod(sizes))))


@given(geometries())
def test_density_is_what_enumeration_says(geometry):
    sizes, strides = geometry
    dense = sorted(offsets(sizes, strides)) == list(range(math.prod(sizes)))
    assert algebra.is_non_overlapping_and_dense(sizes, strides) == dense


@given(geometries())
def test_overlap_is_never_missed(geometry):
    sizes, strides = geometry
    found = offsets(sizes, strides)
    overlaps = len(set(found)) < len(found)
    assert algebra.may_overlap(sizes, strides) >= overlaps
    assert algebra.has_internal_overlap(sizes, strides) <= overlaps


@given(geometries(), st.integers(0, 5))
def test_extent_reaches_the_last_element(geometry, offset):
    sizes, strides = geometry
    reached = offsets(sizes, strides)
    assert algebra.storage_extent(sizes, strides, offset) == offset + (max(reached) + 1 if reached else 0)


@st.composite
def views(draw):
    sizes, strides = draw(geometries())
    numel = math.prod(sizes)
    if numel == 0:
        return sizes, strides, draw(SIZES.filter(lambda target: 0 in target))
    target, rest = [], numel
    for factor in draw(st.lists(st.integers(1, 4), max_size=4)):
        if rest % factor == 0:
            target.append(factor)
            rest //= factor
    return sizes, strides, (*target, rest)


@settings(max_examples=500)
@given(views())
def test_views_read_the_same_elements(case):
    sizes, strides, target = case
    found = algebra.view_strides(sizes, strides, target)
    if found is not None:
        assert offsets(target, found) == offsets(sizes, strides)
    elif math.prod(sizes):
        # Every dimension of a dense row-major tensor can be viewed, so a copy is needed for others only.
        assert not algebra.is_contiguous(sizes, strides)


@given(st.lists(SIZES, min_size=1, max_size=3))
def test_broadcasting_is_numpys(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            algebra.broadcast_shapes(*shapes)
    else:
        assert algebra.broadcast_shapes(*shapes) == expected


def test_broadcast_errors_name_sizes_and_dimension():
    message = r"size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"
    with pytest.raises(RuntimeError, match=message):
        algebra.broadcast_shapes((2, 3), (2, 4))


@given(geometries(), st.lists(st.integers(1, 3), max_size=2))
def test_expand_reads_elements_repeatedly(geometry, leading):
    sizes, strides = geometry
    target = (*leading, *(3 if size == 1 else size for size in sizes))
    got = algebra.expand_strides(sizes, strides, target)
    source = np.array(offsets(sizes, strides), int).reshape(sizes)
    assert offsets(*got) == np.broadcast_to(source, target).ravel().tolist()
    assert algebra.expand_strides(sizes, strides, (-1,) * len(sizes)) == (sizes, strides)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ((3,), "number of sizes provided"),
        ((2, 4), r"expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 1"),
        ((-1, 2, 3), "isn't allowed in a leading, non-existing dimension 0"),
    ],
)
def test_expand_errors(target, message):
    with pytest.raises(RuntimeError, match=message):
        algebra.expand_strides((2, 3), (3, 1), target)


def test_one_size_is_inferred():
    assert algebra.infer_size((2, -1), 6) == (2, 3)
    assert algebra.infer_size((-1,), 0) == (0,)
    assert algebra.infer_size((), 1) == ()


@pytest.mark.parametrize(
    ("shape", "numel", "message"),
    [
        ((-1, -1), 4, "only one dimension can be inferred"),
        ((-2, 2), 4, "invalid shape dimension -2"),
        ((0, -1), 0, "is ambiguous"),
        ((3, -1), 4, r"shape '\[3, -1\]' is invalid for input of size 4"),
        ((3,), 4, r"shape '\[3\]' is invalid for input of size 4"),
    ],
)
def test_inference_errors(shape, numel, message):
    with pytest.raises(RuntimeError, match=message):
        algebra.infer_size(shape, numel)


def test_dimensions_wrap():
    assert [algebra.wrap_dim(dim, 3) for dim in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert algebra.wrap_dim(-1, 0) == 0
    with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\], but got 3"):
        algebra.wrap_dim(3, 3)
    with pytest.raises(RuntimeError, match="dim 2 appears multiple times"):
        algebra.wrap_dims((2, -1), 3)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_results_of_elementwise_operators_lie_as_in_torch(data):
    torch = pytest.importorskip("torch")
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple))
    operands = []
    for _ in range(data.draw(st.integers(1, 3))):
        order = data.draw(st.permutations(range(len(sizes))))
        kept = [data.draw(st.booleans()) for _ in sizes]
        shape = tuple(size if keep else 1 for size, keep in zip(sizes, kept, strict=True))
        strides = algebra.strides_in_order(shape, order)
        operands.append((shape, strides))
    tensors = [torch.empty_strided(shape, strides) for shape, strides in operands]
    function = {1: torch.neg, 2: torch.add, 3: torch.addcmul}[len(tensors)]
    expected = function(*tensors)
    result = algebra.broadcast_shapes(*[shape for shape, _ in operands])
    assert algebra.elementwise_strides(result, operands) == expected.stride()
