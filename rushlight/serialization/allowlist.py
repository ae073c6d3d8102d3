"""The allow-list: the globals that a checkpoint may refer to, and their values here.

In: a module and a name from a pickle. Out: a dtype or another inert value, or a `Constructor` that checks its
arguments. None of them is looked up by import, so a name outside the list costs an UnpicklingError and nothing else.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial
from typing import Any

from rushlight.core.device import device
from rushlight.core.dtype import ALL, BITS_TYPES, QUANTIZED_TYPES, STORED_TYPES, dtype
from rushlight.core.layout import LAYOUTS, layout
from rushlight.core.lazy_module import LazyModule
from rushlight.core.qscheme import SCHEMES
from rushlight.core.size import Size
from rushlight.core.storage import UntypedStorage
from rushlight.core.tensor import Tensor
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.copying import rebuild_subclass
from rushlight.ops.lazy_views import with_metadata
from rushlight.quantized.blocks import rebuild_block_tensor
from rushlight.quantized.saved import ScriptObject
from rushlight.quantized.weights import rebuild_integer_weight
from rushlight.serialization import rebuild
from rushlight.serialization.dtypes import DTYPE_OF_STORAGE
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.unpickler import Constructor, Unpickler

quantized = LazyModule("rushlight.serialization.quantized")
sparse = LazyModule("rushlight.serialization.sparse")


class StorageKind:
    """A storage class as named by a persistent id; `dtype` is None for an untyped storage."""

    __slots__ = ("name", "dtype")

    def __init__(self, name: str, element_type: dtype | None):
        self.name = name
        self.dtype = element_type

    def __repr__(self) -> str:
        return f"<{self.name} of a checkpoint>"


_MODULE_ALIASES = {"__builtin__": "builtins", "torch.nn.parameter": "torch.nn"}
_LATIN1 = ("latin1", "latin-1", "iso-8859-1")
_UNSUPPORTED = {
    "torch._utils._rebuild_nested_tensor": "nested tensors",
    "torch._utils._rebuild_device_tensor_from_numpy": "tensors of other devices",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "tensors of other devices",
}


def find_inert(module: str, name: str) -> Any:
    """Return the allow-list's value of `module.name`; None if it is not there."""
    return _ALLOWED.get(f"{_MODULE_ALIASES.get(module, module)}.{name}")


def find_global(module: str, name: str) -> Any:
    """Return the value of `module.name`; UnpicklingError, naming it and the allowed ones, if it is not on the list."""
    qualified = f"{_MODULE_ALIASES.get(module, module)}.{name}"
    if qualified in _ALLOWED:
        return _ALLOWED[qualified]
    if qualified in _UNSUPPORTED:
        raise UnpicklingError(f"the checkpoint holds {_UNSUPPORTED[qualified]} ({qualified}), which are not supported")
    full, short = qualified[:200], name[:200]
    raise UnpicklingError(
        f"Weights only load failed. Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{short}])` or the `torch.serialization.safe_globals([{short}])` context "
        "manager to allowlist this global if you trust this class/function. It was neither imported nor run. A file from "
        "someone whom you trust can be loaded with weights_only=False, which runs its code; of a whole module, save the "
        "state_dict() instead"
    )


def _expect(name: str, args: tuple, *kinds: type | tuple[type, ...] | None, optional: int = 0) -> None:
    """Raise UnpicklingError unless `args` have exactly these types (None admits all); the last `optional` ones may be
    missing.
    """
    if not len(kinds) - optional <= len(args) <= len(kinds):
        raise UnpicklingError(f"{name} is given {len(args)} arguments, and takes {len(kinds)}")
    for position, (value, kind) in enumerate(zip(args, kinds, strict=False)):
        if kind is not None and not isinstance(value, kind):
            raise UnpicklingError(f"argument {position} of {name} is a {type(value).__name__}")


def _charge_length(machine: Unpickler, values: Any) -> Any:
    machine.charge(len(values))
    return values


def _ordered_dict(machine: Unpickler, args: tuple) -> OrderedDict:
    _expect("OrderedDict", args, list, optional=1)
    made = OrderedDict()
    for pair in _charge_length(machine, args[0]) if args else ():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UnpicklingError("OrderedDict is given something other than pairs")
        machine.set_items(made, list(pair))
    return made


def _counter(machine: Unpickler, args: tuple) -> Counter:
    _expect("Counter", args, dict, optional=1)
    made = Counter()
    for key, count in _charge_length(machine, args[0]).items() if args else ():
        made[key] = count
    return made


def _set(machine: Unpickler, args: tuple) -> set:
    _expect("set", args, list, optional=1)
    made = set()
    for element in _charge_length(machine, args[0]) if args else ():
        machine.keys.check(element)
        made.add(element)
    return made


def _encode(machine: Unpickler, args: tuple) -> bytes:
    _expect("_codecs.encode", args, str, str)
    if args[1].lower() not in _LATIN1:
        raise UnpicklingError("_codecs.encode is asked for an encoding other than latin1, by which pickles write bytes")
    try:
        return _charge_length(machine, args[0]).encode("latin1")
    except UnicodeEncodeError:
        raise UnpicklingError("_codecs.encode is given a string that is not latin1") from None


def _bytearray(machine: Unpickler, args: tuple) -> bytearray:
    if len(args) == 2:
        return bytearray(_encode(machine, args))
    _expect("bytearray", args, bytes, optional=1)
    return bytearray(_charge_length(machine, args[0])) if args else bytearray()


def _bytes(machine: Unpickler, args: tuple) -> bytes:
    # Pickle protocol 2 writes `b""` as a call of bytes without arguments.
    _expect("bytes", args)
    return b""


def _complex(machine: Unpickler, args: tuple) -> complex:
    _expect("complex", args, float, float)
    return complex(*args)


def _size(machine: Unpickler, args: tuple) -> Size:
    _expect("torch.Size", args, (tuple, list))
    if any(type(size) is not int for size in args[0]):
        raise UnpicklingError("torch.Size is given something other than integers")
    return Size(_charge_length(machine, args[0]))


def _device(machine: Unpickler, args: tuple) -> device:
    _expect("torch.device", args, str, (int, type(None)), optional=1)
    if len(args[0]) > 50:
        raise UnpicklingError("torch.device is given a name that is too long")
    try:
        return device(*args)
    except RuntimeError as error:
        raise UnpicklingError(f"the checkpoint holds a device that rushlight does not have: {error}") from None


def _layout(machine: Unpickler, args: tuple) -> Any:
    _expect("torch.serialization._get_layout", args, str)
    for known in LAYOUTS:
        if str(known) == args[0]:
            return known
    raise UnpicklingError(f"the checkpoint holds the layout {args[0][:50]!r}, and rushlight has none of that name")


def _untype_storage(storage: TypedStorage | UntypedStorage) -> tuple[UntypedStorage, dtype]:
    if isinstance(storage, UntypedStorage):
        raise UnpicklingError("a tensor without dtype is made of an untyped storage")
    return storage.untyped(), storage.dtype


def _lazy_view(tensor: Tensor, metadata: dict | None = None) -> Tensor:
    """Return the lazy conjugate or negative view of a tensor, according to the metadata saved with it."""
    if not metadata:
        return tensor
    if any(name not in ("conj", "neg") or type(value) is not bool for name, value in metadata.items()):
        raise UnpicklingError("what is saved beside a tensor says other things than whether it is a conjugate or a negative")
    if metadata.get("conj") and not tensor.is_complex():
        raise UnpicklingError("a tensor of real numbers is said to be the conjugate of its storage")
    return with_metadata(tensor, metadata)


_HOOKS = (OrderedDict, dict, type(None))
_METADATA = (dict, type(None))


def _no_hooks(hooks: Any) -> None:
    if hooks:
        raise UnpicklingError("a tensor carries backward hooks, which are code and cannot be loaded")


def _tensor_v1(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_tensor", args, (TypedStorage, UntypedStorage), int, (tuple, list), (tuple, list))
    return rebuild.make_tensor(*_untype_storage(args[0]), *args[1:])


def _tensor_v2(machine: Unpickler, args: tuple) -> Tensor:
    kinds = ((TypedStorage, UntypedStorage), int, (tuple, list), (tuple, list), bool, _HOOKS, _METADATA)
    _expect("_rebuild_tensor_v2", args, *kinds, optional=1)
    _no_hooks(args[5])
    return _lazy_view(rebuild.make_tensor(*_untype_storage(args[0]), *args[1:5]), *args[6:])


def _tensor_v3(machine: Unpickler, args: tuple) -> Tensor:
    kinds = ((TypedStorage, UntypedStorage), int, (tuple, list), (tuple, list), bool, _HOOKS, dtype, _METADATA)
    _expect("_rebuild_tensor_v3", args, *kinds, optional=1)
    _no_hooks(args[5])
    storage = args[0] if isinstance(args[0], UntypedStorage) else args[0].untyped()
    return _lazy_view(rebuild.make_tensor(storage, args[6], *args[1:5]), *args[7:])


def _meta_tensor(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_meta_tensor_no_storage", args, dtype, (tuple, list), (tuple, list), bool)
    return rebuild.make_meta_tensor(*args)


def _quantized_tensor(machine: Unpickler, args: tuple) -> Tensor:
    kinds = ((TypedStorage, UntypedStorage), int, (tuple, list), (tuple, list), tuple, bool, _HOOKS)
    _expect("_rebuild_qtensor", args, *kinds)
    _no_hooks(args[6])
    if args[5]:
        raise UnpicklingError("a quantized tensor requires grad, and only floating and complex ones can")
    return quantized.rebuild_quantized(*args[:5])


def _packed_weights(machine: Unpickler, args: tuple) -> ScriptObject:
    _expect("ScriptObject", args)
    return ScriptObject()


def _block_tensor(machine: Unpickler, args: tuple) -> Tensor:
    _expect("rebuild_block_tensor", args, Tensor, str, dtype, bool)
    try:
        return rebuild_block_tensor(*args)
    except (RuntimeError, ValueError) as error:
        raise UnpicklingError(f"a tensor in blocks contradicts itself: {error}") from error


def _integer_weight(machine: Unpickler, args: tuple) -> Tensor:
    _expect("rebuild_integer_weight", args, Tensor, Tensor, str, bool)
    try:
        return rebuild_integer_weight(*args)
    except (RuntimeError, ValueError) as error:
        raise UnpicklingError(f"a weight of integers contradicts itself: {error}") from error


def _sparse_tensor(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_sparse_tensor", args, layout, tuple)
    return sparse.rebuild_sparse(*args)


def _parameter(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_parameter", args, Tensor, bool, _HOOKS)
    _no_hooks(args[2])
    return rebuild.make_parameter(args[0], args[1])


def _parameter_with_state(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_parameter_with_state", args, Tensor, bool, _HOOKS, dict)
    _no_hooks(args[2])
    return rebuild.set_attributes(rebuild.make_parameter(args[0], args[1]), args[3])


def _tensor_with_state(machine: Unpickler, args: tuple) -> Tensor:
    _expect("_rebuild_from_type_v2", args, Constructor, (Constructor, type), tuple, None)
    inner, kind, inner_args, state = args
    if machine.is_trusted(kind) and inner.build in _TENSOR_BUILDERS:
        return rebuild_subclass(partial(inner.build, machine), kind, (inner_args,), state)
    _expect("_rebuild_from_type_v2", args, Constructor, (Constructor, type), tuple, dict)
    name = kind.name if isinstance(kind, Constructor) else f"{kind.__module__}.{kind.__qualname__}"
    if inner.build not in _TENSOR_BUILDERS or name not in ("torch.Tensor", "torch.nn.Parameter"):
        raise UnpicklingError(f"a tensor is rebuilt by {inner.name} as a {name}, which is not supported")
    return rebuild.set_attributes(inner.build(machine, inner_args), state)


def _wrapper(machine: Unpickler, args: tuple) -> Tensor:
    name = "_rebuild_wrapper_subclass"
    _expect(name, args, (Constructor, type), dtype, (tuple, list), (tuple, list), int, layout, device, bool)
    if not machine.is_trusted(args[0]):
        raise UnpicklingError(f"{name} is given a {args[0]}, which is no class that the user vouches for")
    return rebuild.make_wrapper(*args)


def _named_only(machine: Unpickler, args: tuple) -> Any:
    raise UnpicklingError("torch.Tensor and torch.nn.Parameter are called as functions, which checkpoints do not do")


_TENSOR_BUILDERS = (_tensor_v1, _tensor_v2, _tensor_v3, _meta_tensor, _parameter, _wrapper)

_CONSTRUCTORS = {
    "collections.OrderedDict": _ordered_dict,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "builtins.bytearray": _bytearray,
    "builtins.bytes": _bytes,
    "builtins.complex": _complex,
    "_codecs.encode": _encode,
    "torch.ScriptObject": _packed_weights,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _layout,
    "torch.Tensor": _named_only,
    "torch.nn.Parameter": _named_only,
    "torch._utils._rebuild_tensor": _tensor_v1,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_qtensor": _quantized_tensor,
    "torch._utils._rebuild_sparse_tensor": _sparse_tensor,
    "torch.quantized.blocks.rebuild_block_tensor": _block_tensor,
    "torch.quantized.weights.rebuild_integer_weight": _integer_weight,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _tensor_with_state,
}

_DTYPES = (*ALL, *QUANTIZED_TYPES, *STORED_TYPES, *BITS_TYPES)
_ALLOWED: dict[str, Any] = {name: Constructor(name, build) for name, build in _CONSTRUCTORS.items()}
_ALLOWED.update({f"torch.{element_type.name}": element_type for element_type in _DTYPES})
_ALLOWED.update({f"torch.{name}": scheme for name, scheme in SCHEMES.items()})
for _module in ("torch", "torch.cuda"):
    for _name, _dtype in DTYPE_OF_STORAGE.items():
        _ALLOWED[f"{_module}.{_name}"] = StorageKind(f"{_module}.{_name}", _dtype)
for _name in ("torch.UntypedStorage", "torch.storage.UntypedStorage"):
    _ALLOWED[_name] = StorageKind(_name, None)
