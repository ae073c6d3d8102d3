"""Lazy views: tensors that represent the conjugate or the negative of their memory, made by `conj()` and by the imaginary part
of such a view.

The dispatch keys Conjugate and Negative are the state: a tensor has one, both or none. Views inherit them, and `_conj` and
`_neg_view` toggle them. Both keys are below autograd. Their kernel passes views through. For every other operator it
materialises the arguments that are read, and converts results that are written to a lazy view before they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rushlight.core.dispatch_key import AUTOGRAD_BITS, LAZY_BITS, DispatchKey, bit
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.thread_state import ExcludeKeys
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.registry import aten, define_primitives, explicit

CONJUGATE, NEGATIVE = bit(DispatchKey.Conjugate), bit(DispatchKey.Negative)

_NAMES = {"conj": CONJUGATE, "neg": NEGATIVE}

# Operators that change the view of a tensor but not its elements.
_CHANGE_VIEW_ONLY = frozenset((
    "detach_", "t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_", "set_", "resize_",
    "record_stream", "requires_grad_",
))  # fmt: skip

define_primitives("""
_conj(Tensor(a) self) -> Tensor(a)
_neg_view(Tensor(a) self) -> Tensor(a)
""")


@explicit("_conj")
def _conj(self):
    return _flip_lazy_bit(self, CONJUGATE)


@explicit("_neg_view")
def _neg_view(self):
    return _flip_lazy_bit(self, NEGATIVE)


def _flip_lazy_bit(self: Tensor, key: int) -> Tensor:
    impl = self._impl
    made = impl.alias(impl.sizes, impl.strides, impl.storage_offset)
    made.key_set = impl.key_set ^ key
    return wrap(made)


def lazy_bits(tensor: Tensor) -> int:
    """Return the bits `CONJUGATE` and `NEGATIVE` that are set on a tensor."""
    return tensor._impl.key_set & LAZY_BITS


def toggle_lazy_bits(tensor: Tensor, bits: int) -> Tensor:
    """Return a view of the tensor with the lazy `bits` toggled."""
    if bits & CONJUGATE:
        tensor = aten("_conj")(tensor)
    return aten("_neg_view")(tensor) if bits & NEGATIVE else tensor


def metadata_of(tensor: Tensor) -> dict[str, bool]:
    """Return the lazy bits in the form that pickles use: `{"conj": True}`, `{"neg": True}`, both or nothing."""
    bits = lazy_bits(tensor)
    return {name: True for name, bit in _NAMES.items() if bits & bit}


def with_metadata(tensor: Tensor, metadata: Mapping[str, bool]) -> Tensor:
    """Return the tensor with the lazy bits that a pickle's `metadata` sets."""
    tensor._impl.key_set |= sum(bit for name, bit in _NAMES.items() if metadata.get(name))
    return tensor


def materialize_bits(tensor: Tensor, bits: int) -> Tensor:
    """Return the conjugate and negative of a tensor according to `bits`, in new memory unless `bits` is 0."""
    if bits & CONJUGATE:
        tensor = aten("conj_physical")(tensor)
    return aten("neg")(tensor) if bits & NEGATIVE else tensor


def _kernel(op: OpOverload, below: int) -> Callable:
    chain = op.resolve(below & ~LAZY_BITS)
    if op._opname in _CHANGE_VIEW_ONLY or (op.is_view and not op.is_mutable):
        return chain
    written = [position for position, argument in enumerate(op._schema.arguments) if argument.is_write]
    names = [op._schema.arguments[position].name for position in written]

    def lazy(*args: Any, **kwargs: Any) -> Any:
        with ExcludeKeys(AUTOGRAD_BITS):
            plain, keywords = [_plain(each) for each in args], {name: _plain(each) for name, each in kwargs.items()}
        result = chain(*plain, **keywords)
        targets = [(args[position], plain[position]) for position in written if position < len(args)]
        targets += [(kwargs[name], keywords[name]) for name in names if name in kwargs]
        changed = {id(new): old for old, new in targets if new is not old}
        if not changed:
            return result
        with ExcludeKeys(AUTOGRAD_BITS):
            for old, new in targets:
                if new is not old:
                    bits = lazy_bits(old)
                    aten("copy_")(toggle_lazy_bits(old, bits), materialize_bits(new, bits))
        if type(result) is tuple:
            return tuple([changed.get(id(each), each) for each in result])
        return changed.get(id(result), result)

    return lazy


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        bits = lazy_bits(value)
        return materialize_bits(toggle_lazy_bits(value, bits), bits) if bits else value
    return type(value)([_plain(item) for item in value]) if type(value) in (list, tuple) else value


for key in (DispatchKey.Conjugate, DispatchKey.Negative):
    register_fallback(key, Kernel(_kernel, linked=True))
