"""The public surface of the operators: a function per aten operator, and a Tensor method where the first argument is `self`.

Sizes may be given one by one (`x.view(2, 3)`), `input` may name `self`, NumPy's `axis` and `keepdims` are accepted, and
`out` takes the result of any operator.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from rushlight.core import function_modes
from rushlight.core.device import as_device, device, gpus
from rushlight.core.overrides import ask, asks_modes, call_override, overriding_arguments
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops import complex_methods, copying, functional, indexing, methods, more_methods, operators
from rushlight.ops.construct import NO_PINNED_MEMORY, PYTHON_TYPES, requiring_gradient
from rushlight.ops.numbers import as_wrapped_operand
from rushlight.ops.out import check_target, dtype_by_target, write_out
from rushlight.ops.packet import OpOverloadPacket, namespaces
from rushlight.ops.return_types import has_named_results, return_type_of
from rushlight.ops.signatures import OperatorSignature, documentation

aten = namespaces.namespace("aten")
_RENAMED = {
    "axis": "dim", "keepdims": "keepdim", "input": "self", "axes": "dims", "split_size_or_sections": "split_size",
    "tensor": "self",
}  # fmt: skip
# Operators whose size list may be given as separate ints, and the position of that list.
_VARIADIC = {
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), 0),
    **dict.fromkeys(
        ("view", "reshape", "permute", "expand", "repeat", "tile", "flip", "sum_to_size", "new_zeros", "new_ones", "new_empty",
         "broadcast_to"), 1,
    ),
}  # fmt: skip
# Operators with a `dim` argument that also accept several dimensions as separate ints.
_SEVERAL_DIMENSIONS = frozenset({"squeeze"})
# Operators of two tensors that accept a number as the first one.
_FIRST_MAY_BE_NUMBER = frozenset("add sub subtract mul multiply div divide true_divide floor_divide".split())
# Operators that do not become methods of their own name, because the class Tensor or `methods` defines them.
_NO_METHOD = frozenset({"detach_", "numpy_T", "to", "mT", "mH"})


# Matches a schema whose first argument is a tensor called `self`.
_TAKES_SELF = re.compile(r"[^(]*\(Tensor(\([^)]*\))? self[,)]").match
# Prefixes of operators that are public only in a subpackage, without the prefix: `linalg_inv` is `rushlight.linalg.inv`.
_PACKAGES = ("linalg_", "fft_", "special_", "sparse_")
# In-place operators that are public functions, too; all others are methods only.
_IN_PLACE_FUNCTIONS = frozenset(
    "abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ "
    "atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_ erf_ "
    "erfc_ exp2_ exp_ expm1_ feature_alpha_dropout_ feature_dropout_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ "
    "ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_ resize_as_ round_ "
    "rrelu_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_".split()
)
# Operators without a public function: methods only, those in `nn.functional`, and internal parts of others.
_NO_FUNCTION = frozenset(
    "contiguous expand expand_as index mH mT new_empty new_empty_strided new_full new_ones new_zeros repeat reshape_as "
    "sum_to_size to type_as unfold values view view_as adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d "
    "adaptive_max_pool3d avg_pool2d avg_pool3d binary_cross_entropy col2im cross_entropy_loss elu fractional_max_pool2d "
    "fractional_max_pool3d gelu glu hardsigmoid hardswish hardtanh huber_loss im2col l1_loss leaky_relu linear log_sigmoid "
    "max_pool2d_with_indices max_pool3d_with_indices mish mse_loss multi_margin_loss multilabel_margin_loss nll_loss "
    "nll_loss2d nll_loss_nd one_hot pad pad_sequence relu6 scaled_dot_product_attention silu smooth_l1_loss "
    "soft_margin_loss softplus softshrink alias lift_fresh matrix_H nll_loss_forward numpy_T slice unique_dim".split()
)
# Backward operators that are public functions nevertheless: programs with their own dropout call this one.
_BACKWARD_FUNCTIONS = frozenset({"native_dropout_backward"})
# Functions that make tensors on the default device.
_ON_DEFAULT_DEVICE = frozenset(
    "arange bartlett_window blackman_window empty empty_permuted empty_quantized empty_strided eye fft_fftfreq fft_rfftfreq "
    "full hamming_window hann_window kaiser_window linspace logspace ones rand randint randn randperm scalar_tensor "
    "tril_indices triu_indices zeros".split()
)
# Operator -> the second name of its public function.
_ALIASES = {"_segment_reduce": "segment_reduce"}


def functions() -> dict[str, Callable]:
    """Return all public operator functions by name, except those in subpackages."""
    found = {}
    for name in dir(aten):
        packet = getattr(aten, name)
        hidden = name.startswith(_PACKAGES) or name.startswith("__")
        if not hidden and isinstance(packet, OpOverloadPacket):
            found[name] = make_function(packet)
    aliases = {alias: found[name] for alias, name in _ALIASES.items()}
    return {**found, **aliases, **functional.PUBLIC}


def is_function(name: str) -> bool:
    """Return whether operator `name` is a public function. `ops.aten` has all operators, Tensor those on a tensor."""
    if name in functional.PUBLIC or name in _IN_PLACE_FUNCTIONS or name in _BACKWARD_FUNCTIONS:
        return True
    inner = name.endswith("_backward") or name.startswith("upsample_") or name in _NO_FUNCTION
    return not (inner or (name.endswith("_") and not name.startswith("_")))


def functions_of(package: str) -> dict[str, Callable]:
    """Return the public functions of a subpackage by name: "linalg" gives those of the operators `linalg_*`, without the
    prefix."""
    found = {}
    for name in dir(aten):
        packet = getattr(aten, name)
        if name.startswith(f"{package}_") and isinstance(packet, OpOverloadPacket):
            function = found[name.removeprefix(f"{package}_")] = make_function(packet)
            function.__module__ = f"rushlight.{package}"
    return found


def install_methods(public: dict[str, Callable]) -> None:
    """Attach operators to Tensor as methods, and Python's operators."""
    for name, function in public.items():
        hidden = name.startswith("_") or name in _NO_METHOD or name in functional.PUBLIC
        if not hidden and _is_method(getattr(aten, name)):
            setattr(Tensor, name, function)
    for name in functional.METHODS:
        setattr(Tensor, name, functional.PUBLIC[name])
    methods.install()
    more_methods.install()
    complex_methods.install()
    operators.install()
    copying.install()
    for method in (indexing.getitem, indexing.setitem):
        method.__name__ = f"__{method.__name__.strip('_')}__"
        method.__qualname__ = f"Tensor.{method.__name__}"
        setattr(Tensor, method.__name__, method)


def _is_method(packet: OpOverloadPacket) -> bool:
    return any(_TAKES_SELF(op.declaration) for op in packet._declared)


def make_function(packet: OpOverloadPacket) -> Callable:
    """Return the public function of an operator name."""
    position = _VARIADIC.get(packet.__name__)
    named = has_named_results(packet)
    special = position is not None or named

    def function(*args, **kwargs):
        if function_modes.entered and asks_modes():
            return ask(packet.public, args, kwargs)
        if position is not None and len(args) > position:
            args = _gather_sizes(args, position)
        result = packet(*args) if not kwargs else _call_with_keywords(packet, args, kwargs)
        return return_type_of(packet)(*result) if named and type(result) is tuple else result

    def plain_function(*args, **kwargs):
        return packet(*args) if not kwargs else _call_with_keywords(packet, args, kwargs)

    def function_of_dimensions(self, *dims, **kwargs):
        return plain_function(self, *(dims if len(dims) < 2 else (dims,)), **kwargs)

    def function_of_numbers(*args, **kwargs):
        if args and type(args[0]) in (int, float, bool, complex):
            args = (_first_operand(*args), *args[1:])
        return plain_function(*args, **kwargs)

    made = packet.public = function if special else plain_function
    if packet.__name__ in _SEVERAL_DIMENSIONS:
        made = packet.public = function_of_dimensions
    elif packet.__name__ in _FIRST_MAY_BE_NUMBER:
        made = packet.public = function_of_numbers
    if packet.__name__ in _ON_DEFAULT_DEVICE:
        made = packet.public = _on_default_device(made)
    made.__name__ = made.__qualname__ = packet.__name__
    made._asks_modes = True
    made.__module__ = "rushlight" if is_function(packet.__name__) else "rushlight.ops.aten"
    made.__doc__ = documentation(packet)
    made.__signature__ = OperatorSignature(packet)
    return made


def _first_operand(number: complex, other: object = None, *_: object) -> Tensor:
    """Return a number that is the first operand as a tensor that takes part in type promotion like a number."""
    if isinstance(other, Tensor):
        return as_wrapped_operand(number, other)
    return aten.full.default((), number)


def _on_default_device(function: Callable) -> Callable:
    """Wrap a factory `function` so that it uses the thread's default device unless one is given."""

    def factory(*args, **kwargs):
        if function_modes.entered and asks_modes():
            return ask(factory, args, kwargs)
        if state.default_device is not None and kwargs.get("device") is None:
            kwargs["device"] = state.default_device
        return function(*args, **kwargs)

    return factory


def _gather_sizes(args: tuple, position: int) -> tuple:
    first = args[position]
    if isinstance(first, int | np.integer) or (isinstance(first, Tensor) and first.dim() == 0):
        return (*args[:position], args[position:])
    return args


def _call_with_keywords(packet: OpOverloadPacket, args: tuple, kwargs: dict) -> object:
    if function_modes.entered and asks_modes():
        return ask(packet.public, args, kwargs)
    known = packet.argument_names
    kwargs = {name if name in known else _RENAMED.get(name, name): value for name, value in kwargs.items()}
    out = kwargs.pop("out", None) if "out" not in known else None
    wants_grad = kwargs.pop("requires_grad", False) if "device" in known else False
    pins = bool(kwargs.get("pin_memory"))
    if pins:
        if not gpus.count():
            raise RuntimeError(NO_PINNED_MEMORY)
        del kwargs["pin_memory"]
    kind = kwargs.get("dtype")
    if isinstance(kind, type) and kind in PYTHON_TYPES:
        kwargs["dtype"] = PYTHON_TYPES[kind]
    if "self" in kwargs:
        position = packet._overloads[0]._schema.positions.get("self", 0)
        args = (*args[:position], kwargs.pop("self"), *args[position:])
    if out is not None:
        deciding = overriding_arguments((*args, out), kwargs)
        if deciding:
            return call_override(packet.public, deciding, args, {**kwargs, "out": out})
        return _call_with_out(packet, out, args, kwargs)
    result = packet(*args, **kwargs)
    if pins:
        result = result.pin_memory()
    return requiring_gradient(result) if wants_grad else result


def _device_of_target(out: Tensor, wanted: device | str | int | None) -> device:
    """Return the device of a factory's target; RuntimeError if the call names another one."""
    found = out.device if wanted is None else as_device(wanted)
    if found.type != out.device.type:
        raise RuntimeError(f"device type {found.type} does not match device type of out parameter ({out.device.type})")
    return out.device


def _call_with_out(packet: OpOverloadPacket, out: Tensor | tuple, args: tuple, kwargs: dict) -> Tensor | tuple:
    is_factory = any(argument.name == "device" for argument in packet._overloads[0]._schema.arguments)
    if is_factory and isinstance(out, Tensor):
        kind = kwargs.get("dtype") or out.dtype
        if kind is not out.dtype:
            raise RuntimeError(
                f"dtype {kind.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})"
            )
        if kwargs.get("layout") not in (None, out.layout):
            raise RuntimeError(f"layout {kwargs['layout']} does not match layout of out parameter ({out.layout})")
        kwargs["dtype"] = kind
        kwargs["device"] = _device_of_target(out, kwargs.get("device"))
    elif kwargs.get("dtype") is None and (kind := dtype_by_target(packet.__name__, out)) is not None:
        kwargs["dtype"] = kind
    check_target(packet.__name__, out)
    return write_out(packet.__name__, out, packet(*args, **kwargs), (*args, *kwargs.values()))
