"""The storage class names that encode a dtype in torch's files, in both directions."""

from __future__ import annotations

from rushlight.core.dtype import ALL, QUANTIZED_TYPES, STORED_TYPES, dtype

STORAGE_NAMES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex128": "ComplexDoubleStorage",
    "complex64": "ComplexFloatStorage",
    "quint8": "QUInt8Storage",
    "qint8": "QInt8Storage",
    "qint32": "QInt32Storage",
    "quint4x2": "QUInt4x2Storage",
    "quint2x4": "QUInt2x4Storage",
}
DTYPE_OF_STORAGE: dict[str, dtype] = {STORAGE_NAMES[d.name]: d for d in (*ALL, *QUANTIZED_TYPES)}
DTYPE_BY_NAME: dict[str, dtype] = {d.name: d for d in (*ALL, *STORED_TYPES)}
