"""Embedding layers."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter


def _checked_padding(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


class _EmbeddingBase(Module):
    """The base of Embedding and EmbeddingBag: the weight, with zeros in its padding row."""

    def _make_weight(self, weight: Tensor | None, freeze: bool, device, dtype) -> None:
        shape = [self.num_embeddings, self.embedding_dim]
        if weight is None:
            self.weight = Parameter(new_tensor(shape, device, dtype), requires_grad=not freeze)
            self.reset_parameters()
            return
        if list(weight.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Reset to normal numbers, with zeros in the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_EmbeddingBase):
    """Maps indices (...) to rows of `weight` (num_embeddings, embedding_dim).

    Args:
        num_embeddings (int): the number of rows.
        embedding_dim (int): the features of a row.
        padding_idx (int | None): the index whose row gets no gradient.
        max_norm (float | None): rows with a larger norm are first scaled down to it.
        norm_type (float): the exponent of the norm.
        scale_grad_by_freq (bool): whether to divide the gradient of a row by the number of times that its index occurs.
        sparse (bool): whether the gradient is sparse.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Embedding(10, 3)(torch.tensor([1, 2])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _checked_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_weight(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse is not False else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return a layer with the given rows (num_embeddings, embedding_dim), which are not trained if `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(_EmbeddingBase):
    """The sum, mean or maximum of the rows in each bag of integers.

    Args:
        num_embeddings (int): the number of rows.
        embedding_dim (int): the features of a row.
        max_norm (float | None): rows with a larger norm are first scaled down to it.
        norm_type (float): the exponent of the norm.
        scale_grad_by_freq (bool): whether to divide the gradient of a row by the number of times that its index occurs.
        mode (str): "sum", "mean" or "max".
        sparse (bool): whether the gradient is sparse.
        include_last_offset (bool): whether the last offset is the number of indices.
        padding_idx (int | None): the index whose row gets no gradient and does not count.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.EmbeddingBag(10, 3)(torch.tensor([[1, 2]])).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _checked_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make_weight(_weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text + (f", padding_idx={self.padding_idx}" if self.padding_idx is not None else "")
