"""Embeddings with a table quantized per row, to 8, 4 or 2 bits: rows are dequantized on look-up.

In: a packed table, indices, and for bags their offsets. Out: float32. A row's element is q * scale + bias, where the bias is
-zero point * scale.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.linear import unwrapped
from rushlight.quantized.packed import EmbeddingPackedParams
from rushlight.quantized.registration import ANY_BACKEND, CPU, operator

_CLASS = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"


def _rows(packed: EmbeddingPackedParams, indices: np.ndarray, name: str) -> np.ndarray:
    """Return the dequantized rows at indices."""
    table, numbers = packed.weight._impl.array, packed.numbers()
    check_range(indices, len(table), name)
    return table[indices].astype(np.float32) * numbers[indices, :1] + numbers[indices, 1:]


def check_range(indices: np.ndarray, rows: int, name: str) -> None:
    """Raise RuntimeError for an index of no row."""
    if indices.size and not (0 <= int(indices.min()) and int(indices.max()) < rows):
        raise RuntimeError(f"quantized::{name}: an index is out of range: the table has {rows} rows")


def check_indices(indices: Tensor, name: str) -> np.ndarray:
    """Return indices as an array. RuntimeError for another dtype."""
    if not indices.dtype.is_integral:
        raise RuntimeError(f"quantized::{name}: expected indices of dtype int32 or int64, got {indices.dtype}")
    return indices._impl.array


def check_only_sums(mode: int, is_pruned: bool, mapping: Tensor | None, name: str) -> None:
    """Raise RuntimeError for bags that are no sums, and for pruned tables."""
    if is_pruned or mapping is not None or mode != 0:
        raise RuntimeError(f"quantized::{name}: only sums of tables that were not pruned are supported")


def _define(bits: str) -> None:
    def embedding(weight, indices, pruned_weights=False):
        name = f"embedding_{bits}"
        packed = unwrapped(weight, EmbeddingPackedParams, name)
        return tensor_from_array(_rows(packed, check_indices(indices, name), name), float32)

    def bag(
        weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
        compressed_indices_mapping=None, include_last_offset=False,
    ):  # fmt: skip
        name = f"embedding_bag_{bits}"
        check_only_sums(mode, pruned_weights, compressed_indices_mapping, name)
        packed = unwrapped(weight, EmbeddingPackedParams, name)
        places = check_indices(indices, name)
        return sum_bags(_rows(packed, places, name), places, offsets, per_sample_weights, include_last_offset, name)

    operator(f"quantized::embedding_{bits}({_CLASS} weight, Tensor indices, bool pruned_weights=False) -> Tensor", keys=(CPU,))(
        embedding
    )
    operator(
        f"quantized::embedding_bag_{bits}({_CLASS} weight, Tensor indices, Tensor? offsets=None, "
        "bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, "
        "Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor",
        keys=(CPU,),
    )(bag)


def sum_bags(
    rows: np.ndarray, indices: np.ndarray, offsets: Tensor | None, weights: Tensor | None, has_last: bool, name: str
) -> Tensor:
    """Return the sums of the rows of each bag, those at `indices`: between offsets, or per row of 2-dimensional indices."""
    if weights is not None:
        rows *= weights.detach()._impl.array[..., None]
    if indices.ndim == 2:
        return tensor_from_array(rows.sum(1), float32)
    if indices.ndim != 1 or offsets is None:
        raise RuntimeError(f"quantized::{name}: indices of one dimension need offsets, and of two none")
    starts = np.asarray(offsets._impl.array, np.int64)
    edges = starts if has_last else np.append(starts, len(indices))
    if starts.ndim != 1 or not starts.size or starts[0] != 0 or np.any(np.diff(edges) < 0) or edges[-1] > len(indices):
        raise RuntimeError(f"quantized::{name}: offsets must begin with 0, grow, and stay within {len(indices)} indices")
    made = np.zeros((len(edges) - 1, rows.shape[1]), np.float32)
    np.add.at(made, np.repeat(np.arange(len(made)), np.diff(edges)), rows[: edges[-1]])
    return tensor_from_array(made, float32)


_define("byte")
_define("4bit")


@operator(f"quantized::embedding_bag_prepack(Tensor weight) -> {_CLASS} W_prepack")
def embedding_bag_prepack(weight):
    return EmbeddingPackedParams(weight)


@operator(f"quantized::embedding_bag_unpack({_CLASS} W_prepack) -> Tensor W_origin", keys=(ANY_BACKEND,))
def embedding_bag_unpack(W_prepack):
    return unwrapped(W_prepack, EmbeddingPackedParams, "embedding_bag_unpack").unpack()
