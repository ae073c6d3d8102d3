"""Names of `torch._C` that are neither types nor parts of the jit, with the behaviour that they have in torch."""

from __future__ import annotations

from types import ModuleType

from rushlight._C import TensorBase
from rushlight.core import function_modes
from rushlight.core.device import device
from rushlight.core.dispatch_key import DispatchKey, DispatchKeySet
from rushlight.core.generator import Generator
from rushlight.core.overrides import DisableTorchFunctionSubclass, disabled_torch_function, is_subclass_disabled
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.core.wrapper_subclasses import disabled_torch_dispatch
from rushlight.jit.ir.node import Value
from rushlight.jit.tracing.language import is_tracing
from rushlight.nn import functional
from rushlight.nn.modules.conversion import parse_to_arguments
from rushlight.overrides import has_torch_function

__all__ = ["DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator", "Value"]


class DisableTorchFunction(function_modes.Suspended):
    """Context in which neither modes nor subclasses of Tensor decide."""

    def __enter__(self) -> None:
        super().__enter__()
        self._subclasses = DisableTorchFunctionSubclass()
        self._subclasses.__enter__()

    def __exit__(self, *error: object) -> None:
        self._subclasses.__exit__(*error)
        super().__exit__(*error)


_disabled_torch_function_impl = disabled_torch_function


class _DisableTorchDispatch(ExcludeKeys):
    """Context in which neither modes nor classes see operators."""

    def __init__(self) -> None:
        super().__init__(1 << DispatchKey.Python)


_disabled_torch_dispatch_impl = disabled_torch_dispatch


def _len_torch_dispatch_stack() -> int:
    """Return the number of dispatch modes of this thread."""
    return len(state.modes)


def _get_dispatch_stack_at(level: int) -> object:
    """Return the dispatch mode at a place of this thread's stack, 0 the outermost."""
    return state.modes[level]


def _len_torch_function_stack() -> int:
    """Return the number of function modes of this thread."""
    return len(function_modes.stack())


def _get_function_stack_at(level: int) -> object:
    """Return the function mode at a place of this thread's stack, 0 the outermost."""
    return function_modes.stack()[level]


def _push_on_torch_function_stack(mode: object) -> None:
    """Make a mode the innermost one."""
    function_modes.push(mode)


def _pop_torch_function_stack() -> object:
    """Remove the innermost mode, and return it."""
    return function_modes.pop()


def _is_torch_function_mode_enabled() -> bool:
    """Return whether a function mode of this thread is active and enabled."""
    return function_modes.are_active()


def _is_torch_function_enabled() -> bool:
    """Return whether subclasses of Tensor may override functions."""
    return not is_subclass_disabled()


def _is_torch_function_all_disabled() -> bool:
    """Return whether neither modes nor subclasses may override functions."""
    return is_subclass_disabled() and function_modes.are_suspended()


def _has_torch_function(args: tuple) -> bool:
    """Return whether a mode is active, or the type of any argument may override functions."""
    return has_torch_function(args)


def _has_torch_function_unary(obj: object) -> bool:
    """Return `_has_torch_function` for one argument."""
    return has_torch_function((obj,))


def _has_torch_function_variadic(*args: object) -> bool:
    """Return `_has_torch_function` for the arguments, passed one by one."""
    return has_torch_function(args)


class _ExcludeDispatchKeyGuard(ExcludeKeys):
    """Context in which the keys of a set are hidden from dispatch."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__(keys.bits)


def _get_accelerator(check: bool | None = None) -> device:
    """Return the device of the machine's accelerator, or the CPU where there is none."""
    return device("cpu")


def _are_functorch_transforms_active() -> bool:
    """Return whether a call of `vmap` is running in this thread."""
    return bool(state.batch_levels)


def _log_api_usage_once(event: str) -> None:
    """Do nothing, as in builds of PyTorch without a logger of API usage."""


def _get_tracing_state() -> object:
    """Return a true value while `torch.jit.trace` runs, else None."""
    return True if is_tracing() else None


def _cuda_isInBadFork() -> bool:  # noqa: N802  (torch's name)
    """Return whether this process was forked from one that used a GPU: never."""
    return False


def _get_privateuse1_backend_name() -> str:
    """Return the name of a device of somebody else's: it has none."""
    return "privateuseone"


def _parse_to(*args: object, **kwargs: object) -> tuple:
    """Return device, dtype, non_blocking and memory format that arguments of `Tensor.to` stand for."""
    to_device, to_dtype, memory_format = parse_to_arguments(*args, **kwargs)
    return to_device, to_dtype, bool(kwargs.get("non_blocking", False)), memory_format


_TensorMeta = type(TensorBase)
_nn = ModuleType("_nn")
vars(_nn).update({name: getattr(functional, name) for name in functional.__all__}, _parse_to=_parse_to)
_has_cuda = _has_cudnn = _has_mkldnn = _has_mps = _has_xpu = _has_magma = False
has_openmp = has_lapack = True
