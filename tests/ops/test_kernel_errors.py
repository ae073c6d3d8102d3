"""Bad calls raise PyTorch's exception types, on the CPU and, where no values are needed, on meta tensors alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

import rushlight as rl
from rushlight.ops.registry import aten
from tests.ops.samples import Sample, index, integers, mask, real
from tests.ops.test_meta_agrees import to_meta
from tests.ops.torch_oracle import to_torch, torch_operator


@dataclass(frozen=True)
class Bad:
    """A call that must fail. `values`: whether it takes values to see that it is wrong."""

    name: str
    args: tuple
    error: type[Exception]
    text: str
    values: bool = False

    def __str__(self) -> str:
        return f"{self.name}-{self.text[:30]}"

    @property
    def sample(self) -> Sample:
        """The call."""
        return Sample(aten(self.name), self.args)


PLAIN = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
IMAGE, KERNEL = real(1, 2, 4, 4), real(3, 2, 3, 3)
BAD = [
    Bad("_softmax", (real(2), 2, False), IndexError, "Dimension out of range"),
    Bad("_softmax", (integers(3, 2), 0, False), NotImplementedError, "not implemented for 'Long'"),
    Bad("_softmax", (real(2), 0, True), RuntimeError, "half to float"),
    Bad("topk", (real(3), 4), RuntimeError, "selected index k out of range"),
    Bad("topk", (mask(3), 1), RuntimeError, "does not support bool"),
    Bad("cumsum", (real(3), 1), IndexError, "Dimension out of range"),
    Bad("cat", ([real(2, 3), real(2, 4)],), RuntimeError, "Expected size 3 but got size 4 for tensor number 1"),
    Bad("cat", ([real(2), real(2, 1)],), RuntimeError, "same number of dimensions: got 1 and 2"),
    Bad("cat", ([real(2), real()],), RuntimeError, r"zero-dimensional tensor \(at position 1\)"),
    Bad("cat", ([],), ValueError, "non-empty list of Tensors", True),
    Bad("index.Tensor", (real(3), [index(5)]), IndexError, "index 5 is out of bounds for dimension 0 with", True),
    Bad("index.Tensor", (real(3), [index(-4)]), IndexError, "index -4 is out of bounds for dimension 0", True),
    Bad("index.Tensor", (real(3), [real(1)]), IndexError, "must be long, int, byte or bool"),
    Bad("index.Tensor", (real(3), [index(0), index(0)]), IndexError, "too many indices for tensor of dimension 1"),
    Bad("index.Tensor", (real(3, 3), [index(0, 1), index(0, 1, 2)]), IndexError, r"shapes \[2\], \[3\]"),
    Bad("index.Tensor", (real(3), [mask(4)]), IndexError, r"shape of the mask \[4\] at index 0", False),
    Bad("index_put", (real(3), [index(0, 1)], real(3)), RuntimeError, r"tensor of shape \[3\] cannot be broadcast"),
    Bad("index_put", (real(3), [index(0)], index(1)), RuntimeError, "source and destination dtypes match"),
    Bad("index_select", (real(3), 0, index(3)), IndexError, "index out of range in self", True),
    Bad("index_select", (real(3), 0, real(1)), RuntimeError, "int32"),
    Bad("index_select", (real(3), 0, integers(1, 1, 1)), IndexError, "supposed to be a vector"),
    Bad("gather", (real(3), 0, index(3)), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3", True),
    Bad("gather", (real(2, 3), 0, index(0)), RuntimeError, "same number of dimensions"),
    Bad("gather", (real(2, 3), 0, integers(1, 1, 4)), RuntimeError, "Size does not match at dimension 1"),
    Bad("scatter.src", (real(3), 0, index(3), real(1)), RuntimeError, "index 3 is out of bounds", True),
    Bad("scatter.src", (real(3), 0, index(0, 1), real(1)), RuntimeError, r"Expected index \[2\] to be no larger"),
    Bad("scatter_add", (real(3), 0, index(0), index(1)), RuntimeError, "self.dtype to be equal to src.dtype"),
    Bad("embedding", (real(3, 2), index(3)), IndexError, "index out of range in self", True),
    Bad("embedding", (real(3, 2), real(1)), RuntimeError, "scalar types: Long, Int"),
    Bad("embedding", (real(3), index(0)), RuntimeError, "must be 2-D"),
    Bad("constant_pad_nd", (real(3), (1,)), RuntimeError, "must be even"),
    Bad("constant_pad_nd", (real(3), (1, 1, 1, 1)), RuntimeError, "no more than twice the number of dimensions"),
    Bad("constant_pad_nd", (real(3), (-2, -2)), RuntimeError, "negative output size"),
    Bad("convolution", (real(1, 3, 4, 4), KERNEL, None, *PLAIN), RuntimeError, "to have 2 channels, but got 3"),
    Bad("convolution", (real(1, 2, 2, 2), KERNEL, None, *PLAIN), RuntimeError, "can't be greater than actual input"),
    Bad("convolution", (real(2, 4, 4), KERNEL, None, *PLAIN), RuntimeError, "Expected 4-dimensional input"),
    Bad("convolution", (IMAGE, KERNEL, real(2), *PLAIN), RuntimeError, "expected bias to be 1-dimensional with 3"),
    Bad("convolution", (IMAGE, KERNEL.to(rl.float32), None, *PLAIN), RuntimeError, "should be the same"),
    Bad("convolution", (IMAGE, KERNEL, None, (0, 1), *PLAIN[1:]), RuntimeError, "non-positive stride"),
    Bad("convolution", (IMAGE, KERNEL, None, (1, 1), (-1, 0), *PLAIN[2:]), RuntimeError, "negative padding"),
    Bad("max_pool2d_with_indices", (real(4, 4), (2,)), RuntimeError, "3D or 4D"),
    Bad("max_pool2d_with_indices", (IMAGE, (5,)), RuntimeError, "Output size is too small"),
    Bad("max_pool2d_with_indices", (IMAGE, (2,), (1,), (2,)), RuntimeError, "at most half of effective kernel size"),
    Bad("avg_pool2d", (IMAGE, (2,), (1,), (0,), False, True, 0), RuntimeError, "divisor must be not zero"),
    Bad("_adaptive_avg_pool2d", (IMAGE, (2, -1)), RuntimeError, "greater than or equal to 0"),
    Bad("adaptive_max_pool2d", (real(4, 4), (2, 2)), RuntimeError, "Expected 3D or 4D tensor"),
    Bad("_adaptive_avg_pool2d_backward", (real(2, 2), IMAGE), RuntimeError, "expected grad_output of torch.float64"),
    Bad("adaptive_max_pool2d_backward", (IMAGE, IMAGE, IMAGE), RuntimeError, "expected indices of torch.int64"),
    Bad("native_layer_norm", (real(2, 3), (4,), None, None, 1e-5), RuntimeError, r"input with shape \[\*, 4\]"),
    Bad("native_layer_norm", (real(2, 3), (), None, None, 1e-5), RuntimeError, "at least 1-dimensional"),
    Bad("native_layer_norm", (real(2, 3), (3,), real(2), None, 1e-5), RuntimeError, "same shape as normalized_shape"),
    Bad("native_batch_norm", (IMAGE, None, None, real(2), None, True, 0.1, 1e-5), ValueError, "both be None"),
    Bad("native_dropout", (real(2), 1.5, True), RuntimeError, "between 0 and 1|expects p to be"),
    Bad("nll_loss_forward", (real(2, 3), index(0, 3), None, 1, -100), IndexError, "Target 3 is out of bounds", True),
    Bad("nll_loss_forward", (real(2, 3), index(0), None, 1, -100), RuntimeError, "size mismatch"),
    Bad("nll_loss_forward", (real(2, 3), real(2), None, 1, -100), RuntimeError, "Long or Byte"),
    Bad("nll_loss_forward", (real(2, 3), index(0, 1), real(2), 1, -100), RuntimeError, "all 3 classes or no classes"),
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_error_names_what_is_wrong(bad: Bad):
    with pytest.raises(bad.error, match=bad.text):
        bad.sample.call()
    if not bad.values:
        with pytest.raises(bad.error, match=bad.text):
            bad.sample.mapped(to_meta).call()


@pytest.mark.parametrize("role", range(1, 5))
def test_batch_norm_wants_one_parameter_per_channel(role: int):
    arguments = [IMAGE, real(2), real(2), real(2), real(2)]
    arguments[role] = real(3)
    with pytest.raises(RuntimeError, match="should contain 2 elements not 3"):
        aten("native_batch_norm")(*arguments, True, 0.1, 1e-5)


def test_batch_norm_wants_running_statistics_of_one_dimension():
    arguments = [IMAGE, real(2), real(2), real(2, 1), real(2)]
    with pytest.raises(RuntimeError, match="expected running_mean of 1 dimension"):
        aten("native_batch_norm")(*arguments, False, 0.1, 1e-5)


def test_ends_of_integer_grids_must_fit():
    for start, end, steps in ((0, math.inf, 3), (math.nan, 2, 2), (0, 400, 4), (5, 5, 1)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
            rl.logspace(start, end, steps, dtype=rl.int8)


@pytest.mark.oracle
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_torch_raises_the_same_kind(bad: Bad):
    torch = pytest.importorskip("torch")
    with pytest.raises(bad.error):
        torch_operator(torch, bad.sample.op)(*to_torch(torch, bad.args))
