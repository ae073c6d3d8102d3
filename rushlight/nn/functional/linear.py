"""Linear maps and embeddings."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten
from rushlight.ops.composite.network.common import values_of
from rushlight.ops.out import finish


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """(..., in) @ (out, in)^T + (out,). RuntimeError when the sizes do not fit.

    Args:
        input (Tensor): the input.
        weight (Tensor): the weights.
        bias (Tensor | None): the bias, if given.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.linear(torch.ones(1, 2), torch.tensor([[1.0, 2.0]]))
        tensor([[3.]])
    """
    result = aten.linear(input, weight, bias)
    return finish("linear", out, result, input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """output[..., k] = input1 @ weight[k] @ input2 + bias[k], for a weight (out, in1, in2).

    Args:
        input1 (Tensor): the first operand.
        input2 (Tensor): the second operand.
        weight (Tensor): the weights.
        bias (Tensor | None): the bias, if given.

    Example:
        >>> F.bilinear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2))
        tensor([[4.]])
    """
    return aten.bilinear(input1, input2, weight, bias)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 class numbers (...) to int64 (..., num_classes); -1 counts the classes.

    Args:
        tensor (Tensor): the class numbers.
        num_classes (int): the number of classes; -1 for the largest label plus one.

    Example:
        >>> F.one_hot(torch.tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    return aten.one_hot(tensor, num_classes)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` (rows, features) at the indices (...), as (..., features).

    The row `padding_idx` gets no gradient. With `max_norm`, indexed rows of a larger `norm_type`-norm are first scaled down in
    place. With `sparse`, the gradient is a sparse tensor.

    Args:
        input (Tensor): the input.
        weight (Tensor): the table of rows.
        padding_idx (int | None): the index whose row gets no gradient.
        max_norm (float | None): rows with a larger norm are first scaled down to it.
        norm_type (float): the exponent of the norm.
        scale_grad_by_freq (bool): whether to divide the gradient of a row by the number of times that its index occurs.
        sparse (bool): whether the gradient is sparse.

    Example:
        >>> F.embedding(torch.tensor([1]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.]])
    """
    padding_idx = _row_number(padding_idx, weight)
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return aten.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _row_number(padding_idx: int | None, weight: Tensor) -> int:
    if padding_idx is None:
        return -1
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def _limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        flat = indices.reshape([-1])
        rows = weight.index_select(0, flat)
        norms = rows.norm(norm_type, [1], True)
        scale = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1.0)
        aten.index_put_.default(weight.detach(), [flat], rows * scale)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows in each bag: (bags, features).

    A 2-D input has a bag per row; a 1-D input has bags that start at `offsets`. Entries equal to `padding_idx` are skipped.

    Args:
        input (Tensor): the input.
        weight (Tensor): the table of rows.
        offsets (Tensor | None): where each bag begins.
        max_norm (float | None): rows with a larger norm are first scaled down to it.
        norm_type (float): the exponent of the norm.
        scale_grad_by_freq (bool): whether to divide the gradient of a row by the number of times that its index occurs.
        mode (str): "sum", "mean" or "max".
        sparse (bool): whether the gradient is sparse.
        per_sample_weights (Tensor | None): a weight per index.
        include_last_offset (bool): whether the last offset is the number of indices.
        padding_idx (int | None): the index whose row gets no gradient and does not count.

    Example:
        >>> F.embedding_bag(torch.tensor([[0, 1]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.]])
    """
    _check_bags(input, offsets, mode, per_sample_weights)
    options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if input.dim() == 2:
        counted = None if padding_idx is None else (input != padding_idx % weight.shape[0]).unsqueeze(2)
        return _bags_of_one_size(embedding(input, weight, *options), counted, mode, per_sample_weights)
    bags, count = _bag_numbers(input, offsets, include_last_offset)
    flat = input.reshape([-1])
    rows = embedding(flat, weight, *options)
    if padding_idx is None:
        counted = rows.detach().new_ones([flat.shape[0], 1])
    else:
        counted = (flat != padding_idx % weight.shape[0]).to(rows.dtype).unsqueeze(1)
    spread = bags.unsqueeze(1).expand(rows.shape)
    if mode == "max":
        return _bag_maximum(rows, counted, spread, count)
    if per_sample_weights is not None:
        counted = counted * per_sample_weights.reshape([-1, 1])
    total = rows.new_zeros([count, weight.shape[1]]).scatter_add(0, spread, rows * counted)
    if mode == "sum":
        return total
    sizes = rows.detach().new_zeros([count, 1]).scatter_add(0, bags.unsqueeze(1), counted)
    return total / sizes.clamp(min=1)


def _bags_of_one_size(rows: Tensor, counted: Tensor | None, mode: str, per_sample_weights: Tensor | None) -> Tensor:
    """Return `embedding_bag` of rows (bags, size, features); `counted`, (bags, size, 1), masks the rows that count."""
    size = rows.shape[1]
    if mode == "max" and size > 0:
        lowest = float("-inf")
        if counted is None:
            return rows.max(1)[0]
        largest = rows.masked_fill(counted.logical_not(), lowest).max(1)[0]
        return largest.masked_fill(largest.detach() == lowest, 0.0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(2)
    if counted is None:
        return rows.sum(1) / max(size, 1) if mode == "mean" else rows.sum(1)
    counted = counted.to(rows.dtype)
    total = (rows * counted).sum(1)
    return total / counted.sum(1).clamp(min=1) if mode == "mean" else total


def _bag_maximum(rows: Tensor, counted: Tensor, spread: Tensor, count: int) -> Tensor:
    lowest = float("-inf")
    start = rows.detach().new_full([count, rows.shape[1]], lowest)
    largest = start.scatter_reduce(0, spread, rows.masked_fill(counted == 0, lowest), "amax")
    return largest.masked_fill(largest.detach() == lowest, 0.0)


def _bag_numbers(input: Tensor, offsets: Tensor, include_last_offset: bool) -> tuple[Tensor, int]:
    """Return the bag of each index, and the number of bags."""
    _check_offsets(offsets, input.numel())
    position = aten.arange.start_step(0, input.numel(), 1, device=input.device)
    count = offsets.shape[0] - int(include_last_offset)
    return aten.searchsorted.Tensor(offsets[:count].to(position.dtype), position, right=True) - 1, count


def _check_offsets(offsets: Tensor, length: int) -> None:
    """Raise RuntimeError if the offsets' values are known and do not start at 0, decrease, or exceed the input."""
    values = values_of(offsets)
    if values is None or not values.size:
        return
    starts = values.tolist()
    if starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
            f"{starts[0]}"
        )
    if starts[-1] > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {starts[-1]}"
        )
    if any(after < before for before, after in zip(starts, starts[1:], strict=False)):
        raise RuntimeError(f"offsets have to be in ascending order, but got {starts}")


def _check_bags(input: Tensor, offsets: Tensor | None, mode: str, per_sample_weights: Tensor | None) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        raise ValueError("offsets has to be a 1D Tensor when the input is 1D")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"per_sample_weights is supported for mode='sum' only, got mode='{mode}'")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"per_sample_weights has shape {list(per_sample_weights.shape)}; expected {list(input.shape)}, as input"
        )
