"""Dtypes, layouts and memory formats as numbers, the form of graphs and archives (c10's enumerations)."""

from __future__ import annotations

from rushlight.core.dtype import ALL, BITS_TYPES, QUANTIZED_TYPES, STORED_TYPES, dtype
from rushlight.core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    strided,
)

SCALAR_TYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
                "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4",
                "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16",
                "uint32", "uint64", *(f"uint{bits}" for bits in range(1, 8)), *(f"int{bits}" for bits in range(1, 8)),
                "float8_e8m0fnu", "float4_e2m1fn_x2")  # fmt: skip
"""The names of dtypes by number."""
LAYOUTS: tuple[layout, ...] = (strided, sparse_coo)
MEMORY_FORMATS: tuple[memory_format, ...] = (contiguous_format, preserve_format, channels_last, channels_last_3d)
_DTYPES: dict[str, dtype] = {each.name: each for each in (*ALL, *QUANTIZED_TYPES, *STORED_TYPES, *BITS_TYPES)}


def dtype_number(kind: dtype) -> int:
    """Return the number of a dtype."""
    return SCALAR_TYPES.index(kind.name)


def dtype_of_number(number: int | dtype) -> dtype:
    """Return the dtype of a number; RuntimeError for one that the library does not have."""
    if isinstance(number, dtype):
        return number
    name = SCALAR_TYPES[number] if 0 <= number < len(SCALAR_TYPES) else None
    if name not in _DTYPES:
        raise RuntimeError(f"dtype {name or number} is not supported; the supported ones are {', '.join(_DTYPES)}")
    return _DTYPES[name]


def layout_of_number(number: int | layout) -> layout:
    """Return the layout of a number; RuntimeError for one that the library does not have."""
    return number if isinstance(number, layout) else _find_by_number(LAYOUTS, number, "layout")


def memory_format_of_number(number: int | memory_format) -> memory_format:
    """Return the memory format of a number; RuntimeError for an unknown one."""
    return number if isinstance(number, memory_format) else _find_by_number(MEMORY_FORMATS, number, "memory format")


def _find_by_number(table: tuple, number: int, what: str) -> object:
    if not 0 <= number < len(table):
        raise RuntimeError(f"there is no {what} of number {number}; the known ones are {', '.join(map(str, table))}")
    return table[number]
