"""Embeddings and embedding bags with 8-bit or 4-bit tables, whose rows each have a scale and a floating zero point."""

from __future__ import annotations

from typing import Any, Optional

from rushlight.ao.nn.qat.modules import embedding_ops as trained
from rushlight.ao.nn.quantized.modules.utils import _hide_packed_params_repr, _quantize_weight
from rushlight.core.dtype import dtype, quint4x2, quint8
from rushlight.core.qscheme import per_channel_affine_float_qparams
from rushlight.core.tensor import Tensor
from rushlight.jit.decorators import export
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import _empty_per_channel_affine_quantized

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


def _empty_table(rows: int, columns: int, kind: dtype) -> Tensor:
    if kind not in (quint8, quint4x2):
        raise NotImplementedError(f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {kind}")
    return _empty_per_channel_affine_quantized(
        [rows, columns], scales=aten.ones.default([rows]), zero_points=aten.zeros.default([rows]), axis=0, dtype=kind
    )


class EmbeddingPackedParams(Module):
    """A table in the operators' packed form; states store "dtype", and "_packed_weight", the quantized table."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: dtype = quint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight(_empty_table(num_embeddings, embedding_dim, dtype))

    @export
    def set_weight(self, weight: Tensor) -> None:
        """Set the table."""
        self._packed_weight = quantized.embedding_bag_prepack(weight)

    @export
    def _weight(self):
        return quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        absent = [prefix + name for name in ("dtype", "_packed_weight") if prefix + name not in state_dict]
        if absent:
            missing_keys.extend(absent)
            return
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(Module):
    """Rows of a quantized table, float32, for indices. `_weight` is such a table (rows, columns), or None for an empty one.

    The other settings are those of `nn.Embedding`, and only matter in training.
    """

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        dtype: dtype = quint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: expected "
                f"{[num_embeddings, embedding_dim]}, got {list(_weight.shape)}"
            )
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self._packed_params.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        if self.dtype == quint4x2:
            return quantized.embedding_4bit(self._packed_params._packed_weight, indices)
        else:
            return quantized.embedding_byte(self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Tensor) -> None:
        """Set a quantized table."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """Return the table."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Embedding:
        """Create the layer from a float one with a qconfig, or from one trained with fake quantization."""
        table = quantized_table(cls, mod, nn.Embedding, trained.Embedding)
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=table, dtype=table.dtype)

    @classmethod
    def from_reference(cls, ref_embedding: Module) -> Embedding:
        """Create the layer from a reference module, which computes in floats with a quantized table."""
        table = ref_embedding.get_quantized_weight()
        return cls(ref_embedding.num_embeddings, ref_embedding.embedding_dim, _weight=table, dtype=table.dtype)


def quantized_table(cls: type, mod: Module, kind: type, trained_kind: type) -> Tensor:
    """Return a float layer's table as integers. AssertionError unless its qconfig uses a floating zero point per row."""
    if hasattr(mod, "weight_fake_quant"):
        expected, observer = trained_kind, mod.weight_fake_quant
    else:
        expected, observer = kind, None
    if type(mod) is not expected:
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {expected.__name__}, got {type(mod).__name__}")
    if observer is None:
        if getattr(mod, "qconfig", None) is None:
            raise AssertionError(f"{cls.__name__} input float module must have qconfig defined")
        observer = mod.qconfig.weight()
    if observer.qscheme is not per_channel_affine_float_qparams:
        raise AssertionError(
            f"{cls.__name__} quantization is only supported with float_qparams_weight_only_qconfig, got the scheme "
            f"{observer.qscheme}"
        )
    if observer.dtype not in (quint8, quint4x2):
        raise AssertionError(f"The only supported dtype for nnq.{cls.__name__} is torch.quint8 and torch.quint4x2, got "
                             f"{observer.dtype}")  # fmt: skip
    observer(mod.weight)
    return _quantize_weight(mod.weight.float(), observer)


class EmbeddingBag(Embedding):
    """Sums of rows of a quantized table, float32, for bags of indices."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, dtype: dtype = quint8,
    ) -> None:  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode = mode
        self.pruned_weights = False
        self.include_last_offset = include_last_offset

    def forward(
        self,
        indices: Tensor,
        offsets: Optional[Tensor] = None,  # noqa: UP045  (scripted)
        per_sample_weights: Optional[Tensor] = None,  # noqa: UP045
        compressed_indices_mapping: Optional[Tensor] = None,  # noqa: UP045
    ) -> Tensor:
        if self.dtype == quint4x2:
            return quantized.embedding_bag_4bit(
                self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
                compressed_indices_mapping, self.include_last_offset,
            )  # fmt: skip
        else:
            return quantized.embedding_bag_byte(
                self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
                compressed_indices_mapping, self.include_last_offset,
            )  # fmt: skip

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """Create the layer from a float one with a qconfig, or from one trained with fake quantization."""
        return cls._of(mod, quantized_table(cls, mod, nn.EmbeddingBag, trained.EmbeddingBag))

    @classmethod
    def from_reference(cls, ref_embedding_bag: Module) -> EmbeddingBag:
        """Create the layer from a reference module, which computes in floats with a quantized table."""
        return cls._of(ref_embedding_bag, ref_embedding_bag.get_quantized_weight())

    @classmethod
    def _of(cls, mod: Any, table: Tensor) -> EmbeddingBag:
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            table, mod.include_last_offset, table.dtype,
        )  # fmt: skip
