"""Linear maps: linear, bilinear, one_hot."""

from __future__ import annotations

import math

from rushlight.core.dtype import int64
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor_impl import DataDependentShapeError
from rushlight.ops.composite.network.common import arange, aten, checked_later, values_of
from rushlight.ops.registry import composite


@composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
def linear(input, weight, bias=None):
    """Compute (..., in) times the transpose of (out, in), plus (out,): one matrix product over all leading dimensions."""
    if weight.dim() == 1:
        product = input.matmul(weight)
        if bias is not None and broadcast_shapes(product.shape, bias.shape) != product.shape:
            raise RuntimeError(f"linear: a bias of shape {list(bias.shape)} does not fit an output of {list(product.shape)}")
        return product if bias is None else product + bias
    sizes = input._impl.sizes
    transposed = aten.permute.default(weight, [1, 0])
    if len(sizes) == 2:
        return _product(input, transposed, bias)
    if not sizes:
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are 0D and 2D")
    flatten = aten.view.default if input.is_contiguous() else aten.reshape.default
    rows = flatten(input, [math.prod(sizes[:-1]), sizes[-1]])
    return aten.view.default(_product(rows, transposed, bias), [*sizes[:-1], weight._impl.sizes[0]])


def _product(rows, transposed, bias):
    return aten.mm.default(rows, transposed) if bias is None else aten.addmm.default(bias, rows, transposed)


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
def bilinear(input1, input2, weight, bias=None):
    """Compute output[..., k] = input1[..., :] @ weight[k] @ input2[..., :] + bias[k]."""
    _check_bilinear(input1, input2, weight, bias)
    out, first, second = weight.shape
    left = input1.reshape([-1, first]).mm(weight.permute([1, 0, 2]).reshape([first, out * second]))
    right = input2.reshape([-1, 1, second])
    products = left.view([-1, out, second]) * right
    result = products.sum([-1], dtype=products.dtype).view([*input1.shape[:-1], out])
    return result if bias is None else result + bias


def _check_bilinear(input1, input2, weight, bias) -> None:
    if input1.dim() != input2.dim() or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match: "
            f"got input1 of shape {list(input1.shape)} and input2 of shape {list(input2.shape)}"
        )
    if not input1.dim() or weight.dim() != 3:
        raise RuntimeError(
            "bilinear(): expected inputs of at least one dimension and a weight of three, "
            f"but got {list(input1.shape)} and {list(weight.shape)}"
        )
    for index, given in ((1, input1), (2, input2)):
        if given.shape[-1] != weight.shape[index]:
            raise RuntimeError(
                f"bilinear(): input{index} size does not match weight size: "
                f"got {given.shape[-1]} but expected {weight.shape[index]}"
            )
    if bias is not None and bias.size(0) != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected {weight.shape[0]}"
        )


@composite("one_hot(Tensor self, int num_classes=-1) -> Tensor")
def one_hot(self, num_classes=-1):
    """Convert int64 class numbers (...) to (..., num_classes) with a 1 at each; -1 counts the classes."""
    if self.dtype is not int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, but got {self.dtype}.")
    if self.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes == 0 or num_classes < -1:
        raise RuntimeError("num_classes should be positive")
    values = values_of(self)
    if values is not None and values.size:
        if values.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(values.max()) + 1
        if values.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    elif num_classes == -1 and (self._impl.fake or not self.is_cuda):
        raise DataDependentShapeError("one_hot without num_classes")
    elif num_classes == -1:  # the host waits for a GPU
        num_classes = int(self.max().item()) + 1
    self = checked_later(self, lambda x: x >= 0, RuntimeError, "Class values must be non-negative.")
    self = checked_later(self, lambda x: x < num_classes, RuntimeError, "Class values must be smaller than num_classes.")
    return (self.contiguous().unsqueeze(-1) == arange(self, num_classes)).to(int64)
