"""Random calls of every aten operator beside PyTorch's: `python -m tests.fuzz_eager --trials 200`.

Compared are dtypes, sizes, strides, values, what is left in the arguments, and whether there is an error. Arguments fit one
another more often than not: dtypes, sizes that broadcast, dimensions that exist; tensors are often strided, expanded or empty,
and hold zeros, NaN, infinities and numbers at the ends of their ranges. A finding is replayed with `--only aten::add.Tensor --trial 17`.
The exit status is 1 if there was a finding.
"""

from __future__ import annotations

import functools
import random
import sys
import warnings

import numpy as np

import rushlight
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.schema import Argument
from tests import fuzz_arguments
from tests.ops.torch_oracle import array_of, to_torch, torch_operator

FLOATS = (rushlight.float32, rushlight.float64, rushlight.float16, rushlight.bfloat16)
WHOLE = (rushlight.int64, rushlight.int32, rushlight.int16, rushlight.int8, rushlight.uint8, rushlight.bool)
COMPLEX = (rushlight.complex64, rushlight.complex128)
SCALARS = (-2, -1, 0, 1, 2, 3, 0.5, -1.5, 2.0, float("inf"), float("nan"), True, False, 300, 1e6)
# Operators whose results are uninitialised memory, or depend on more than their arguments.
UNSPECIFIED = ("empty", "new_empty", "resize", "set_", "_fused", "record_stream", "_pin", "is_pinned", "_local_scalar")
# Errors of PyTorch for missing kernels: such calls may work here.
NO_KERNEL = (
    "not implemented for",
    "not supported",
    "not currently supported",
    "Could not run",
    "unsupported",
    "INTERNAL ASSERT",
)
INDEX_NAMES = ("index", "indices", "target", "offsets", "repeats", "tensor_indices_or_sections")
# Intended differences: part of an operator's name, and the kind of the finding.
KNOWN = {
    "special_airy_ai": "value",  # PyTorch's result has six digits
    "kaiser_window": "value",  # PyTorch's result has eight digits
    "bessel_i0": "value inf for", "i0": "value inf for",  # inputs are infinite
    "var_mean": "value", "std_mean": "value",  # the mean of infinities is infinite
    "gammaincc": "value", "igammac": "value",  # inputs are NaN, which PyTorch treats as a number
    "polynomial": "value",  # degree is NaN, or beyond 10^4 terms
    "polygamma": "value", "zeta": "value",  # at their poles
    # Vectors are unique only up to a factor.
    "linalg_svd": "value", "linalg_qr": "value", "geqrf": "value", "linalg_eig": "value",
    "randint": "dtype", "rand": "accepted", "unique_consecutive": "shape",  # called without the Python wrappers
    "native_dropout": ("dtype", "refused"),
    "elu": "accepted: RuntimeError: value cannot", "celu": "accepted: RuntimeError: value cannot",
    "logsumexp": "accepted", "kron": "accepted", "take_along_dim": ("accepted", "refused"),  # PyTorch's own faults
    "fft": "accepted: RuntimeError: MKL", "mkldnn": "crashes",
    "norm_except_dim": "accepted", "nanmedian": "value", "bincount": "dtype", "cross_entropy_loss": "value", "cov": "value",
    "special_i1": "value inf for", "modified_bessel_i1": "value inf for", "hfft": "value nan for",  # inputs are infinite
    "bucketize": "value", "searchsorted": "value",  # with NaN among the boundaries
    "cholesky_ex": "value", "aten::qr": "value",  # the factorization fails: the rest of the matrix is unspecified
    "linalg_det": "value nan for", "aten::std": "value inf for", "igamma_": "value",  # results exceed the range of the dtype
    "linalg_lstsq": "value",  # tolerance is NaN
    "kthvalue": "value",  # the index among equal values is unspecified
    "aten::fmod": "value",  # the divisor is denormal, for which PyTorch gives NaN
    "aten::svd": ("value", "refused"),  # vectors are unique only up to a sign; matrices may be non-finite
    "matrix_exp": "refused: RuntimeError: matrix_exp: Low precision",  # PyTorch's results are wrong
    "window": "refused: RuntimeError", "mode": "refused: NotImplementedError",  # one element, for which PyTorch checks less
    "fake_quantize": "refused: NotImplementedError",  # bfloat16
    "pixel_unshuffle": "shape", "fft_rfftfreq": "shape", "to.dtype_layout": "strides",  # PyTorch's own faults
    "empty_strided": "refused", "aten::contiguous": "refused", "lu_unpack": "refused",
    "searchsorted.Scalar": "refused", "pinv": "refused",  # PyTorch checks less
    "aten::linear": "accepted", "nll_loss2d": "accepted", "native_batch_norm": "accepted", "aten::normal": "accepted",
    "native_group_norm": "accepted", "logspace": "accepted", "norm.ScalarOpt_dtype": "accepted", "upsample": "accepted",
    "fftshift": "accepted", "frobenius_norm": "accepted", "index_copy": "accepted", "index_put": "accepted",
    "isin.Tensor_Tensor": "accepted", "affine_grid": "accepted",
    # Inputs are complex halves.
    "matrix_rank": ("accepted", "refused"), "vecdot": "accepted", "poisson": "refused", "rrelu_": "refused", "not_equal": "refused", "aten::ne": "refused",
    # Results may be row-major or keep the order of the arguments.
    "conj_physical": "strides", "aten::lerp": "strides", "isin": "strides", "ormqr": "strides",
    "pad_sequence": "strides", "svd": "strides", "aten::take": "strides",
    "pow.Scalar": "strides", "slice_scatter": "strides", "irfftn": "strides", "log_sigmoid": "strides", "triangular_solve": "strides", "lstsq": "strides",
    "chain_matmul": "strides", "rrelu": "strides", "aten::where": "strides", "heaviside": "strides",
}  # fmt: skip
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9, "complex64": 5e-5, "complex128": 1e-9}


class Calls:
    """Arguments of one trial, drawn with one generator."""

    def __init__(self, op: OpOverload, trial: int) -> None:
        self.choose = random.Random(f"{op.name} {trial}")
        choose = self.choose
        self.shape = tuple(choose.choice((1, 1, 2, 2, 3, 4, 0)) for _ in range(choose.choice((0, 1, 1, 2, 2, 3, 4))))
        if choose.random() < 0.25 and len(self.shape) >= 2:
            self.shape = (*self.shape[:-2], self.shape[-1], self.shape[-1])
        self.dtype = choose.choice((rushlight.float32,) * 4 + FLOATS + WHOLE + COMPLEX)

    def make(self, op: OpOverload) -> tuple[list, dict]:
        """Positional arguments and those by keyword."""
        args, kwargs = [], {}
        for argument in op._schema.arguments:
            if argument.has_default and self.choose.random() < 0.4:
                if argument.kwarg_only:
                    continue
                args.append(argument.default)
                continue
            value = self.value(argument)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return args, kwargs

    def value(self, argument: Argument) -> object:
        """A random value of the kind that the argument's schema names."""
        kind, choose = argument.type, self.choose
        if kind.optional and choose.random() < 0.3:
            return None
        if kind.is_list:
            return self.values(argument)
        if kind.base == "Tensor":
            return self.tensor(argument.name)
        if argument.name == "reduction":
            return choose.choice((0, 1, 2))
        if argument.name == "pin_memory":
            return None  # the Python wrappers refuse it
        if argument.name in ("interpolation_mode", "padding_mode"):
            return choose.choice((0, 1, 2))
        if kind.base == "int":
            return self.dim() if argument.name.startswith("dim") else choose.choice((-2, -1, 0, 0, 1, 1, 2, 3, 5))
        if kind.base == "Scalar":
            return choose.choice(SCALARS) if choose.random() < 0.9 else 1 + 2j
        if kind.base == "ScalarType":
            return choose.choice(FLOATS + WHOLE + COMPLEX)
        if kind.base == "Device":
            return None
        return choose.choice(fuzz_arguments.CHOICES[kind.base]) if kind.base in fuzz_arguments.CHOICES else None

    def values(self, argument: Argument) -> list:
        """A list: of tensors, sizes, or dimensions that differ."""
        kind, choose = argument.type, self.choose
        if kind.base == "Tensor":
            if argument.name in INDEX_NAMES:
                return [self.tensor("index") for _ in range(choose.choice((1, 1, 2)))]
            return [self.tensor("self") for _ in range(choose.choice((1, 2, 3)))]
        if kind.base == "int" and argument.name.startswith("dim"):
            dims = list(range(len(self.shape)))
            choose.shuffle(dims)
            chosen = dims if "permute" in argument.name or choose.random() < 0.3 else dims[: choose.choice((0, 1, 1, 2))]
            return [dim - len(dims) if choose.random() < 0.4 else dim for dim in chosen]
        if kind.base == "int" and argument.name in ("size", "shape") and choose.random() < 0.6:
            return list(self.shape)
        count = kind.length if kind.length and choose.random() < 0.9 else choose.choice((0, 1, 2, 2, 3, 4))
        return [choose.choice(fuzz_arguments.LIST_CHOICES.get(kind.base, (-1.0, 0.5, 2.0))) for _ in range(count)]

    def dim(self) -> int:
        """A dimension, mostly of the first tensor."""
        rank = len(self.shape)
        return self.choose.randrange(-rank, rank) if rank and self.choose.random() < 0.9 else self.choose.choice((0, -1, 1, 7))

    def tensor(self, name: str) -> rushlight.Tensor:
        """A tensor; the first of a call has its shape and dtype, the others mostly fit."""
        choose = self.choose
        shape, dtype, kind = self.shape, self.dtype, choose.random()
        if name not in ("self", "input"):
            if kind < 0.2:
                shape = tuple(1 if choose.random() < 0.5 else size for size in shape)[choose.choice((0, 0, 1)) :]
            elif kind < 0.3:
                shape = tuple(reversed(shape))
            elif kind < 0.4:
                shape = tuple(choose.choice((1, 2, 3)) for _ in range(choose.choice((0, 1, 2))))
            if choose.random() < 0.25:
                dtype = choose.choice(FLOATS + WHOLE + COMPLEX)
        if name in INDEX_NAMES:
            dtype = choose.choice((rushlight.int64,) * 5 + (rushlight.int32, rushlight.bool, rushlight.float32))
        elif name in ("mask", "condition"):
            dtype = choose.choice((rushlight.bool,) * 5 + (rushlight.uint8, rushlight.float32))
        return self.laid_out(shape, dtype, name in INDEX_NAMES)

    def laid_out(self, shape: tuple[int, ...], dtype: rushlight.dtype, is_index: bool) -> rushlight.Tensor:
        """A tensor of the shape in a random memory layout."""
        choose = self.choose
        kind = choose.random()
        if kind < 0.15 and len(shape) > 1:
            return self.filled(tuple(reversed(shape)), dtype, is_index).permute(*reversed(range(len(shape))))
        if kind < 0.25 and shape:
            return self.filled((*shape[:-1], 2 * shape[-1]), dtype, is_index)[..., ::2]
        if kind < 0.35 and shape:
            return self.filled((shape[0] + 1, *shape[1:]), dtype, is_index)[1:]
        if kind < 0.42 and shape and shape[0]:
            return self.filled((1, *shape[1:]), dtype, is_index).expand(shape)
        if kind < 0.5 and len(shape) == 4:
            return self.filled(shape, dtype, is_index).contiguous(memory_format=rushlight.channels_last)
        return self.filled(shape, dtype, is_index)

    def filled(self, shape: tuple[int, ...], dtype: rushlight.dtype, is_index: bool) -> rushlight.Tensor:
        """Contiguous values: small numbers, and special ones in every fourth tensor."""
        draw = np.random.default_rng(self.choose.getrandbits(32))
        if is_index:
            values = draw.integers(0, max(1, min((size for size in self.shape if size), default=1)), shape)
        elif dtype.is_floating_point or dtype.is_complex:
            values = draw.uniform(-3, 3, shape)
            if dtype.is_complex:
                values = values + 1j * draw.uniform(-3, 3, shape)
            if self.choose.random() < 0.25:
                special = draw.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, 1e-40], shape)
                values = np.where(draw.random(shape) < 0.3, special, values)
        else:
            low = 0 if dtype in (rushlight.uint8, rushlight.bool) else -3
            values = draw.integers(low, 4, shape)
            if self.choose.random() < 0.25 and dtype is not rushlight.bool:
                info = rushlight.iinfo(dtype)
                values = np.where(draw.random(shape) < 0.3, draw.choice([0, info.min, info.max], shape), values)
        return rushlight.from_numpy(np.array(values)).to(dtype)


@functools.cache
def pytorch():
    """PyTorch, in one thread, without warnings."""
    import torch

    torch.set_num_threads(1)
    return torch


def outcome(library: object, op: object, args: list, kwargs: dict) -> tuple[list, Exception | None]:
    """The result's tensors and numbers, then the arguments' tensors; and the error."""
    library.manual_seed(0)
    try:
        result = op(*args, **kwargs)
    except Exception as error:
        return [], error
    return [*flat(result), *flat(args), *flat(list(kwargs.values()))], None


def flat(value: object) -> list:
    """Tensors and numbers of nested lists and tuples."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value] if hasattr(value, "stride") or isinstance(value, bool | int | float | complex) else []


def difference(ours: object, theirs: object, values: bool, tolerance: float) -> str | None:
    """The difference between a tensor or number and PyTorch's; inexact ones must differ by more than the tolerance."""
    if hasattr(ours, "stride") != hasattr(theirs, "stride"):
        return f"{type(ours).__name__} for {type(theirs).__name__}"
    if not hasattr(ours, "stride"):
        return None if ours == theirs or ours != ours and theirs != theirs or not values else f"{ours!r} for {theirs!r}"
    dtype = str(theirs.dtype).removeprefix("torch.")
    if ours.dtype.name != dtype:
        return f"dtype {ours.dtype.name} for {dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
    if ours.numel() > 1:
        strides = [
            (mine, other) for mine, other, size in zip(ours.stride(), theirs.stride(), ours.shape, strict=True) if size > 1
        ]
        if any(mine != other for mine, other in strides):
            return f"strides {ours.stride()} for {theirs.stride()} of {tuple(ours.shape)}"
    if not values or not ours.numel():
        return None
    return different_values(array_of(ours), array_of(theirs), tolerance if TOLERANCES.get(dtype) else 0)


def different_values(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> str | None:
    """Positions where two arrays of one shape and dtype differ by more than rounding."""
    if ours.dtype.kind == "c":  # it is unspecified which part of an infinite complex number is NaN
        finite = np.isfinite(ours) & np.isfinite(theirs)
        same = (np.isfinite(ours) == np.isfinite(theirs)) | (np.abs(np.where(finite, ours, 0)) > 1e15)
    else:
        finite = np.isfinite(ours) & np.isfinite(theirs) if ours.dtype.kind == "f" else np.ones(ours.shape, bool)
        same = finite | (ours == theirs) | ((ours != ours) & (theirs != theirs))
    with np.errstate(all="ignore"):
        known = np.where(finite, theirs, 0)
        size = np.abs(known) + (np.abs(known).max(initial=0) if tolerance else 0)
        mine = np.where(finite, ours, 0)
        near = np.abs(mine - known) <= tolerance * np.maximum(size, 1) if tolerance else mine == known
    wrong = ~(same & near)
    if not wrong.any():
        return None
    place = tuple(int(each[0]) for each in np.nonzero(wrong)) if wrong.ndim else ()
    return f"value {ours[place].item()!r} for {theirs[place].item()!r} at {place}"


def finding(op: OpOverload, trial: int) -> str | None:
    """The unintended difference from PyTorch in one trial."""
    found = unlike(op, trial)
    known = found and any(part in op.name and found.startswith(kind) for part, kind in KNOWN.items())
    return None if known else found


def unlike(op: OpOverload, trial: int) -> str | None:
    """Any difference from PyTorch in one trial."""
    torch = pytorch()
    if op._schema.name.startswith(("_", "mkldnn")) or "backward" in op.name:
        return None  # PyTorch's internal operators do not check their arguments
    try:
        other = torch_operator(torch, op)
    except AttributeError:
        return None
    args, kwargs = Calls(op, trial).make(op)
    others = [to_other(torch, value) for value in args]
    other_kwargs = {name: to_other(torch, value) for name, value in kwargs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, refused = outcome(torch, other, others, other_kwargs)
        if isinstance(refused, NotImplementedError | AttributeError) or refused and any(s in str(refused) for s in NO_KERNEL):
            return None
        ours, failed = outcome(rushlight, op, args, kwargs)
    if failed or refused:
        if failed and (refused or any(hasattr(leaf, "stride") and not leaf.numel() for leaf in [*flat(args), *theirs])):
            return None  # PyTorch checks less if there is nothing to compute
        if failed and "refers to a single memory location" in str(failed):
            return None  # PyTorch writes to overlapping memory if all values agree, or only warns
        first = str(failed or refused).partition("\n")[0]
        return f"{'refused' if failed else 'accepted'}: {type(failed or refused).__name__}: {first}"
    values = not any(part in op.name for part in UNSPECIFIED)
    tolerance = max((TOLERANCES.get(leaf.dtype.name, 0) for leaf in ours if isinstance(leaf, rushlight.Tensor)), default=0)
    for mine, known in zip(ours, theirs, strict=False):
        found = difference(mine, known, values, tolerance)
        if found is not None and not (found.startswith("strides") and has_expanded_of_other_dtype(args)):
            return found
    return None if len(ours) == len(theirs) else f"{len(ours)} values for {len(theirs)}"


def has_expanded_of_other_dtype(args: list) -> bool:
    """Whether an expanded argument is converted first: PyTorch's iterators then see the strides of the converted one."""
    tensors = [leaf for leaf in flat(args) if isinstance(leaf, rushlight.Tensor)]
    kinds = {tensor.dtype for tensor in tensors}
    is_converted = len(kinds) > 1 or all(kind.is_integral for kind in kinds)
    return is_converted and any(0 in tensor.stride() for tensor in tensors)


def to_other(torch: object, value: object) -> object:
    """Converts an argument to PyTorch's."""
    if isinstance(value, rushlight.memory_format | rushlight.layout):
        return getattr(torch, str(value).removeprefix("torch."))
    return to_torch(torch, value)


if __name__ == "__main__":
    sys.exit(fuzz_arguments.main("tests.fuzz_eager", __doc__, finding, lambda op, trial: Calls(op, trial).make(op)))
