"""Optimizer: the base of all optimizers. It keeps parameter groups with their options, and a state per parameter.

In: parameters, or dicts of parameters with options of their own. Out: `step()`, which subclasses define, with hooks
around it, and state dicts whose keys are torch's, so that checkpoints carry over.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import Any

from rushlight.autograd import enable_grad, no_grad, set_grad_enabled
from rushlight.autograd.profiler import section
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.optim.state import check_compatible, pack_groups, restore_state
from rushlight.utils.hooks import RemovableHandle

# Hooks around the steps of all optimizers, by handle id.
GLOBAL_STEP_PRE_HOOKS: OrderedDict[int, Callable] = OrderedDict()
GLOBAL_STEP_POST_HOOKS: OrderedDict[int, Callable] = OrderedDict()

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


# The attributes that hold an optimizer's hooks.
_HOOKS = frozenset((
    "_step_pre_hooks", "_step_post_hooks", "_state_pre_hooks", "_state_post_hooks", "_load_pre_hooks", "_load_post_hooks",
))  # fmt: skip


class Optimizer:
    """Base class of optimizers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with the key "params" and options for that group.
        defaults: the options of groups that do not set them.

    Raises TypeError for parameters that are no tensors, and ValueError for none at all, for ones that are results of an
    operation, and for ones that are in two groups.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]):
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}; give [tensor]"
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def __getattr__(self, name: str) -> Any:
        """Create hook dicts lazily: a class that wraps optimizers may not call `__init__`."""
        if name in _HOOKS:
            return self.__dict__.setdefault(name, OrderedDict())
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients. `closure` recomputes the loss, which is then returned."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    @runs_as_it_is("it sets gradients, which belong to parameters and not to a graph")
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros when `set_to_none` is False."""
        with section(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"), no_grad():
            for parameter in self._parameters():
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad = parameter.grad.detach().zero_()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with the key "params" and options; the defaults supply missing options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = {**param_group, **_named_parameters(param_group["params"])}
        for parameter in group["params"]:
            _check_parameter(parameter, bool(self.defaults.get("differentiable")))
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self._check_new(group)
        self.param_groups.append(group)

    def _check_new(self, group: dict[str, Any]) -> None:
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if 'param_names' in group else 'without'} names to the optimizer"
            )
        known = {id(parameter) for parameter in self._parameters()}
        new = {id(parameter) for parameter in group["params"]}
        if known & new:
            raise ValueError("some parameters appear in more than one parameter group")
        if len(new) != len(group["params"]):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=4)

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with parameters replaced by their numbers, in the order in which they were added.

        {"state": {number: {...}}, "param_groups": [{..., "params": [numbers]}]}; the tensors are the optimizer's own.
        """
        for hook in self._state_pre_hooks.values():
            hook(self)
        groups, numbers = pack_groups(self.param_groups)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()
        }
        packed: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._state_post_hooks.values():
            replaced = hook(self, packed)
            packed = packed if replaced is None else replaced
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; its tensors are copied, floating ones to the parameters' dtypes.

        Raises ValueError, and changes nothing, when the groups differ in number or size from this optimizer's.
        """
        state_dict = dict(state_dict)
        for hook in self._load_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = copy.deepcopy(state_dict["param_groups"])
        check_compatible(self.param_groups, saved)
        numbers = chain.from_iterable(group["params"] for group in saved)
        by_number: dict[Hashable, Tensor] = dict(zip(numbers, self._parameters(), strict=True))
        state = restore_state(state_dict["state"], by_number, saved)
        groups = [
            {**self.defaults, **group, "params": own["params"]}
            for own, group in zip(self.param_groups, saved, strict=True)
        ]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_post_hooks.values():
            hook(self)

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._state_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return _register(self._state_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; it may return another dict."""
        return _register(self._load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _register(self._load_post_hooks, hook, prepend)

    def _parameters(self) -> Iterable[Tensor]:
        return chain.from_iterable(group["params"] for group in self.param_groups)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] if number else []
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _with_hooks(step: Callable) -> Callable:
    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with section(f"Optimizer.step#{type(self).__name__}.step"):
            return run(self, args, kwargs)

    def run(self: Optimizer, args: tuple, kwargs: dict[str, Any]) -> Any:
        for hook in (*GLOBAL_STEP_PRE_HOOKS.values(), *self._step_pre_hooks.values()):
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                args, kwargs = _checked_arguments(replaced)
        # Autograd records a step only if it is to be differentiated.
        with set_grad_enabled(bool(self.__dict__.get("defaults", {}).get("differentiable"))):
            result = step(self, *args, **kwargs)
        self._opt_called = True
        for hook in (*self._step_post_hooks.values(), *GLOBAL_STEP_POST_HOOKS.values()):
            hook(self, args, kwargs)
        return result

    return hooked


def _checked_arguments(replaced: Any) -> tuple:
    if not isinstance(replaced, tuple) or len(replaced) != 2:
        raise RuntimeError(f"a step pre-hook must return None or a tuple of new (args, kwargs), but got {replaced}")
    return replaced


def _register(hooks: OrderedDict[int, Callable], hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _named_parameters(params: Any) -> dict[str, list]:
    """Return the parameters of a group as a list, and the list of their names if they have names."""
    if isinstance(params, Tensor):
        return {"params": [params]}
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = list(params)
    if not any(isinstance(parameter, tuple) for parameter in params):
        return {"params": params}
    if not all(isinstance(parameter, tuple) for parameter in params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return {"params": [parameter for _, parameter in params], "param_names": [name for name, _ in params]}


def _check_parameter(parameter: Any, differentiable: bool) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
    if not (differentiable or parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """Return the loss from a closure that computes gradients; None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimizer; it may return new (args, kwargs)."""
    return _register(GLOBAL_STEP_PRE_HOOKS, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimizer."""
    return _register(GLOBAL_STEP_POST_HOOKS, hook)


# Private names that other packages import.

ParamsT = _params_t = Parameters
required = object()
"""The default of an option that has to be given."""


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """Return a decorator of `step` methods: records gradients if the option `differentiable` is true."""

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            return step(self, *args, **kwargs)

    return wrapped


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return whether a CPU optimizer takes the fused or the foreach step by default: neither."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return devices whose graphs can capture optimizer steps."""
    return ["cuda"]
