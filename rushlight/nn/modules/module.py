"""Module: the base of everything with parameters. It keeps parameters, buffers and submodules by attribute name.

In: attributes assigned in `__init__` of subclasses. Out: a callable object whose parts can be listed, saved, moved
and hooked. Listing is in `module_traversal`, saving in `module_state`, calling and hooks in `module_hooks`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import is_wrapper, take_contents
from rushlight.nn.modules import global_hooks
from rushlight.nn.modules.conversion import conversion_to, where_floating
from rushlight.nn.modules.global_hooks import (  # noqa: F401  (torch has them here)
    as_hooks_wish,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.nn.modules.module_hooks import ModuleHooks
from rushlight.nn.modules.module_state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from rushlight.nn.modules.module_state import ModuleState
from rushlight.nn.modules.module_traversal import ModuleTraversal
from rushlight.nn.modules.state_loading import IncompatibleKeys as _IncompatibleKeys  # noqa: F401
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.functional import typename
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
compiler = LazyModule("rushlight.compiler")  # a higher layer, which imports this one

_HOOK_DICTS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class Module(ModuleHooks, ModuleState, ModuleTraversal):
    """Base of all neural network modules.

    Subclasses call `super().__init__()`, assign parameters, buffers and submodules to attributes, and define `forward`.
    `training` selects the mode of layers such as dropout.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    # Whether `__init__` passes its arguments on to the next class after Module, for multiple inheritance.
    call_super_init: bool = False
    dump_patches: bool = False
    # None until a backward hook is registered; then False for hooks of the deprecated `register_backward_hook`.
    _is_full_backward_hook: bool | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            self._refuse_arguments(args, kwargs)
        # Write to __dict__ directly: __setattr__ needs these to exist.
        members = self.__dict__
        members["training"] = True
        members["_parameters"] = {}
        members["_buffers"] = {}
        members["_non_persistent_buffers_set"] = set()
        members["_modules"] = {}
        for name in _HOOK_DICTS:
            members[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _refuse_arguments(self, args: tuple, kwargs: dict[str, Any]) -> None:
        if kwargs:
            name = next(iter(kwargs))
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        given = len(args) + 1
        raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {given} were given")

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if state.pop("_compiled_call_impl", None) is not None:
            state.pop("forward", None)  # Compiled code isn't copied or saved.
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        members = self.__dict__
        members.update(state)
        # Pickles of earlier versions lack kinds of hooks that were added later.
        members.setdefault("_non_persistent_buffers_set", set())
        for name in _HOOK_DICTS:
            members.setdefault(name, OrderedDict())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the module's computation. Subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # Registering parts

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or reserve its name with None.

        Raises KeyError for a name that is taken, empty or dotted; TypeError for anything but a Parameter or None;
        ValueError for one that is not a leaf.
        """
        self._check_new_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly; to "
                "express it as a function of another tensor, compute it in forward()"
            )
        self._parameters[name] = as_hooks_wish(global_hooks.parameter_registration_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not learned. If not `persistent` it stays out of the state dict.

        Raises KeyError for a name that is taken, empty or dotted; TypeError for anything but a Tensor or None.
        """
        self._check_new_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = as_hooks_wish(global_hooks.buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or reserve its name with None.

        Raises KeyError for a name that is taken, empty or dotted; TypeError for anything but a Module or None.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_new_name("module", name, "_modules")
        self._modules[name] = as_hooks_wish(global_hooks.module_registration_hooks, self, name, module)

    register_module = add_module

    def _check_new_name(self, kind: str, name: Any, members: str) -> None:
        if members not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[members] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # Attributes

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__
        # Inlined, because every read of a weight or layer comes through here.
        if "_modules" in members:
            if name in (parameters := members["_parameters"]):
                return parameters[name]
            if name in (modules := members["_modules"]):
                return modules[name]
            if name in (buffers := members["_buffers"]):
                return buffers[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._replace("_parameters", name, "parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._replace("_modules", name, "module")
            self._modules[name] = as_hooks_wish(global_hooks.module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer):
            self._replace("_buffers", name, "buffer")
            self.register_buffer(name, value, **({} if value.persistent else {"persistent": False}))
        elif not self._set_registered(name, value):
            object.__setattr__(self, name, value)

    def _replace(self, kept: str, name: str, kind: str) -> None:
        """Remove `name` from everywhere but the dict `kept`, which is about to get it."""
        members = self.__dict__
        if kept not in members:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        for position in (members, members["_parameters"], members["_buffers"], members["_modules"]):
            if position is not members[kept]:
                position.pop(name, None)

    def _set_registered(self, name: str, value: Any) -> bool:
        """Give a registered name a value that is not of its kind: None, or a tensor for a buffer."""
        members = self.__dict__
        for position, kind, expected in (
            ("_parameters", "parameter", "torch.nn.Parameter or None"),
            ("_modules", "child module", "torch.nn.Module or None"),
            ("_buffers", "buffer", "torch.nn.Buffer, torch.Tensor or None"),
        ):
            if name in members.get(position, ()):
                if value is not None and not (position == "_buffers" and isinstance(value, Tensor)):
                    raise TypeError(f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected} expected)")
                members[position][name] = value
                return True
        return False

    def __delattr__(self, name: str) -> None:
        for position in (self._parameters, self._buffers, self._modules):
            if name in position:
                del position[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if name[:1].isalpha() or name.startswith("_"))

    # Modes and conversions

    def train(self, mode: bool = True) -> Module:
        """Set training mode here, and call `train` of each child, which may be overridden; ValueError if `mode` is no bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or with `set_to_none=False` fill them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else parameter.grad.detach().zero_()

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Call `fn` on all submodules, children first, and then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        """Replace the data of parameters, their gradients and buffers by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    _convert_parameter(parameter, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Move to a device, convert to a floating dtype: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`.

        In place. Integer parameters and buffers keep their dtype. Raises TypeError for an integer dtype.
        """
        return self._apply(conversion_to(*args, **kwargs))

    def float(self) -> Module:
        """Convert floating parameters and buffers to float32."""
        return self._apply(where_floating("float32"))

    def double(self) -> Module:
        """Convert floating parameters and buffers to float64."""
        return self._apply(where_floating("float64"))

    def half(self) -> Module:
        """Convert floating parameters and buffers to float16."""
        return self._apply(where_floating("float16"))

    def bfloat16(self) -> Module:
        """Convert floating parameters and buffers to bfloat16."""
        return self._apply(where_floating("bfloat16"))

    def type(self, dst_type: Any) -> Module:
        """Convert all parameters and buffers to a dtype, also those that are not floating."""
        return self._apply(lambda tensor: tensor.to(dtype=dst_type))

    def cpu(self) -> Module:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.to(device="cpu"))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Module:
        """Move to a device without the values: parameters and buffers become uninitialised."""
        return self._apply(lambda tensor: aten.empty_like.default(tensor, device=device), recurse)

    def cuda(self, device: Any = None) -> Module:
        """Move to a GPU: AssertionError where there are parameters or buffers, as there is none."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device: Any = None) -> Module:
        """Move to an Intel GPU: AssertionError where there are parameters or buffers, as there is none."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device: Any = None) -> Module:
        """Move to an MTIA accelerator: AssertionError where there are parameters or buffers, as there is none."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def ipu(self, device: Any = None) -> Module:
        """Move to an IPU: RuntimeError where there are parameters or buffers, as there is none."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def share_memory(self) -> Module:
        """Move parameters and buffers to memory that forked child processes see."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile `forward` in place, with the arguments of `rushlight.compile`. Copies are not compiled."""
        compiled = compiler.compile(self.forward, *args, **kwargs)
        self.__dict__["forward"] = self.__dict__["_compiled_call_impl"] = compiled

    # Printing

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the printed form. Subclasses may define it."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, module in self._modules.items():  # one frame per level, so that deep nesting still prints
            children.append(f"({name}): {indent_after_first(module.__repr__(), 2)}")
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def indent_after_first(text: str, width: int) -> str:
    """Indent all lines of `text` but the first."""
    return text.replace("\n", "\n" + " " * width)


def _convert_parameter(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    grad = parameter.grad
    if is_wrapper(parameter):  # its `data` would be a plain tensor
        for wrapper in (parameter, grad):
            if wrapper is not None:
                take_contents(wrapper, fn(wrapper.detach()))
        return
    parameter.data = fn(parameter.data)
    if grad is not None:
        # Assign through `data`, because a gradient must have its parameter's dtype at every assignment.
        grad.data = fn(grad.data)
