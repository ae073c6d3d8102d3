"""Neural-network operators written with the primitives: one module per kind of layer; importing defines them all."""

from rushlight.ops.composite.network import (
    activations,
    adaptive_pooling,
    attention,
    classification_losses,
    convolution,
    distances,
    dropout,
    linear,
    losses,
    normalisation,
    padding,
    pooling,
    rearranging,
    upsampling,
)

__all__ = [
    "activations",
    "adaptive_pooling",
    "attention",
    "classification_losses",
    "convolution",
    "distances",
    "dropout",
    "linear",
    "losses",
    "normalisation",
    "padding",
    "pooling",
    "rearranging",
    "upsampling",
]
