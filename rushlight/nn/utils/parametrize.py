"""`torch.nn.utils.parametrize`: parameters and buffers that are computed from others by modules.

In: a module, the name of one of its tensors, and a parametrization, a module from tensor to tensor. Out: the same module, whose
attribute of that name is computed on each access. The tensor that it is computed from is stored as
`parametrizations.<name>.original`, which the optimizer sees.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter


class _Cache(threading.local):
    """The cache of `cached()`, by module and name; each thread has its own."""

    depth = 0

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Tensor] = {}


class _Blocks:
    """The number of open `cached()` blocks in all threads. While it is 0, nothing reads the thread-local cache, which captures
    cannot trace."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self, change: int) -> None:
        """Open or close a block."""
        with self._lock:
            self.count += change


_cache = _Cache()
_blocks = _Blocks()


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once within the block."""
    _blocks.add(1)
    _cache.depth += 1
    try:
        yield
    finally:
        _blocks.add(-1)
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other, and the tensors that they start from.

    The originals are `original`, or `original0`, `original1`, ... where the first `right_inverse` gives several. Raises
    ValueError if `right_inverse` gives something invalid, or if the result differs in shape or dtype from the original tensor;
    `unsafe` skips these checks.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        inverse = self._apply_right_inverses(original)
        self.is_tensor = isinstance(inverse, Tensor)
        self.ntensors = 1 if self.is_tensor else len(inverse)
        shape, dtype = original.shape, original.dtype
        self._keep_originals(original, inverse)
        if not unsafe:
            result = self()
            _check_result(result, shape, dtype, "Registering a parametrization")

    def _apply_right_inverses(self, value: Tensor) -> Any:
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass  # The parametrization starts from the value itself then.
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(value).__name__}"
            )
        return value

    def _keep_originals(self, original: Tensor, inverse: Any) -> None:
        if self.is_tensor:
            if inverse.dtype is not original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {inverse.dtype}"
                )
            # Keep the object, so that optimizers still hold it.
            original.data = inverse.detach()
            _register_tensor(self, "original", original)
            return
        for index, part in enumerate(inverse):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {index} of the sequence with type {type(part).__name__}."
                )
            kept = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
            _register_tensor(self, f"original{index}", kept)

    def originals(self) -> list[Tensor]:
        """Return the original tensors that the value is computed from."""
        names = ["original"] if self.is_tensor else [f"original{index}" for index in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`, as far as the parametrizations can.

        Raises RuntimeError if one of them has no `right_inverse`, ValueError if its result differs in form from before.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse, "
                        "so the tensor can't be assigned to"
                    )
                value = module.right_inverse(value)
            parts = [value] if self.is_tensor else value
            if not isinstance(parts, Sequence) or len(parts) != self.ntensors:
                raise ValueError(f"'right_inverse' must return {self.ntensors} tensors, as when it was registered")
            for own, part in zip(self.originals(), parts, strict=True):
                if not isinstance(part, Tensor) or part.dtype is not own.dtype:
                    raise ValueError(f"'right_inverse' should return a tensor of dtype {own.dtype}")
                own.data = part.detach().clone()

    def forward(self) -> Tensor:
        """Return the parametrized tensor."""
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def _register_tensor(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_result(result: Any, shape: Sequence[int], dtype: Any, what: str) -> None:
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    if result.dtype is not dtype:
        raise ValueError(
            f"{what} may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
            f"unparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}"
        )
    if result.shape != shape:
        raise ValueError(
            f"{what} may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
            f"unparametrized shape: {shape}\nparametrized shape: {result.shape}"
        )


def _refuse_pickling(self: Module) -> dict:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deep_copy(self: Module, memo: dict) -> Module:
    # Each copy gets its own class, because removing a parametrization changes the class.
    base = type(self).__bases__[0]
    made = base.__new__(base)
    memo[id(self)] = made
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    _give_own_class(made)
    for name in made.parametrizations:
        _make_property(made, name)
    return made


def _give_own_class(module: Module) -> None:
    base = type(module)
    members = {"__getstate__": _refuse_pickling, "__deepcopy__": _deep_copy, "__module__": base.__module__}
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _make_property(module: Module, name: str) -> None:
    def read(self: Module) -> Tensor:
        parametrization = self.parametrizations[name]
        if not (_blocks.count and _cache.depth):
            return parametrization()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = parametrization()
        return _cache.values[key]

    def write(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make `module.<tensor_name>` the `parametrization` of its current value; returns `module`.

    If the parametrization has `right_inverse`, the original is set to its result, so that the tensor keeps its value. A
    parametrized tensor may get further ones. Raises ValueError if there is no such parameter or buffer, or, unless `unsafe`, if
    the parametrization changes dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            value = getattr(module, tensor_name)
            _check_result(parametrization(value), value.shape, value.dtype, "Registering a parametrization")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _give_own_class(module)
        module.parametrizations = ModuleDict()
    _make_property(module, tensor_name)
    module.parametrizations[tensor_name] = parametrizations
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether the module has a parametrized tensor, or one of that name."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make `module.<tensor_name>` an ordinary tensor again; returns `module`.

    It keeps its value if `leave_parametrized`, and becomes the original otherwise. Raises ValueError if it is not
    parametrized, or if it has no single original to become.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    kept = parametrizations.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if parametrizations.is_tensor:
            kept.data = value.detach()
        else:
            kept = Parameter(value, kept.requires_grad) if isinstance(kept, Parameter) else value
    elif not parametrizations.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_tensor(module, tensor_name, kept)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the module's class before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` copies of the parametrizations of `from_module` and the values of their originals."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in source:
            register_parametrization(to_module, name, copy.deepcopy(parametrization), unsafe=source.unsafe)
        for own, given in zip(to_module.parametrizations[name].originals(), source.originals(), strict=True):
            own.data = given.detach().clone()
    return to_module
