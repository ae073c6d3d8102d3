"""Rules for embeddings with quantized tables."""

from __future__ import annotations

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.quantized.captures.tensors import derived_from, own, rule
from rushlight.quantized.linear import unwrapped
from rushlight.quantized.packed import EmbeddingPackedParams
from rushlight.quantized.registration import aten


def _rows_of(packed: EmbeddingPackedParams, indices: Tensor) -> Tensor:
    """Return the dequantized rows of a table at indices."""
    found = aten.embedding(derived_from(packed, "numbers"), indices)
    rows = aten.embedding(derived_from(packed, "table"), indices).to(float32)
    return own.rounded_mul(rows, found[..., :1]) + found[..., 1:]


def _define_tables(bits: str) -> None:
    @rule(f"quantized::embedding_{bits}")
    def embedding(weight, indices, pruned_weights=False):
        return _rows_of(unwrapped(weight, EmbeddingPackedParams, f"embedding_{bits}"), indices)

    @rule(f"quantized::embedding_bag_{bits}")
    def bag(
        weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
        compressed_indices_mapping=None, include_last_offset=False,
    ):  # fmt: skip
        if pruned_weights or compressed_indices_mapping is not None or mode != 0 or indices.dim() != 2:
            raise NotImplementedError(f"quantized::embedding_bag_{bits} of bags that are not rows of indices")
        rows = _rows_of(unwrapped(weight, EmbeddingPackedParams, f"embedding_bag_{bits}"), indices)
        return (rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)).sum(1)


for _bits in ("byte", "4bit"):
    _define_tables(_bits)
