"""Lowering: aten operators to the loops IR. Importing this package fills the table."""

from rushlight.inductor.lowering import (
    adaptive_pooling,
    arithmetic,
    attention,
    blocks,
    byte_layers,
    complex_box,
    complex_numbers,
    convolution_gradients,
    convolutions,
    creation,
    distances,
    fallbacks,
    fourier,
    indexing,
    linalg,
    normalization,
    pointwise,
    pooling,
    pooling_backward,
    products,
    random,
    recurrent,
    reductions,
    scans,
    scatters,
    sorting,
    spatial,
    special,
    views,
)
from rushlight.inductor.lowering.registry import FALLBACKS, LOWERINGS, fallback, lowering

__all__ = [
    "FALLBACKS", "LOWERINGS", "adaptive_pooling", "arithmetic", "attention", "blocks", "complex_box", "complex_numbers",
    "convolution_gradients", "convolutions", "creation", "distances", "fallback", "fallbacks", "fourier", "indexing", "linalg",
    "lowering", "normalization", "pointwise", "pooling", "pooling_backward", "products", "random", "recurrent", "reductions",
    "scans", "scatters", "sorting", "spatial", "special", "views",
]  # fmt: skip
