"""Block-quantized weights: blocks of 32 or 256 integers of a few bits with shared scales, in the layouts of GGUF."""

from rushlight.core.blocks.formats import FORMATS, BlockFormat, format_named

__all__ = ["FORMATS", "BlockFormat", "format_named"]
