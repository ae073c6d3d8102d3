"""Element types, their NumPy counterparts, and the type-promotion lattice of torch."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import rushlight._C as _C


class dtype:
    """An element type. Instances are singletons (`float32`, `int64`, ...); compare them with `is` or `==`.

    Attributes: `name`, `scalar_name` (torch's C++ name, as in messages: "Float"), `itemsize` in bytes, `is_floating_point`,
    `is_complex`, `is_signed`, `numpy` (the NumPy dtype), `compute` (the NumPy dtype that eager kernels calculate in: float32
    for the 16-bit floats).
    """

    __slots__ = (
        "name", "scalar_name", "itemsize", "is_floating_point", "is_complex", "is_signed", "numpy", "compute", "category",
    )  # fmt: skip

    def __init__(self, name: str, scalar_name: str, numpy_type: type, category: int):
        self.name = name
        self.scalar_name = scalar_name
        self.numpy = np.dtype(numpy_type)
        self.itemsize = self.numpy.itemsize
        self.category = category
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = self.numpy.kind not in "ub" and name != "float8_e8m0fnu" or name == "float4_e2m1fn_x2"
        small = self.is_floating_point and self.itemsize <= 2
        self.compute = np.dtype(np.float32) if small else self.numpy

    @property
    def is_integral(self) -> bool:
        """Return True for the integers and bool."""
        return self.category <= INTEGRAL

    def to_real(self) -> dtype:
        """Return the dtype of the real part: float32 for complex64, itself for those that are not complex."""
        return _REAL_OF.get(self.name, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts are of this one; RuntimeError where there is none."""
        found = _COMPLEX_OF.get(self.name)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (from_name, (self.name,))


BOOLEAN, INTEGRAL, FLOATING, COMPLEX, QUANTIZED, BITS = range(6)

bool_ = dtype("bool", "Bool", np.bool_, BOOLEAN)
uint8 = dtype("uint8", "Byte", np.uint8, INTEGRAL)
int8 = dtype("int8", "Char", np.int8, INTEGRAL)
int16 = dtype("int16", "Short", np.int16, INTEGRAL)
int32 = dtype("int32", "Int", np.int32, INTEGRAL)
int64 = dtype("int64", "Long", np.int64, INTEGRAL)
float16 = dtype("float16", "Half", np.float16, FLOATING)
bfloat16 = dtype("bfloat16", "BFloat16", ml_dtypes.bfloat16, FLOATING)
float32 = dtype("float32", "Float", np.float32, FLOATING)
float64 = dtype("float64", "Double", np.float64, FLOATING)
complex64 = dtype("complex64", "ComplexFloat", np.complex64, COMPLEX)
complex128 = dtype("complex128", "ComplexDouble", np.complex128, COMPLEX)

ALL = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)

# Storage types of quantized tensors. The last two pack two and four elements into a byte.
quint8 = dtype("quint8", "QUInt8", np.uint8, QUANTIZED)
qint8 = dtype("qint8", "QInt8", np.int8, QUANTIZED)
qint32 = dtype("qint32", "QInt32", np.int32, QUANTIZED)
quint4x2 = dtype("quint4x2", "QUInt4x2", np.uint8, QUANTIZED)
quint2x4 = dtype("quint2x4", "QUInt2x4", np.uint8, QUANTIZED)
QUANTIZED_TYPES = (quint8, qint8, qint32, quint4x2, quint2x4)

# Wide unsigned integers: torch promotes them with floating dtypes only.
uint16 = dtype("uint16", "UInt16", np.uint16, INTEGRAL)
uint32 = dtype("uint32", "UInt32", np.uint32, INTEGRAL)
uint64 = dtype("uint64", "UInt64", np.uint64, INTEGRAL)
UNSIGNED_TYPES = (uint16, uint32, uint64)

# Floating dtypes for storage and casts; few operators compute with them. The last packs two into a byte.
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOATING)
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", ml_dtypes.float8_e5m2, FLOATING)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOATING)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOATING)
float8_e8m0fnu = dtype("float8_e8m0fnu", "Float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOATING)
float4_e2m1fn_x2 = dtype("float4_e2m1fn_x2", "Float4_e2m1fn_x2", np.uint8, FLOATING)
FLOAT8_TYPES = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
# NumPy has no complex number of two halves: arrays of complex32 have one field for each part.
complex32 = dtype("complex32", "ComplexHalf", [("real", np.float16), ("imag", np.float16)], COMPLEX)
NARROW_TYPES = (*FLOAT8_TYPES, float4_e2m1fn_x2, complex32)

# Bit strings of a given width. Packages define their meaning; no operator computes with them.
BITS_TYPES = tuple(
    dtype(name, scalar_name, kind, BITS)
    for name, scalar_name, kind in (
        ("bits8", "Bits8", np.uint8), ("bits16", "Bits16", np.uint16), ("bits1x8", "Bits1x8", np.uint8),
        ("bits2x4", "Bits2x4", np.uint8), ("bits4x2", "Bits4x2", np.uint8),
        *((f"uint{bits}", f"UInt{bits}", np.uint8) for bits in range(1, 8)),
        *((f"int{bits}", f"Int{bits}", np.int8) for bits in range(1, 8)),
    )
)  # fmt: skip

STORED_TYPES = (*UNSIGNED_TYPES, *NARROW_TYPES)
_BY_NAME = {d.name: d for d in (*ALL, *QUANTIZED_TYPES, *STORED_TYPES, *BITS_TYPES)}
_BY_NUMPY = {d.numpy: d for d in (*ALL, *UNSIGNED_TYPES, *FLOAT8_TYPES, complex32)}
_REAL_OF = {"complex32": float16, "complex64": float32, "complex128": float64}
_COMPLEX_OF = {
    "float16": complex32, "bfloat16": complex64, "float32": complex64, "float64": complex128, "complex32": complex32,
    "complex64": complex64, "complex128": complex128,
}  # fmt: skip


def from_name(name: str) -> dtype:
    """Return the dtype called `name` ("float32"); KeyError if there is none."""
    return _BY_NAME[name]


def from_numpy_dtype(numpy_dtype: np.dtype) -> dtype:
    """Return the dtype of NumPy arrays of `numpy_dtype`; TypeError when tensors cannot hold it."""
    found = _BY_NUMPY.get(np.dtype(numpy_dtype))
    if found is None:
        supported = ", ".join(d.name for d in (*ALL, *STORED_TYPES) if d is not float4_e2m1fn_x2)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: {supported}."
        )
    return found


def of_number(value: bool | int | float | complex) -> dtype:
    """Return the dtype that a Python number has by itself."""
    if isinstance(value, bool | np.bool_):
        return bool_
    if isinstance(value, int | np.integer):
        return int64
    if isinstance(value, float | np.floating):
        return get_default_dtype()
    return get_default_dtype().to_complex()


_default = [float32]


def get_default_dtype() -> dtype:
    """Return the floating dtype of new tensors made from Python floats."""
    return _default[0]


def set_default_dtype(new: dtype) -> None:
    """Set the default floating dtype; TypeError for anything but a floating dtype."""
    if not isinstance(new, dtype) or not new.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, but got {new}")
    if new not in ALL:
        raise TypeError(f"couldn't find storage object {new.scalar_name}Storage")
    _default[0] = new
    _C.choose_plans_anew()  # operators on a GPU may give results of another dtype


_COMPLEX_RANK = {"complex32": 0, "complex64": 1, "complex128": 2}
_INTEGER_RANK = {"uint8": 0, "int8": 0, "int16": 1, "int32": 2, "int64": 3}
_FLOAT_RANK = {"float16": 0, "bfloat16": 0, "float32": 1, "float64": 2}


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low.is_floating_point:
            return _promote(high, low.to_complex())
        return high
    if a.category == INTEGRAL:
        rank_a, rank_b = _INTEGER_RANK[a.name], _INTEGER_RANK[b.name]
        if rank_a == rank_b:
            return int16
        return a if rank_a > rank_b else b
    if a.category == FLOATING:
        rank_a, rank_b = _FLOAT_RANK[a.name], _FLOAT_RANK[b.name]
        if rank_a == rank_b:
            return float32
        return a if rank_a > rank_b else b
    return a if _COMPLEX_RANK[a.name] > _COMPLEX_RANK[b.name] else b


_PROMOTION = {(a, b): _promote(a, b) for a in (*ALL, complex32) for b in (*ALL, complex32)}
_PROMOTION |= {(a, b): b for a in UNSIGNED_TYPES for b in ALL if b.is_floating_point}
_PROMOTION |= {(b, a): b for a, b in _PROMOTION if a in UNSIGNED_TYPES}


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest dtype of torch's lattice to which both `a` and `b` promote. RuntimeError for dtypes without one."""
    found = _PROMOTION.get((a, b))
    if found is not None or a is b:
        return found or a
    kinds = {a, b}
    if kinds.intersection((*FLOAT8_TYPES, float4_e2m1fn_x2)):
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    if kinds.intersection(UNSIGNED_TYPES):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.scalar_name} and "
            f"{b.scalar_name}"
        )
    raise RuntimeError(
        f"promoteTypes with quantized numbers is not handled yet; dequantize them first. Types: {a.scalar_name} {b.scalar_name}"
    )


def can_cast(source: dtype, target: dtype) -> bool:
    """Return whether a result of `source` may be written to a tensor of `target` (no drop to a lower category)."""
    if source.is_complex and not target.is_complex:
        return False
    if source.is_floating_point and target.is_integral:
        return False
    return source is bool_ or target is not bool_


class finfo:
    """Machine limits of a floating dtype: `bits`, `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`."""

    def __init__(self, type: dtype | None = None):
        type = type or get_default_dtype()
        if not (type.is_floating_point or type.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type, but got {type}. Use torch.iinfo for it.")
        if type is float4_e2m1fn_x2:
            raise NotImplementedError("\"epsilon\" not implemented for 'Float4_e2m1fn_x2'")
        info = ml_dtypes.finfo(type.to_real().numpy)
        self.dtype = type.to_real().name
        self.bits = info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = 10.0 ** -info.precision if self.bits > 8 else 1.0
        if type in (float8_e4m3fnuz, float8_e5m2fnuz):
            self.eps = 0.125  # torch's values, though the spacing above 1 of the second is 0.25

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: `bits`, `max`, `min`."""

    def __init__(self, type: dtype):
        if not isinstance(type, dtype) or type.category not in (INTEGRAL, QUANTIZED):
            raise TypeError(f"torch.iinfo() requires an integer input type, but got {type}. Use torch.finfo for it.")
        info = np.iinfo(type.numpy)
        self.dtype = type.name
        self.bits, self.min, self.max = info.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
