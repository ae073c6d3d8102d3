"""fully_shard: each rank keeps a part of a module's parameters, gradients and optimizer's state.

The idea is that of ZeRO's third stage (Rajbhandari, Rasley, Ruwase and He, 2020) and of FSDP (Zhao et al., "PyTorch FSDP:
Experiences on Scaling Fully Sharded Data Parallel", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.core.device import device
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.distributed.backends import has_gpu
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.fsdp.parameter_group import ParameterGroup
from rushlight.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from rushlight.distributed.fsdp.state import ModuleState, state_of
from rushlight.distributed.groups import default_group
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.nn.modules.module import Module

cuda = LazyModule("rushlight.cuda")

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class UnshardHandle:
    """The gathering of a module's parameters that has begun."""

    def __init__(self, state: ModuleState) -> None:
        self._state = state

    def wait(self) -> None:
        """Wait until the whole parameters are there."""
        self._state.unshard()


class FSDPModule:
    """What a module gets from fully_shard: its class becomes a subclass of this one and its own."""

    def __deepcopy__(self, memo: dict) -> Any:
        raise TypeError("a module after fully_shard cannot be copied: copy it before, or load its state dict")

    def _state(self) -> ModuleState:
        return state_of(self)

    def _states(self, recurse: bool = True) -> list[ModuleState]:
        found = [state_of(module) for module in (self.modules() if recurse else [self])]
        return [each for each in dict.fromkeys(found) if each is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather this module's parameters; with `async_op` a handle to wait with is returned."""
        self._state().begin_unshard()
        handle = UnshardHandle(self._state())
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Free this module's whole parameters."""
        self._state().reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Say whether backward passes average gradients; without, they add up on each rank, as whole ones."""
        for state in self._states(recurse):
            state.requires_gradient_sync = requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Say whether the end of a backward pass waits for the averages of gradients.

        With False they may arrive in `.grad` as late as at the end of the next pass with True.
        """
        for state in self._states():
            state.is_last_backward = is_last_backward

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Say whether the whole parameters are freed after a forward pass, and gathered again for the backward."""
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Say whether the whole parameters are freed after a backward pass."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Name the modules whose parameters are gathered while this one runs forward."""
        self._state().forward_prefetch = [module._state() for module in modules]

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Name the modules whose parameters are gathered while this one runs backward."""
        self._state().backward_prefetch = [module._state() for module in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by another number than that of the ranks."""
        group = self._state().group
        if group is not None:
            group.divisor = factor


def fully_shard(
    module: Module | list[Module], *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: Iterable[Tensor] | None = None,
) -> Module:  # fmt: skip
    """Shard a module's parameters along dimension 0 over the ranks of a mesh, and return the module.

    Its parameters become DTensors, each rank's own values of its rows: initialize alike on all ranks. A forward pass gathers
    them first, frees them after it (`reshard_after_forward`; None: not for the outermost module), and a backward pass gathers
    them again; gradients are averaged and sharded while it goes on. Call it on the layers first, then on the whole: what a
    call finds sharded already stays a group of its own, and groups are gathered one ahead of their use.

        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters())

    A list of modules is one group, gathered when the first of them runs and freed after the last; those inside of others are
    left out. `shard_placement_fn` is called with each parameter and returns Shard(dim) for another dimension, or None. Modules
    may be on the meta device: give them memory after this, by `to_empty(device="cpu")`, and values.

    Where there are GPUs the mesh is of GPUs unless it is given, and the module is moved to the current one.

    A mesh of two dimensions keeps copies along the first, and shards along the second. ValueError: a parameter has no
    dimensions, a module is sharded already, or the mesh has more dimensions. NotImplementedError for a number as
    `reshard_after_forward` that is neither 1, which is False, nor that of the ranks, which is True, and for a dimension but the
    first that does not have equal parts, and for CPUOffloadPolicy on GPUs. RuntimeError for several dtypes in a group.
    """
    modules = [module] if isinstance(module, Module) else _outermost(module)
    if not modules:
        raise ValueError("fully_shard was given an empty list of modules")
    for each in modules:
        if state_of(each) is not None:
            raise ValueError(f"fully_shard was called on this {type(each).__name__} before")
        if type(each).forward is Module.forward:  # its hooks, which gather the parameters, would never run
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {type(each).__name__}")
    mesh = mesh or init_device_mesh("cuda" if has_gpu() else "cpu", (default_group().size(),))
    if mesh.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    policy = mp_policy or MixedPrecisionPolicy()
    found = _own_parameters(modules, {id(each) for each in ignored_params or ()})
    if mesh.device_type == "cuda":
        if isinstance(offload_policy, CPUOffloadPolicy):
            raise NotImplementedError("fully_shard: shards of modules on GPUs stay there; leave CPUOffloadPolicy out")
        _move_to_gpu(modules, found)
    group = ParameterGroup(found, mesh, policy, shard_placement_fn) if found else None
    state = ModuleState(modules, group, policy, _as_flag(reshard_after_forward, mesh))
    for each in modules:
        each.__dict__["_fsdp_state"] = state
        kind = type(each)
        each.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
    return module


def _outermost(modules: Sequence[Module]) -> list[Module]:
    """Return the modules of a list that are not inside of others of it."""
    inside = {id(part) for each in modules for part in each.modules() if part is not each}
    return [each for each in modules if id(each) not in inside]


def _move_to_gpu(modules: list[Module], found: Sequence[tuple[str, Tensor, list]]) -> None:
    """Move parameters and buffers to the current GPU, except those on the meta device."""
    buffers = [buffer for module in modules for buffer in module.buffers()]
    for tensor in (*(parameter for _, parameter, _ in found), *buffers):
        if not tensor.is_meta:
            tensor.data = tensor.data.to(device("cuda", cuda.current_device()))


def _as_flag(reshard_after_forward: bool | int | None, mesh: DeviceMesh) -> bool | None:
    if reshard_after_forward is None or isinstance(reshard_after_forward, bool):
        return reshard_after_forward
    ranks = mesh.size(mesh.ndim - 1)
    if reshard_after_forward not in (1, ranks):
        raise NotImplementedError(
            f"fully_shard: reshard_after_forward={reshard_after_forward} asks for shards of other numbers of ranks between the "
            f"passes, which are not available; give True, False or None, or 1 or {ranks}, which mean False and True"
        )
    return reshard_after_forward == ranks


def _own_parameters(modules: list[Module], ignored: set[int]) -> list[tuple[str, Tensor, list[tuple[Module, str]]]]:
    """Return the parameters that no earlier call has sharded, with their names and the modules that have them."""
    found: dict[int, tuple[str, Tensor, list[tuple[Module, str]]]] = {}
    for number, module in enumerate(modules):
        for prefix, submodule in module.named_modules(prefix=str(number) if len(modules) > 1 else ""):
            for name, parameter in submodule._parameters.items():
                if parameter is None or isinstance(parameter, DTensor) or id(parameter) in ignored:
                    continue
                entry = found.setdefault(id(parameter), (f"{prefix}.{name}".lstrip("."), parameter, []))
                if (submodule, name) not in entry[2]:
                    entry[2].append((submodule, name))
    return list(found.values())


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have a method of a sharded module gather and free parameters as `forward` does. AttributeError: it has none."""
    state = state_of(module)
    if state is None:
        return
    method = getattr(type(module), method_name)

    def wrapped(self: Module, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(self, args, kwargs)
        return state.after_forward(self, args, method(self, *args, **kwargs))

    setattr(module, method_name, wrapped.__get__(module))
