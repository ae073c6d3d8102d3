"""The base class of `Module` with state_dict and load_state_dict.

Out: an ordered dict from dotted names to tensors, with the version of every module in `_metadata`. In: such a dict. All of it
is checked before anything is written, so a checkpoint that does not fit leaves the module unchanged.
"""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.state_loading import PLAN, IncompatibleKeys, LoadPlan
from rushlight.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

EXTRA_STATE = "_extra_state"


class ModuleState:
    """Saves a module's parameters and persistent buffers to a dict and loads them from one."""

    _version: int = 1

    def state_dict(
        self, *args: Any, destination: OrderedDict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict:
        """Return parameters and persistent buffers by dotted name, sharing memory with the module.

        They are detached unless `keep_vars`. The result's `_metadata` holds the modules' versions. Positional arguments are
        deprecated; they are taken in the order of the keywords.
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            named = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            named |= zip(named, args, strict=False)
            return self.state_dict(**named)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Write this module's own state, without its submodules', to `destination`. Subclasses may add to it."""
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if _has_extra_state(self):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Tensor]]:
        left_out = self._non_persistent_buffers_set
        named = itertools.chain(
            self._parameters.items(), (item for item in self._buffers.items() if item[0] not in left_out)
        )
        return [(name, value) for name, value in named if value is not None]

    def get_extra_state(self) -> Any:
        """Extra state besides tensors for the state dict. Define it together with `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} keeps no extra state: define get_extra_state() to save some")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(f"{type(self).__name__} takes no extra state: define set_extra_state() to load some")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the values of `state_dict` into the module's parameters and buffers.

        With `assign` the given tensors replace the module's. Returns the missing and unexpected keys. Raises TypeError if
        `state_dict` is no mapping; RuntimeError that lists every size mismatch and, if `strict`, every missing and unexpected
        key. The module is unchanged then.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        plan = LoadPlan(type(self).__name__, strict, assign)
        metadata = getattr(state_dict, "_metadata", None) or {}
        self._plan_load(OrderedDict(state_dict), "", metadata, plan)
        hooks = [
            (module, hook) for module in self.modules() for hook in module._load_state_dict_post_hooks.values()
        ]
        with no_grad():
            plan.execute(hooks)
        return plan.keys

    def _plan_load(self, state: OrderedDict, prefix: str, metadata: Mapping, plan: LoadPlan) -> None:
        local_metadata = dict(metadata.get(prefix[:-1], {}))
        local_metadata[PLAN] = plan
        if plan.assign:
            local_metadata["assign_to_params_buffers"] = True
        keys = plan.keys
        self._load_from_state_dict(
            state, prefix, local_metadata, True, keys.missing_keys, keys.unexpected_keys, plan.errors
        )
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}{name}."
                below = OrderedDict((key, value) for key, value in state.items() if str(key).startswith(path))
                module._plan_load(below, path, metadata, plan)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state, without its submodules', from the keys that start with `prefix`.

        Subclasses may change `state_dict` (for example by `local_metadata["version"]`) and call this. It appends to the three
        lists. Copies are deferred until the whole state dict has been checked.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        shared = local_metadata.get(PLAN)
        plan = LoadPlan(type(self).__name__, strict, local_metadata.get("assign_to_params_buffers", False))
        for name, current in self._own_state():
            key = prefix + name
            if key in state_dict:
                plan.add(self, name, key, current, state_dict[key], error_msgs)
            elif strict:
                missing_keys.append(key)
        self._plan_extra_state(plan, state_dict, prefix + EXTRA_STATE, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unexpected_keys(state_dict, prefix))
        if shared is not None:
            shared.steps.extend(plan.steps)
        else:
            with no_grad():
                plan.apply()

    def _plan_extra_state(
        self, plan: LoadPlan, state: dict, key: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        takes_extra_state = type(self).set_extra_state is not ModuleState.set_extra_state
        if takes_extra_state and key in state:
            plan.add_extra_state(self, state[key])
        elif strict and takes_extra_state:
            missing.append(key)
        elif strict and key in state:
            unexpected.append(key)

    def _unexpected_keys(self, state: dict, prefix: str) -> list[str]:
        own = {name for name, _ in self._own_state()} | {EXTRA_STATE}
        rests = ((key, key[len(prefix) :]) for key in state if str(key).startswith(prefix))
        return [key for key, rest in rests if rest not in own and not _belongs_to_child(self, rest)]

    # Hooks

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` saves this module."""
        return _register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` saved this module."""
        return _register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return _register(self._load_state_dict_pre_hooks, _BoundHook(hook, self))

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return _register(self._load_state_dict_pre_hooks, _BoundHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists of keys in place."""
        return _register(self._load_state_dict_post_hooks, hook)


class _BoundHook:
    """A hook that gets its module as first argument. It is a class so that modules with hooks can be copied and pickled."""

    def __init__(self, hook: Callable, module: Module) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args)


def _register(hooks: OrderedDict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _belongs_to_child(module: Any, key: str) -> bool:
    child, dot, _ = key.partition(".")
    return bool(dot) and child in module._modules


def _has_extra_state(module: Any) -> bool:
    return type(module).get_extra_state is not ModuleState.get_extra_state
