"""The text of a tensor, character by character as torch prints it.

In: a NumPy array of any strides and the dtype that the tensor reports. Out: the text that `repr(tensor)` returns.
Stage: core; called by Tensor.__repr__.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class PrintOptions(NamedTuple):
    """How tensors print.

    precision: digits after the point. threshold: number of elements above which a tensor is summarised. edgeitems:
    elements shown at each end of a summarised dimension (0 shows none and adds the size). linewidth: columns. sci_mode:
    scientific notation always (True), never (False), or where the magnitudes call for it (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_current = [PROFILES["default"]]

_COMPLEX_OF = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}


def get_printoptions() -> PrintOptions:
    """Return the options in force."""
    return _current[0]


def restore_printoptions(options: PrintOptions) -> None:
    """Set all options to what `get_printoptions` said before."""
    _current[0] = options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how all tensors print from now on: the profile ("default", "short", "full"), then single options.

    Options left out keep their value, except that `sci_mode` returns to automatic, as in torch. ValueError for an
    unknown profile.
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"set_printoptions: unknown profile {profile!r}, expected one of {', '.join(PROFILES)}")
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    given = {name: value for name, value in options.items() if value is not None}
    base = _current[0] if profile is None else PROFILES[profile]
    _current[0] = base._replace(sci_mode=sci_mode, **given)


def format_tensor(
    array: np.ndarray,
    dtype: Any,
    *,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    device: Any = "cpu",
    default_dtype: Any = None,
    prefix: str = "tensor(",
    size: Sequence[int] | None = None,
    options: PrintOptions | None = None,
) -> str:
    """Return the text of a tensor with the elements of `array`.

    `dtype` is the tensor's element type (its `name`, `is_floating_point` and `is_complex` are read); `default_dtype` is the
    current default floating dtype, None for float32. `size` is the shape to report; None stands for the array's. `options`
    defaults to those of `set_printoptions`.
    """
    options = options or _current[0]
    suffixes = [] if str(device) == "cpu" else [f"device='{device}'"]
    shape = tuple(array.shape if size is None else size)
    # If the brackets contain no elements, print the shape as `size=`. A bare `[]` has shape (0,).
    if (options.edgeitems == 0) if array.size else (len(shape) != 1):
        suffixes.append(_size_suffix(shape))
    if not _is_understood(dtype, default_dtype, bool(array.size)):
        suffixes.append(f"dtype={dtype}")
    suffixes += _gradient_suffixes(requires_grad, grad_fn_name)
    body = _format_elements(array, dtype, len(prefix), options) if array.size else "[]"
    return _append_suffixes(prefix + body, suffixes, len(prefix), options)


def elements_text(array: np.ndarray, dtype: Any, indent: int) -> str:
    """Return the elements of an array of this dtype in brackets; continuation lines are indented by `indent` characters."""
    return _format_elements(array, dtype, indent, _current[0]) if array.size else "[]"


def format_meta(
    shape: Sequence[int],
    dtype: Any,
    *,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    default_dtype: Any = None,
    options: PrintOptions | None = None,
) -> str:
    """Return the text of a tensor without data: `tensor(..., device='meta', size=(2, 3))`. Arguments as in `format_tensor`."""
    suffixes = ["device='meta'", _size_suffix(shape)]
    if not _is_understood(dtype, default_dtype, has_elements=False):
        suffixes.append(f"dtype={dtype}")
    suffixes += _gradient_suffixes(requires_grad, grad_fn_name)
    return _append_suffixes("tensor(...", suffixes, len("tensor("), options or _current[0])


def format_sparse(
    indices: np.ndarray,
    values: np.ndarray,
    dtype: Any,
    shape: Sequence[int],
    default_dtype: Any = None,
    *,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
) -> str:
    """Return the text of a sparse COO tensor: its indices and values as tensors of their own, and its size below them."""
    options, margin = _current[0], " " * len("tensor(")
    bodies = _print_parts((("indices", indices, _Integers), ("values", values, dtype)))
    suffixes = [_size_suffix(shape), f"nnz={indices.shape[1]}"]
    if not _is_understood(dtype, default_dtype, bool(values.size)):
        suffixes.append(f"dtype={dtype}")
    suffixes += ["layout=torch.sparse_coo", *_gradient_suffixes(requires_grad, grad_fn_name)]
    first, *rest = suffixes
    text = f"tensor({bodies[0]},\n{margin}{bodies[1]},\n{margin}{first}"
    return _append_suffixes(text, rest, len(margin), options)


def _print_parts(parts: Sequence[tuple[str, np.ndarray, Any]]) -> list[str]:
    """Return the texts of a sparse tensor's parts, as `indices=tensor(...)`."""
    options, indent, bodies = _current[0], len("tensor("), []
    for name, array, style in parts:
        label = f"{name}=tensor("
        missing = f"[], {_size_suffix(array.shape)}"
        text = _format_elements(array, style, indent + len(label), options) if array.size else missing
        bodies.append(f"{label}{text})")
    return bodies


def format_compressed(
    compressed: np.ndarray,
    plain: np.ndarray,
    values: np.ndarray,
    dtype: Any,
    shape: Sequence[int],
    default_dtype: Any = None,
    *,
    layout: Any,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
) -> str:
    """Return the text of a CSR or CSC tensor: its two tensors of indices, its values, and its size after them."""
    names = ("crow_indices", "col_indices") if layout.name == "sparse_csr" else ("ccol_indices", "row_indices")
    bodies = _print_parts(((names[0], compressed, _Integers), (names[1], plain, _Integers), ("values", values, dtype)))
    suffixes = [_size_suffix(shape), f"nnz={len(plain)}"]
    if not _is_understood(dtype, default_dtype, True):
        suffixes.append(f"dtype={dtype}")
    suffixes += [f"layout={layout}", *_gradient_suffixes(requires_grad, grad_fn_name)]
    indent = len("tensor(")
    return _append_suffixes("tensor(" + f",\n{' ' * indent}".join(bodies), suffixes, indent, _current[0])


def format_quantized(values: np.ndarray, dtype: Any, scheme: Any, settings: Sequence[str]) -> str:
    """Return the text of a quantized tensor: the float32 `values` that its integers stand for, and `settings`, as
    `scale=0.1`.
    """
    options, indent = _current[0], len("tensor(")
    body = _format_elements(values, _Floats, indent, options) if values.size else "[]"
    suffixes = [_size_suffix(values.shape), f"dtype={dtype}", f"quantization_scheme={scheme}", *settings]
    return _append_suffixes("tensor(" + body, suffixes, indent, options)


class _Floats:
    """The style of floating-point numbers."""

    is_complex, is_floating_point = False, True


class _Integers:
    """The style of integers, whatever the dtype of the tensor."""

    is_complex = is_floating_point = False


# Suffixes after the elements


def _is_understood(dtype: Any, default_dtype: Any, has_elements: bool) -> bool:
    """Return whether the dtype need not be printed: the elements show it, or it is the default one."""
    default_name = default_dtype.name if default_dtype is not None else "float32"
    shown = ("int64", "bool", _COMPLEX_OF.get(default_name)) if has_elements else ()
    return dtype.name == default_name or dtype.name in shown


def _size_suffix(shape: Sequence[int]) -> str:
    return f"size={tuple(map(int, shape))}"


def _gradient_suffixes(requires_grad: bool, grad_fn_name: str | None) -> list[str]:
    if grad_fn_name is not None:
        return [f"grad_fn=<{grad_fn_name}>"]
    return ["requires_grad=True"] if requires_grad else []


def _append_suffixes(text: str, suffixes: list[str], indent: int, options: PrintOptions) -> str:
    """Add each suffix to the last line, or to a new one where it does not fit beside it."""
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


# Format the elements


class _ElementStyle(NamedTuple):
    """How one element is written, and the width of its column."""

    write: Callable[[Any], str]
    width: int


def _format_elements(array: np.ndarray, dtype: Any, indent: int, options: PrintOptions) -> str:
    cut = [array.size > options.threshold and length > 2 * options.edgeitems for length in array.shape]
    shown = array[np.ix_(*map(_edge_indices, array.shape, cut, [options.edgeitems] * array.ndim))] if any(cut) else array
    if dtype.is_complex:
        shown = shown.astype(np.complex128)
        style = _complex_style(shown, options)
    elif dtype.is_floating_point:
        shown = shown.astype(np.float64)
        style = _float_style(shown, options)
    else:
        style = _plain_style(shown)
    return _format_nested(shown.tolist(), cut, indent, style, options)


def _edge_indices(length: int, is_cut: bool, edgeitems: int) -> np.ndarray:
    positions = np.arange(length)
    return positions[(positions < edgeitems) | (positions >= length - edgeitems)] if is_cut else positions


def _format_nested(values: Any, cut: list[bool], indent: int, style: _ElementStyle, options: PrintOptions) -> str:
    """Return nested lists as nested brackets; `cut` says for each dimension whether its middle is elided."""
    if not cut:
        return style.write(values)
    if len(cut) == 1:
        return _format_row(values, cut[0], indent, style, options)
    slices = [_format_nested(value, cut[1:], indent + 1, style, options) for value in values]
    if cut[0]:
        slices.insert(options.edgeitems, "...")
    return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(slices) + "]"


def _format_row(values: list, is_cut: bool, indent: int, style: _ElementStyle, options: PrintOptions) -> str:
    elements = [style.write(value) for value in values]
    if is_cut:
        elements.insert(options.edgeitems, " ..." if elements else "...")
    per_line = max(1, (options.linewidth - indent) // (style.width + len(", ")))
    lines = [", ".join(elements[start : start + per_line]) for start in range(0, len(elements), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _plain_style(array: np.ndarray) -> _ElementStyle:
    """Return integers and booleans, right-aligned."""
    width = max((len(str(value)) for value in array.ravel().tolist()), default=1)
    return _ElementStyle(lambda value: str(value).rjust(width), width)


def _float_style(array: np.ndarray, options: PrintOptions) -> _ElementStyle:
    """Return floating-point elements: whole numbers as `2.`, others with fixed digits, wide ranges in scientific notation.

    Zeros, infinities and NaNs don't influence the notation or the width, so they can be wider than their column.
    """
    telling = array[np.isfinite(array) & (array != 0)]
    if telling.size == 0:
        return _ElementStyle(_whole, 1)
    whole = bool(np.all(telling == np.ceil(telling)))
    scientific = _wants_scientific(np.abs(telling), whole) if options.sci_mode is None else options.sci_mode
    notation = f".{options.precision}{'e' if scientific else 'f'}"
    write = _whole if whole and not scientific else lambda value: format(value, notation)
    width = max(len(write(value)) for value in telling.tolist())
    return _ElementStyle(lambda value: write(value).rjust(width), width)


def _wants_scientific(magnitudes: np.ndarray, whole: bool) -> bool:
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else str(value)


def _complex_style(array: np.ndarray, options: PrintOptions) -> _ElementStyle:
    """Return a style in which real and imaginary parts each choose their own notation; the real part is aligned."""
    real, imaginary = _float_style(array.real, options), _float_style(array.imag, options)

    def write(value: complex) -> str:
        tail = imaginary.write(value.imag).lstrip()
        return real.write(value.real) + ("" if tail.startswith("-") else "+") + tail + "j"

    return _ElementStyle(write, real.width + imaginary.width + 1)
