"""Docstrings of operators, in modules by family. `DOCSTRINGS` has all of them, by the operators' names."""

from rushlight.ops.descriptions import (
    creation,
    fft,
    indexing,
    linalg,
    methods,
    network,
    pointwise,
    products,
    quantized,
    reductions,
    shapes,
    special,
)

DOCSTRINGS: dict[str, str] = {}
for _family in (
    pointwise, reductions, products, shapes, indexing, creation, network, linalg, fft, special, methods, quantized,
):  # fmt: skip
    DOCSTRINGS |= _family.DOCSTRINGS
