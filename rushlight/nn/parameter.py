"""Parameter and Buffer: tensors that a Module registers when they are assigned to an attribute.

Lazy modules hold their uninitialised forms until the first input determines the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.core.device import as_device, device
from rushlight.core.dtype import dtype as element_type
from rushlight.core.dtype import get_default_dtype
from rushlight.core.overrides import disabled_torch_function
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import AutogradMeta
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import sees_operators
from rushlight.ops.copying import rebuild_subclass
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class _ParameterType(type):
    """The metaclass of Parameter: tensors of other classes that `Parameter(tensor)` has marked are instances, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterType):
    """A trainable tensor of a module: a leaf over the memory of `data`.

    Raises TypeError if `data` is no tensor, RuntimeError if `requires_grad` is asked for an integer or bool dtype.
    """

    __torch_function__ = staticmethod(disabled_torch_function)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if cls is Parameter and isinstance(data, Tensor) and sees_operators(data):
            return _mark_as_parameter(data, requires_grad)
        made = _over_memory_of(cls, data)
        element_type = made._impl.dtype
        if requires_grad and not (element_type.is_floating_point or element_type.is_complex):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients, got {element_type}; "
                "pass requires_grad=False"
            )
        made._impl.autograd = AutogradMeta(requires_grad)
        return made

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        saved = self.__getstate__()
        if not saved:
            return Parameter, (self.data, self.requires_grad)
        return rebuild_subclass, (Parameter, Parameter, (self.data, self.requires_grad), saved)


class Buffer(Tensor):
    """A tensor that is part of a module's state but not trained; it is in the state dict only if `persistent`."""

    __torch_function__ = staticmethod(disabled_torch_function)

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        made = _over_memory_of(cls, data)
        made.persistent = persistent
        return made

    # `Tensor` accepts any arguments; this one takes a keyword.
    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = Buffer(self.data.clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild_buffer, (self.data, self.persistent)


def _mark_as_parameter(data: Tensor, requires_grad: bool) -> Any:
    """Return a parameter of the class of `data`, which has `__torch_dispatch__` and may have no memory."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance "
            f"of the same type, but return type {type(made).__name__} was found instead."
        )
    made._is_param = True
    return made


def _over_memory_of(cls: type, data: Tensor | None) -> Any:
    if data is None:
        data = aten.empty.memory_format([0], dtype=get_default_dtype(), device=state.default_device)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__} needs a Tensor, got {type(data).__name__}; make one with torch.tensor(...)")
    impl = data._impl
    made = object.__new__(cls)
    made._impl = impl.alias(impl.sizes, impl.strides, impl.storage_offset)
    return made


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)


class UninitializedTensorMixin:
    """A tensor without a shape: `materialize` sets the shape, and the class becomes `cls_to_become`."""

    cls_to_become: type

    def materialize(
        self,
        shape: Sequence[int],
        device: device | str | None = None,
        dtype: element_type | None = None,
    ) -> None:
        """Become an uninitialised tensor of this shape; device and dtype stay as they are unless given."""
        own = self._impl
        where = own.device if device is None else as_device(device)
        made = aten.empty.memory_format(list(shape), dtype=dtype or own.dtype, device=where)
        made._impl.autograd = own.autograd
        self._impl = made._impl
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Size:
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized module. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def detach(self) -> Any:
        """Return the tensor itself: it has no values that could be shared."""
        return self

    def share_memory_(self) -> None:
        """Raises RuntimeError: there is no memory to share."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape isn't known yet."""

    cls_to_become = Parameter

    def __new__(
        cls,
        requires_grad: bool = True,
        device: device | str | None = None,
        dtype: element_type | None = None,
    ) -> UninitializedParameter:
        return super().__new__(cls, _without_shape(device, dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape isn't known yet."""

    __torch_function__ = staticmethod(disabled_torch_function)

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: device | str | None = None,
        dtype: element_type | None = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        made = _over_memory_of(cls, _without_shape(device, dtype))
        made.persistent = persistent
        return made

    def __init__(self, requires_grad=False, device=None, dtype=None, persistent: bool = True) -> None:
        pass


def is_lazy(value: Any) -> bool:
    """Return whether `value` is an uninitialised parameter or buffer."""
    return isinstance(value, UninitializedTensorMixin)


def _without_shape(where: device | str | None, dtype: element_type | None) -> Tensor:
    return aten.empty.memory_format([0], dtype=dtype or get_default_dtype(), device=where)
