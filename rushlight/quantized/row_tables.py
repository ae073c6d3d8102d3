"""Embedding tables as plain tensors of bytes: each row holds its elements, then its scale and bias.

In: floats, or such tables. Out: tables of uint8, floats, or sums of rows. A row's element is q * scale + bias. With 8 bits,
scale and bias are float32; with 4 and 2 bits float16, and elements are packed from the lowest bits of each byte on. The layout
is Caffe2's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rushlight.core.dtype import float16, float32, uint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.embedding import check_indices, check_only_sums, check_range, sum_bags
from rushlight.quantized.registration import CPU, operator

_LEAST = np.float32(1e-8)  # added to ranges before division: that of a row of equal numbers is 0


@dataclass(frozen=True)
class _Form:
    """The form of a table's rows: `word` in operators' names, bits of an element, and the dtype of scale and bias."""

    word: str
    bits: int
    number: type

    @property
    def per_byte(self) -> int:
        """How many elements a byte has."""
        return 8 // self.bits

    def pack(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Quantize float32 rows, given their least and largest elements; elements beyond these are clamped."""
        if self.bits == 8:
            extent = high - low
            scale, factor = extent / np.float32(255), np.float32(255) / (extent + _LEAST)
        else:
            low = low.astype(np.float16).astype(np.float32)
            scale = self._narrow_scale(high - low)
            factor = np.float32(1) / scale
        integers = np.clip(np.rint((rows - low) * factor), 0, (1 << self.bits) - 1).astype(np.uint8)
        packed = np.zeros((*rows.shape[:-1], rows.shape[-1] // self.per_byte), np.uint8)
        for place in range(self.per_byte):
            packed |= integers[..., place :: self.per_byte] << (self.bits * place)
        numbers = np.concatenate([scale, low], -1).astype(self.number)
        return np.concatenate([packed, numbers.view(np.uint8)], -1)

    def _narrow_scale(self, extent: np.ndarray) -> np.ndarray:
        """Return the scales that float16 holds; 1 where it is 0 or has no inverse."""
        with np.errstate(divide="ignore", over="ignore"):
            scale = (extent / np.float32((1 << self.bits) - 1)).astype(np.float16).astype(np.float32)
            return np.where((scale == 0) | np.isinf(np.float32(1) / scale), np.float32(1), scale)

    def unpack(self, table: np.ndarray) -> np.ndarray:
        """Return the float32 rows of a table."""
        width = np.dtype(self.number).itemsize
        packed, numbers = table[..., : -2 * width], np.ascontiguousarray(table[..., -2 * width :]).view(self.number)
        rows = np.empty((*packed.shape[:-1], packed.shape[-1] * self.per_byte), np.float64)
        for place in range(self.per_byte):
            rows[..., place :: self.per_byte] = (packed >> (self.bits * place)) & ((1 << self.bits) - 1)
        return (rows * numbers[..., :1] + numbers[..., 1:]).astype(np.float32)  # rounded once

    def check_table(self, table: Tensor, name: str) -> np.ndarray:
        """Return the bytes of a table. RuntimeError for what is none."""
        least = 2 * np.dtype(self.number).itemsize
        if table.dtype is not uint8 or table.dim() < 1 or table.shape[-1] < least or (self.bits < 8 and table.dim() != 2):
            raise RuntimeError(
                f"quantized::{name}: expected a table of uint8 whose rows end with scale and bias ({least} bytes), got "
                f"{table.dtype} of shape {list(table.shape)}"
            )
        return table._impl.array

    def check_floats(self, weight: Tensor, name: str) -> np.ndarray:
        """Return rows as float32. RuntimeError for a dtype or shape that has no table."""
        if weight.dtype not in (float32, float16):
            raise RuntimeError(f"quantized::{name}: expected a weight of float32 or float16, got {weight.dtype}")
        if weight.dim() < 1 or (self.bits < 8 and weight.dim() != 2) or weight.shape[-1] % self.per_byte:
            raise RuntimeError(
                f"quantized::{name}: expected rows of a multiple of {self.per_byte} elements, got shape {list(weight.shape)}"
            )
        return weight._impl.array.astype(np.float32)


def _limits(weight: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not weight.shape[-1]:
        raise RuntimeError(f"quantized::{name}: expected rows with elements, got shape {list(weight.shape)}")
    return weight.min(-1, keepdims=True), weight.max(-1, keepdims=True)


def _define(form: _Form) -> None:
    prefix, optimized = f"embedding_bag_{form.word}", ""
    if form.bits < 8:
        optimized = ", bool optimized_qparams=False, int nbins=200, float ratio=0.16"

    def refuse_optimized(given: bool, name: str) -> None:
        if given:
            raise RuntimeError(f"quantized::{name}: optimized_qparams=True is not supported: rows take their own limits")

    def prepack(weight, optimized_qparams=False, nbins=200, ratio=0.16):
        name = f"{prefix}_prepack"
        refuse_optimized(optimized_qparams, name)
        rows = form.check_floats(weight, name)
        return tensor_from_array(form.pack(rows, *_limits(rows, name)), uint8)

    def prepack_within(weight, rowwise_min_max, optimized_qparams=False, nbins=200, ratio=0.16):
        name = f"{prefix}_prepack_with_rowwise_min_max"
        refuse_optimized(optimized_qparams, name)
        rows = form.check_floats(weight, name)
        if rows.ndim != 2 or tuple(rowwise_min_max.shape) != (len(rows), 2):
            raise RuntimeError(
                f"quantized::{name}: 'rowwise_min_max' must be a 2D tensor with shape [num_rows(weight), 2], got shapes "
                f"{list(rowwise_min_max.shape)} and {list(rows.shape)} (weight)"
            )
        ends = rowwise_min_max._impl.array.astype(np.float32)
        return tensor_from_array(form.pack(rows, ends[:, :1], ends[:, 1:]), uint8)

    def unpack(weight):
        return tensor_from_array(form.unpack(form.check_table(weight, f"{prefix}_unpack")), float32)

    def sums(
        weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
        compressed_indices_mapping=None, include_last_offset=False,
    ):  # fmt: skip
        name = f"{prefix}_rowwise_offsets"
        check_only_sums(mode, pruned_weights, compressed_indices_mapping, name)
        table, places = form.check_table(weight, name), check_indices(indices, name)
        check_range(places, len(table), name)
        return sum_bags(form.unpack(table[places]), places, offsets, per_sample_weights, include_last_offset, name)

    operator(f"quantized::{prefix}_prepack(Tensor weight{optimized}) -> Tensor", keys=(CPU,))(prepack)
    operator(
        f"quantized::{prefix}_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max{optimized}) -> Tensor",
        keys=(CPU,),
    )(prepack_within)
    operator(f"quantized::{prefix}_unpack(Tensor weight) -> Tensor", keys=(CPU,))(unpack)
    operator(
        f"quantized::{prefix}_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, "
        "bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, "
        "Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor",
        keys=(CPU,),
    )(sums)


for _form in (_Form("byte", 8, np.float32), _Form("4bit", 4, np.float16), _Form("2bit", 2, np.float16)):
    _define(_form)
