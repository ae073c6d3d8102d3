"""Lowering: aten operators to the loops IR. Importing this package fills the table."""

from rushlight.inductor.lowering import (
    arithmetic,
    attention,
    convolution_gradients,
    convolutions,
    creation,
    fallbacks,
    indexing,
    normalization,
    pointwise,
    pooling,
    pooling_backward,
    products,
    random,
    reductions,
    scans,
    scatters,
    spatial,
    views,
)
from rushlight.inductor.lowering.registry import FALLBACKS, LOWERINGS, fallback, lowering

__all__ = [
    "FALLBACKS", "LOWERINGS", "arithmetic", "attention", "convolution_gradients", "convolutions", "creation", "fallback",
    "fallbacks", "indexing", "lowering", "normalization", "pointwise", "pooling", "pooling_backward", "products", "random",
    "reductions", "scans", "scatters", "spatial", "views",
]  # fmt: skip
