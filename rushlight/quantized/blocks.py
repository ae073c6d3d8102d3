"""Block-quantized weights as tensors, which linear layers and embeddings accept in place of floats.

In: rows of bytes in a layout of GGUF (`rushlight.core.blocks`), or floats. Out: `BlockTensor`, whose bytes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.blocks import format_named
from rushlight.core.dtype import bfloat16, dtype, float16, float32, float64
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.core.wrapper_subclasses import make_wrapper_subclass
from rushlight.nn import functional
from rushlight.ops.meta.blocks import check_blocks
from rushlight.ops.packet import namespaces
from rushlight.quantized.wrapped import KEEPING, WrappedWeight, dense, rebuilt

aten, own = namespaces.namespace("aten"), namespaces.namespace("rushlight")
_FLOATS = (float32, bfloat16, float16, float64)


class BlockTensor(WrappedWeight):
    """A block-quantized weight (..., rows, width).

    `F.linear` and `F.embedding`, and so `nn.Linear` and `nn.Embedding`, read the blocks directly; every other function gets the
    dequantized numbers, in `dtype`. It has no gradient.

    Args:
        blocks: rows of bytes, uint8 (..., rows, bytes of a row), which are not copied.
        format: the layout: q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or q6_k of GGUF; int4_32, int4_64, int4_128 or int4_256,
            groups of so many with a scale and an offset in float32.
        dtype: the dtype of the dequantized numbers: float32, float64, bfloat16 or float16.

    RuntimeError for partial blocks, ValueError for an unknown layout.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.quantized.blocks import BlockTensor
        >>> weight = BlockTensor.quantize(torch.arange(64.0).view(2, 32), "q8_0")
        >>> weight.blocks.shape, weight.dequantize()[1, -1]
        (torch.Size([2, 34]), tensor(62.9844))
    """

    blocks: Tensor
    format: str

    def __new__(cls, blocks: Tensor, format: str, dtype: dtype = float32) -> BlockTensor:
        layout, width = check_blocks("BlockTensor", blocks, format, None)
        if dtype not in _FLOATS:
            raise RuntimeError(f"BlockTensor: numbers are float32, float64, bfloat16 or float16, got {dtype}")
        made = make_wrapper_subclass(cls, (*blocks.shape[:-1], width), dtype=dtype, device=blocks.device)
        made.blocks, made.format = blocks, layout.name
        return made

    @classmethod
    def quantize(cls, tensor: Tensor, format: str) -> BlockTensor:
        """Quantize a floating tensor (..., rows, width). ValueError for partial blocks, and for numbers that are not finite."""
        if not tensor.is_floating_point():
            raise RuntimeError(f"BlockTensor.quantize: expected a floating tensor, got {tensor.dtype}")
        rows = tensor.detach().to(float32).contiguous()
        made = format_named(format).quantize(rows.numpy(force=True))
        return cls(tensor_from_array(made), format, tensor.dtype if tensor.dtype in _FLOATS else float32)

    def dequantize(self) -> Tensor:
        """Return the dequantized numbers, in `dtype`."""
        return own.dequantize_blocks(self.blocks, self.format).to(self.dtype)

    def _parts(self) -> tuple[Tensor, str, dtype]:
        return self.blocks, self.format, self.dtype

    def _replace_content(self, other: BlockTensor) -> None:
        self.blocks, self.format = other.blocks, other.format


def rebuild_block_tensor(blocks: Tensor, format: str, dtype: dtype, is_parameter: bool) -> BlockTensor:
    """Rebuild a saved tensor."""
    return rebuilt(BlockTensor, (blocks, format, dtype), is_parameter)


class TransposedBlocks(WrappedWeight):
    """The transpose of a block-quantized matrix. Products read the blocks directly; other functions get the dequantized
    numbers."""

    turned: BlockTensor

    def __new__(cls, turned: BlockTensor) -> TransposedBlocks:
        made = make_wrapper_subclass(cls, turned.shape[::-1], dtype=turned.dtype, device=turned.device)
        made.turned = turned
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Sequence[type], args: tuple = (), kwargs: dict | None = None) -> Any:
        product = _PRODUCTS.get(func)
        made = None if product is None else product(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs) if made is None else made

    def dequantize(self) -> Tensor:
        """Return the dequantized numbers."""
        return self.turned.dequantize().t()

    def _parts(self) -> tuple[BlockTensor]:
        return (self.turned,)

    def _replace_content(self, other: TransposedBlocks) -> None:
        self.turned = other.turned

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{self.turned!r}.t()"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.dequantize().__reduce_ex__(protocol)


# Functions that read blocks directly


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not isinstance(weight, BlockTensor) or isinstance(input, BlockTensor) or weight.dim() != 2:
        return functional.linear.__wrapped__(*map(dense, (input, weight, bias)))
    made = own.block_linear(input, weight.blocks, weight.format)
    return made if bias is None else made + bias.to(made.dtype)


def _embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    if max_norm is not None or weight.dim() != 2:
        raise RuntimeError("embedding: a weight in blocks is a matrix that isn't written to: max_norm must be None")
    return own.block_embedding(weight.blocks, input, weight.format).to(weight.dtype)


BlockTensor._functions = {
    functional.linear: _linear,
    functional.embedding: _embedding,
    Tensor.dequantize: BlockTensor.dequantize,
}

# Operators that keep the blocks


def _to(self: BlockTensor, *, dtype: dtype | None = None, device: Any = None, **options: Any) -> Tensor:
    if dtype is not None and dtype not in _FLOATS:
        return self.dequantize().to(dtype)
    blocks = self.blocks if device is None else self.blocks.to(device)
    return BlockTensor(blocks, self.format, dtype or self.dtype)


def _copy(self: BlockTensor, source: Tensor, non_blocking: bool = False) -> BlockTensor:
    if tuple(source.shape) != tuple(self.shape):
        raise RuntimeError(f"copy_: the sizes {tuple(self.shape)} and {tuple(source.shape)} must be the same")
    if not isinstance(source, BlockTensor) or source.format != self.format:
        source = BlockTensor.quantize(dense(source), self.format)
    self.blocks.copy_(source.blocks)
    return self


def _permute(self: BlockTensor, dims: Sequence[int]) -> Tensor:
    if self.dim() == 2 and [dim % 2 for dim in dims] == [1, 0]:
        return TransposedBlocks(self)
    return self.dequantize().permute(dims)


def _mm(self: Tensor, mat2: Tensor) -> Tensor | None:
    if not isinstance(mat2, TransposedBlocks) or isinstance(self, WrappedWeight):
        return None
    return own.block_linear(self, mat2.turned.blocks, mat2.turned.format)


def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor | None:
    product = _mm(mat1, mat2)
    if product is None or isinstance(self, WrappedWeight):
        return None
    return aten.add(product if alpha == 1 else product * alpha, self, alpha=beta)


_PRODUCTS: dict[Any, Callable] = {aten.mm.default: _mm, aten.addmm.default: _addmm}

BlockTensor._operators = {
    **KEEPING,
    aten.permute.default: _permute,
    aten._to_copy.default: _to,
    aten.copy_.default: _copy,
}
BlockTensor._rebuild = staticmethod(rebuild_block_tensor)
TransposedBlocks._operators = KEEPING
