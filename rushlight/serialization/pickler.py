"""Pickler: writes the pickle of a checkpoint, in the form that torch writes and every torch since 1.6 reads.

In: an object made of what checkpoints hold. Out: pickle bytes of protocol 2, and the storages that it refers to by key.
Standard `pickle` imports the globals that it writes, but torch need not be installed, so this module emits the instructions
itself.
"""

from __future__ import annotations

import pickle
import struct
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight.core.device import device
from rushlight.core.dtype import QUANTIZED, dtype
from rushlight.core.layout import layout, strided
from rushlight.core.size import Size
from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.core.tensor import Tensor
from rushlight.core.typed_storage import TypedStorage
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.copying import is_wrapper
from rushlight.ops.lazy_views import metadata_of
from rushlight.quantized import saved as packed
from rushlight.serialization.dtypes import STORAGE_NAMES
from rushlight.serialization.errors import PicklingError, SharedStorageError
from rushlight.serialization.objects import find_named, module_of, save_object
from rushlight.serialization.options import materializes_fakes, skips_data
from rushlight.serialization.quantized import quantized_arguments
from rushlight.serialization.sparse import sparse_arguments


class Pickler:
    """Writes one object. `storages` lists the storages that the pickle refers to; a storage's key is its position.

    `module_of(value, name)` returns the module under which a class or function is written, `find_named(module, name)` the
    object there.
    """

    has_views = False
    """Whether storage ids have a field for a view, as in the older format; it is always None."""
    module_of = staticmethod(module_of)
    find_named = staticmethod(find_named)

    def __init__(self):
        self.out = bytearray()
        self.memo: dict[int, int] = {}
        self.kept: list[Any] = []
        self.global_memo: dict[str, int] = {}
        self.memo_size = 0
        self.unfinished: set[int] = set()
        self.storages: list[StorageImpl] = []
        self.storage_keys: dict[int, tuple[str, dtype | None]] = {}

    def dump(self, value: Any) -> bytes:
        """Return the pickle of `value`; PicklingError, naming the type, for a value that a checkpoint cannot hold."""
        self.out += pickle.PROTO + b"\x02"
        try:
            self.save(value)
        except RecursionError:
            raise PicklingError("the object is nested too deeply to be saved") from None
        self.out += pickle.STOP
        return bytes(self.out)

    def save(self, value: Any) -> None:
        """Write one value, or a reference if it was written before."""
        position = self.memo.get(id(value))
        if position is not None:
            self._write_get(position)
            return
        writer = _WRITERS.get(type(value)) or _writer_of_base(value)
        writer(self, value)

    def memoize(self, value: Any) -> None:
        """Remember the value on top of the stack, so that it is written once."""
        self.memo[id(value)] = self._write_put()
        # Keep objects alive, so that the ids in the memo stay unique.
        self.kept.append(value)

    def write_global(self, module: str, name: str) -> None:
        """Write the name of a global."""
        qualified = f"{module} {name}"
        if qualified in self.global_memo:
            self._write_get(self.global_memo[qualified])
            return
        self.out += pickle.GLOBAL + f"{module}\n{name}\n".encode()
        self.global_memo[qualified] = self._write_put()

    def write_call(self, module: str, name: str, args: tuple) -> None:
        """Write a global applied to arguments. Arguments are plain values, or functions that write themselves."""
        self.write_global(module, name)
        self.write_tuple(args)
        self.out += pickle.REDUCE

    def write_tuple(self, values: tuple) -> None:
        """Write a tuple without memoizing it."""
        if not values:
            self.out += pickle.EMPTY_TUPLE
            return
        self.out += pickle.MARK
        for value in values:
            if callable(value):
                value()
            else:
                self.save(value)
        self.out += pickle.TUPLE

    def write_ordered_dict(self) -> None:
        """Write an empty OrderedDict."""
        self.write_call("collections", "OrderedDict", ())

    def storage_key(self, storage: StorageImpl, element_type: dtype | None) -> str | int:
        """Return the key of a storage; PicklingError when it was already saved as another dtype."""
        if not storage.nbytes and self.storage_keys.get(id(storage), (None, element_type))[1] is not element_type:
            storage = UntypedStorage(0)._impl  # empty storages share no data: write a new one for each dtype
            self.kept.append(storage)
        if id(storage) not in self.storage_keys:
            self.storage_keys[id(storage)] = (str(len(self.storages)), element_type)
            self.storages.append(storage)
        key, first = self.storage_keys[id(storage)]
        if first is not element_type:
            raise SharedStorageError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{first} and {element_type}. clone() one of them before saving"
            )
        return key

    def element_types(self) -> list[dtype | None]:
        """Return the dtype under which each of `storages` was written; None for an untyped one."""
        return [kind for _, kind in self.storage_keys.values()]

    def _write_put(self) -> int:
        position = self.memo_size
        self.memo_size += 1
        if position < 256:
            self.out += pickle.BINPUT + bytes((position,))
        else:
            self.out += pickle.LONG_BINPUT + struct.pack("<I", position)
        return position

    def _write_get(self, position: int) -> None:
        if position < 256:
            self.out += pickle.BINGET + bytes((position,))
        else:
            self.out += pickle.LONG_BINGET + struct.pack("<I", position)


def _save_none(machine: Pickler, value: None) -> None:
    machine.out += pickle.NONE


def _save_bool(machine: Pickler, value: bool) -> None:
    machine.out += pickle.NEWTRUE if value else pickle.NEWFALSE


def _save_int(machine: Pickler, value: int) -> None:
    if 0 <= value < 1 << 8:
        machine.out += pickle.BININT1 + bytes((value,))
    elif 0 <= value < 1 << 16:
        machine.out += pickle.BININT2 + struct.pack("<H", value)
    elif -(1 << 31) <= value < 1 << 31:
        machine.out += pickle.BININT + struct.pack("<i", value)
    else:
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        length = pickle.LONG1 + bytes((len(raw),)) if len(raw) < 256 else pickle.LONG4 + struct.pack("<i", len(raw))
        machine.out += length + raw


def _save_float(machine: Pickler, value: float) -> None:
    machine.out += pickle.BINFLOAT + struct.pack(">d", value)


def _save_complex(machine: Pickler, value: complex) -> None:
    machine.write_call("__builtin__", "complex", (value.real, value.imag))


def _save_str(machine: Pickler, value: str) -> None:
    raw = value.encode("utf-8", "surrogatepass")
    machine.out += pickle.BINUNICODE + struct.pack("<I", len(raw)) + raw
    machine.memoize(value)


def _save_bytes(machine: Pickler, value: bytes) -> None:
    machine.write_call("_codecs", "encode", (value.decode("latin1"), "latin1"))
    machine.memoize(value)


def _save_bytearray(machine: Pickler, value: bytearray) -> None:
    machine.write_call("__builtin__", "bytearray", (bytes(value),))
    machine.memoize(value)


def _save_tuple(machine: Pickler, value: tuple) -> None:
    if id(value) in machine.unfinished:
        raise PicklingError("cannot save a tuple that contains itself")
    machine.unfinished.add(id(value))
    _write_elements(machine, value)
    machine.unfinished.discard(id(value))
    if value:
        machine.memoize(value)


def _write_elements(machine: Pickler, value: tuple) -> None:
    if not value:
        machine.out += pickle.EMPTY_TUPLE
        return
    machine.out += pickle.MARK
    for element in value:
        machine.save(element)
    machine.out += pickle.TUPLE


def _save_list(machine: Pickler, value: list) -> None:
    machine.out += pickle.EMPTY_LIST
    machine.memoize(value)
    if value:
        machine.out += pickle.MARK
        for element in value:
            machine.save(element)
        machine.out += pickle.APPENDS


def _save_dict(machine: Pickler, value: dict) -> None:
    machine.out += pickle.EMPTY_DICT
    machine.memoize(value)
    _write_items(machine, value)


def _write_items(machine: Pickler, value: dict) -> None:
    if not value:
        return
    machine.out += pickle.MARK
    for key, item in value.items():
        machine.save(key)
        machine.save(item)
    machine.out += pickle.SETITEMS


def _save_ordered_dict(machine: Pickler, value: OrderedDict) -> None:
    machine.write_ordered_dict()
    machine.memoize(value)
    _write_items(machine, value)
    if value.__dict__:
        machine.save(dict(value.__dict__))
        machine.out += pickle.BUILD


def _save_counter(machine: Pickler, value: Counter) -> None:
    machine.write_call("collections", "Counter", (dict(value),))
    machine.memoize(value)


def _save_set(machine: Pickler, value: set) -> None:
    machine.write_call("__builtin__", "set", (list(value),))
    machine.memoize(value)


def _save_size(machine: Pickler, value: Size) -> None:
    machine.write_call("torch", "Size", (tuple(value),))
    machine.memoize(value)


def _save_dtype(machine: Pickler, value: dtype) -> None:
    machine.write_global("torch", value.name)


def _save_device(machine: Pickler, value: device) -> None:
    machine.write_call("torch", "device", (value.type,) if value.index is None else (value.type, value.index))
    machine.memoize(value)


def _save_layout(machine: Pickler, value: layout) -> None:
    machine.write_call("torch.serialization", "_get_layout", (f"torch.{value.name}",))
    machine.memoize(value)


def _save_tensor(machine: Pickler, value: Tensor) -> None:
    kind, saved = type(value), value.__getstate__()
    if kind.__reduce_ex__ not in _OWN_REDUCTIONS:
        save_object(machine, value)
    elif kind in _PLAIN and (not saved or value.layout is not strided):
        _write_tensor(machine, value)
        machine.memoize(value)
    else:
        _save_with_state(machine, value, saved)


def _save_with_state(machine: Pickler, value: Tensor, saved: Any) -> None:
    """Write a tensor of a user's class, or one with Python attributes."""
    kind = type(value)
    name, write_arguments = _rebuild_function_name(value), partial(_tensor_arguments, machine, value)
    if is_wrapper(value):
        name, write_arguments = "_rebuild_wrapper_subclass", partial(_wrapper_arguments, machine, value)
    machine.write_call(
        "torch._tensor",
        "_rebuild_from_type_v2",
        (
            lambda: machine.write_global("torch._utils", name),
            lambda: machine.write_global("torch", "Tensor") if kind in _PLAIN else machine.save(kind),
            lambda: machine.write_tuple(write_arguments()),
            partial(machine.save, saved),
        ),
    )
    machine.memoize(value)


def _wrapper_arguments(machine: Pickler, value: Tensor) -> tuple:
    geometry = (tuple(value.shape), tuple(value.stride()), value.storage_offset())
    return (partial(machine.save, type(value)), value.dtype, *geometry, value.layout, value.device, value.requires_grad)


def _write_tensor(machine: Pickler, value: Tensor, requires_grad: bool | None = None) -> None:
    if skips_data() and value.is_meta:
        warnings.warn("Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=2)
    if value.dtype.category == QUANTIZED:
        arguments = quantized_arguments(value, machine, partial(_write_storage, machine))
        machine.write_call("torch._utils", "_rebuild_qtensor", arguments)
        return
    if value.layout is not strided:
        _save_sparse(machine, value)
        return
    machine.write_call("torch._utils", _rebuild_function_name(value), _tensor_arguments(machine, value, requires_grad))


def _save_sparse(machine: Pickler, value: Tensor) -> None:
    machine.write_call("torch._utils", "_rebuild_sparse_tensor", sparse_arguments(value))


def _rebuild_function_name(value: Tensor) -> str:
    """Return torch's function that rebuilds such a tensor; dtypes without a storage class are an argument."""
    if value.is_meta:
        return "_rebuild_meta_tensor_no_storage"
    return "_rebuild_tensor_v2" if value.dtype.name in STORAGE_NAMES else "_rebuild_tensor_v3"


def _tensor_arguments(machine: Pickler, value: Tensor, requires_grad: bool | None = None) -> tuple:
    flag = value.requires_grad if requires_grad is None else requires_grad
    geometry = (tuple(value.shape), tuple(value.stride()))
    if value.is_meta:
        return (value.dtype, *geometry, flag)
    storage = value.untyped_storage()
    element_type = value.dtype if value.dtype.name in STORAGE_NAMES else None
    metadata = metadata_of(value)
    return (
        lambda: _write_storage(machine, storage, element_type),
        value.storage_offset(),
        *geometry,
        flag,
        machine.write_ordered_dict,
        *(() if element_type is not None else (value.dtype,)),
        *((metadata,) if metadata else ()),
    )


def write_plain_tensor(machine: Pickler, value: Tensor) -> None:
    """Write a tensor, or a parameter as one, without its Python attributes."""
    _write_tensor(machine, value)


def _save_parameter(machine: Pickler, value: Parameter) -> None:
    arguments = (lambda: _write_tensor(machine, value, False), value.requires_grad, machine.write_ordered_dict)
    saved = value.__getstate__()
    if saved:
        machine.write_call("torch._utils", "_rebuild_parameter_with_state", (*arguments, saved))
    else:
        machine.write_call("torch._utils", "_rebuild_parameter", arguments)
    machine.memoize(value)


def _save_typed_storage(machine: Pickler, value: TypedStorage) -> None:
    _write_storage(machine, value.untyped(), value.dtype)


def _save_untyped_storage(machine: Pickler, value: UntypedStorage) -> None:
    _write_storage(machine, value, None)


def _write_storage(machine: Pickler, storage: UntypedStorage, element_type: dtype | None) -> None:
    if not (storage.device.type in ("cpu", "cuda") and storage._impl.buffer is not None) and not materializes_fakes():
        raise PicklingError(f"cannot save a storage of device '{storage.device}', which has no bytes")
    key = machine.storage_key(storage._impl, element_type)
    kind = ("torch.storage", "UntypedStorage") if element_type is None else ("torch", STORAGE_NAMES[element_type.name])
    count = storage.nbytes() // (1 if element_type is None else element_type.itemsize)
    view = (None,) if machine.has_views else ()
    location = str(storage.device) if storage.is_cuda else "cpu"
    machine.write_tuple(("storage", lambda: machine.write_global(*kind), key, location, count, *view))
    machine.out += pickle.BINPERSID


def _save_packed(machine: Pickler, value: Any) -> None:
    """Write packed weights of quantized layers as torch does."""
    machine.write_global("torch", "ScriptObject")
    machine.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
    machine.memoize(value)
    machine.save(value.__getstate__() if isinstance(value, packed.ScriptObject) else packed.written_state(value))
    machine.out += pickle.BUILD


_WRITERS: dict[type, Callable[[Pickler, Any], None]] = {
    type(None): _save_none,
    bool: _save_bool,
    int: _save_int,
    float: _save_float,
    complex: _save_complex,
    str: _save_str,
    bytes: _save_bytes,
    bytearray: _save_bytearray,
    tuple: _save_tuple,
    list: _save_list,
    dict: _save_dict,
    set: _save_set,
    OrderedDict: _save_ordered_dict,
    Counter: _save_counter,
    Size: _save_size,
    dtype: _save_dtype,
    device: _save_device,
    layout: _save_layout,
    Tensor: _save_tensor,
    Parameter: _save_parameter,
    TypedStorage: _save_typed_storage,
    UntypedStorage: _save_untyped_storage,
}


_PLAIN = (Tensor, Buffer)
"""Classes that are written as `torch.Tensor`: torch has no class of buffers."""
_OWN_REDUCTIONS = (Tensor.__reduce_ex__, Buffer.__reduce_ex__)


def _writer_of_base(value: Any) -> Callable[[Pickler, Any], None]:
    """Return the writer for an object of an unlisted type: for packed weights, tensors, parameters, or any object."""
    kind = type(value)
    if packed.is_packed(value) or kind is packed.ScriptObject:
        return _save_packed
    if issubclass(kind, Parameter):
        return _save_parameter if kind.__reduce_ex__ is Parameter.__reduce_ex__ else save_object
    return _save_tensor if issubclass(kind, Tensor) else save_object
