"""Embeddings whose tables are fake-quantized in training, with a floating zero point per row."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.qat.modules.weights import check_float_module, check_qconfig, detached
from rushlight.core.qscheme import per_channel_affine_float_qparams
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import modules as floats
from rushlight.nn.modules.module import Module

__all__ = ["Embedding", "EmbeddingBag"]


def _check_scheme(qconfig: Any) -> None:
    scheme = check_qconfig(qconfig).weight().qscheme
    if scheme is not per_channel_affine_float_qparams:
        raise AssertionError(
            f"Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}: use "
            "default_embedding_qat_qconfig"
        )


class Embedding(floats.Embedding):
    """`nn.Embedding` whose table `weight_fake_quant` rounds."""

    _FLOAT_MODULE = floats.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        device: Any = None, dtype: Any = None, qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight,
            device=device, dtype=dtype,
        )  # fmt: skip
        _check_scheme(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Embedding:
        """Create the layer from a float one with a qconfig, over the same table."""
        check_float_module(cls, mod, cls._FLOAT_MODULE)
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq,
            mod.sparse, mod.weight, qconfig=mod.qconfig,
        )  # fmt: skip

    def to_float(self) -> Module:
        """Return a float layer over the same table."""
        made = floats.Embedding(
            self.num_embeddings, self.embedding_dim, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse,
        )  # fmt: skip
        made.weight = detached(self.weight)
        made.train(self.training)
        return made


class EmbeddingBag(floats.EmbeddingBag):
    """`nn.EmbeddingBag` whose table `weight_fake_quant` rounds."""

    _FLOAT_MODULE = floats.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight,
            include_last_offset, padding_idx, device=device, dtype=dtype,
        )  # fmt: skip
        _check_scheme(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """Create the layer from a float one with a qconfig, over the same table."""
        check_float_module(cls, mod, cls._FLOAT_MODULE)
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            mod.weight, mod.include_last_offset, mod.padding_idx, qconfig=mod.qconfig,
        )  # fmt: skip

    def to_float(self) -> Module:
        """Return a float layer over the same table."""
        made = floats.EmbeddingBag(
            self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, None, self.include_last_offset, self.padding_idx,
        )  # fmt: skip
        made.weight = detached(self.weight)
        made.train(self.training)
        return made
