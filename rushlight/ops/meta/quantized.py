"""Shape checks and Meta rules of products with 8-bit and 4-bit integers."""

from __future__ import annotations

from rushlight.core.dtype import bfloat16, float16, float32, int8, int32, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> tuple[int, int]:
    """Return the shape of `self @ mat2.T * scales`; RuntimeError when sizes or dtypes do not fit."""
    name, a, b = "_weight_int8pack_mm", self._impl, mat2._impl
    if a.dtype not in (float32, bfloat16, float16):
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor, got {a.dtype}.")
    if b.dtype is not int8:
        raise RuntimeError(f"{name} : expect B to be int8 tensor, got {b.dtype}.")
    if len(a.sizes) != 2:
        raise RuntimeError(f"{name} : expect A to be 2D tensor, got shape {list(a.sizes)}.")
    if len(b.sizes) != 2 or b.sizes[1] != a.sizes[1]:
        raise RuntimeError(f"{name} : expect B.size(1) == {a.sizes[1]}, got shape {list(b.sizes)}")
    if scales._impl.sizes != (b.sizes[0],):
        raise RuntimeError(
            f"{name} : expect scales to be 1d tensor with size {b.sizes[0]}, got shape {list(scales._impl.sizes)}"
        )
    if scales.dtype is not a.dtype:
        raise RuntimeError(f"{name} : expect scales to have the dtype of A, {a.dtype}, got {scales.dtype}.")
    return a.sizes[0], b.sizes[0]


def check_int_mm(self: Tensor, mat2: Tensor) -> tuple[int, int]:
    """Return the shape of a product of int8 matrices; RuntimeError when sizes or dtypes do not fit."""
    a, b = self._impl, mat2._impl
    for position, impl in (("self", a), ("mat2", b)):
        if len(impl.sizes) != 2:
            raise RuntimeError(f"Expected {position} to be of dimension 2 but got {len(impl.sizes)}")
        if impl.dtype is not int8:
            raise RuntimeError(f"Expected {position} dtype to be of type int8 but got {impl.dtype}")
    if a.sizes[1] != b.sizes[0]:
        raise RuntimeError(f"_int_mm: self.size(1) needs to match mat2.size(0) but got {a.sizes[1]} and {b.sizes[0]}")
    return a.sizes[0], b.sizes[1]


@meta("_weight_int8pack_mm")
def weight_int8pack_mm(self, mat2, scales):
    return empty(check_weight_int8pack_mm(self, mat2, scales), self.dtype)


@meta("_int_mm")
def int_mm(self, mat2):
    return empty(check_int_mm(self, mat2), int32)


# 4-bit weights


def check_int4pack(self: Tensor) -> tuple[int, int]:
    """Return the shape of the packed bytes for integers 0 to 15; RuntimeError when sizes or the dtype do not fit."""
    name, impl = "_convert_weight_to_int4pack_cpu", self._impl
    if impl.dtype is not int32:
        raise RuntimeError(f"{name} : expect weight to be kInt, got {impl.dtype}.")
    if len(impl.sizes) != 2:
        raise RuntimeError(f"{name}: expect weight to be 2D tensor, got shape {list(impl.sizes)}")
    rows, width = impl.sizes
    if rows % 16:
        raise RuntimeError(f"{name} : expect N to be dividable by 16, got {rows}")
    if width % 2:
        raise RuntimeError(f"_convert_weight_to_int4pack: expect K to be dividable by 2, got {width}")
    return rows, width // 2


def check_int4pack_mm(self: Tensor, mat2: Tensor, group: int, scales: Tensor) -> tuple[int, int]:
    """Return the shape of `self @ weight.T`; RuntimeError when sizes or dtypes do not fit."""
    name, a, b, s = "_weight_int4pack_mm_cpu", self._impl, mat2._impl, scales._impl
    if a.dtype not in (float32, bfloat16, float16):
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor, got {a.dtype}.")
    if len(a.sizes) != 2:
        raise RuntimeError(f"{name} : expect A to be 2D tensor, got shape {list(a.sizes)}.")
    if b.dtype is not uint8 or len(b.sizes) != 2 or b.sizes[1] * 2 != a.sizes[1]:
        raise RuntimeError(f"{name} : expect B to be uint8 tensor [:, {a.sizes[1] // 2}], got {b.dtype} {list(b.sizes)}.")
    if group not in (32, 64, 128, 256):
        raise RuntimeError(f"{name}: expect qGroupSize to be 32, 64, 128 or 256, got {group}")
    if a.sizes[1] % group or tuple(s.sizes) != (a.sizes[1] // group, b.sizes[0], 2):
        raise RuntimeError(
            f"{name}: expect qScaleAndZeros to be 3d tensor with sizes [{a.sizes[1]} / {group}, {b.sizes[0]}, 2], got "
            f"{list(s.sizes)}"
        )
    if s.dtype is not a.dtype:
        raise RuntimeError(f"{name}: expect qScaleAndZeros to have the dtype of A, {a.dtype}, got {s.dtype}")
    return a.sizes[0], b.sizes[0]


def check_dyn_quant_pack(
    weights: Tensor, scales: Tensor, bias: Tensor | None, block_size: int, in_features: int, out_features: int
) -> int:
    """Return the number of packed elements; RuntimeError when sizes or dtypes do not fit."""
    name = "_dyn_quant_pack_4bit_weight"
    if weights.dtype is not uint8 or weights.numel() * 2 != in_features * out_features:
        raise RuntimeError(
            f"{name}: expect weights of {in_features * out_features // 2} bytes, got {weights.dtype} {list(weights.shape)}"
        )
    check_blocks_of(name, block_size, in_features)
    blocks = in_features // block_size
    if scales.dtype not in (float32, bfloat16) or scales.numel() != out_features * blocks:
        raise RuntimeError(f"{name}: expect {out_features * blocks} scales, got {scales.dtype} {list(scales.shape)}")
    if bias is not None and (bias.dtype is not float32 or bias.numel() != out_features):
        raise RuntimeError(f"{name}: expect a float32 bias of {out_features} elements, got {bias.dtype} {list(bias.shape)}")
    return weights.numel() + scales.numel() + (0 if bias is None else bias.numel())


def check_blocks_of(name: str, block_size: int, in_features: int) -> None:
    """Raise RuntimeError unless the blocks divide a row."""
    if block_size <= 0 or in_features <= 0 or in_features % block_size or block_size % 2:
        raise RuntimeError(f"{name}: blocks of {block_size} elements do not fill rows of {in_features}")


def check_dyn_quant_matmul(inp: Tensor, packed: Tensor, block_size: int, in_features: int, out_features: int) -> tuple:
    """Return the shape of a product with a packed weight; RuntimeError when sizes or dtypes do not fit."""
    name = "_dyn_quant_matmul_4bit"
    check_blocks_of(name, block_size, in_features)
    if inp.dtype is not float32 or not inp.dim() or inp.size(-1) != in_features:
        raise RuntimeError(f"{name}: expect a float32 input (..., {in_features}), got {inp.dtype} {list(inp.shape)}")
    least = out_features * (in_features // 2 + in_features // block_size)
    if packed.dtype is not float32 or packed.numel() not in (least, least + out_features):
        raise RuntimeError(f"{name}: expect {least} packed elements, and a bias, got {packed.dtype} {list(packed.shape)}")
    return (*inp._impl.sizes[:-1], out_features)


@meta("_convert_weight_to_int4pack_for_cpu")
def convert_weight_to_int4pack(self, innerKTiles):
    return empty(check_int4pack(self), uint8)


@meta("_weight_int4pack_mm_for_cpu")
def weight_int4pack_mm(self, mat2, qGroupSize, qScaleAndZeros):
    return empty(check_int4pack_mm(self, mat2, qGroupSize, qScaleAndZeros), self.dtype)


@meta("_dyn_quant_pack_4bit_weight")
def dyn_quant_pack(weights, scales_zeros, bias, block_size, in_features, out_features):
    return empty((check_dyn_quant_pack(weights, scales_zeros, bias, block_size, in_features, out_features),), float32)


@meta("_dyn_quant_matmul_4bit")
def dyn_quant_matmul(inp, packed_weights, block_size, in_features, out_features):
    return empty(check_dyn_quant_matmul(inp, packed_weights, block_size, in_features, out_features), inp.dtype)
