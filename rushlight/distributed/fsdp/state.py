"""What happens around the forward and backward passes of sharded modules: gathering, freeing, and reducing."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from rushlight.autograd.engine import queue_callback
from rushlight.autograd.grad_mode import is_grad_enabled
from rushlight.core.following import runs_as_it_is
from rushlight.core.pytree import tree_flatten, tree_map
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state as thread_state
from rushlight.distributed.fsdp.parameter_group import ParameterGroup, ShardedParameter
from rushlight.distributed.fsdp.policies import MixedPrecisionPolicy
from rushlight.nn.modules.module import Module

_outside = runs_as_it_is("it gathers parameters of other ranks, outside of captured graphs")


class RootContext:
    """What the sharded modules of one tree share: their states, the order in which they ran, and whether a
    backward pass runs."""

    def __init__(self) -> None:
        self.states: list[ModuleState] = []
        self.order: list[ModuleState] = []
        self.previous_order: list[ModuleState] = []
        self.callback_queued = False


class ModuleState:
    """The hooks of one sharded module, or of several that are one group. `group` is None where they have no parameters of
    their own."""

    def __init__(
        self, modules: Sequence[Module], group: ParameterGroup | None, policy: MixedPrecisionPolicy,
        reshard_after_forward: bool | None,
    ) -> None:  # fmt: skip
        self.modules = [weakref.ref(module) for module in modules]
        self.group, self.policy = group, policy
        self._to_come: set[int] = set()  # the modules, by id, that have not begun in the present use of the group
        self.reshard_after_forward = reshard_after_forward
        self.reshard_after_backward = self.requires_gradient_sync = self.is_last_backward = True
        self.context: RootContext | None = None
        self.is_root = False
        self.forward_prefetch: list[ModuleState] | None = None
        self.backward_prefetch: list[ModuleState] | None = None
        self._arrived: set[int] = set()
        self._in_backward = False
        for module in modules:
            module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after_forward)
            module.register_state_dict_pre_hook(self._shard_for_state)

    # Forward

    @_outside
    def before_forward(self, module: Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Gather the parameters, and begin to gather those of the module that comes next."""
        if self.context is None:
            self._become_root(module)
        if thread_state.backward_task is None:
            self._note_begin(module)
        self.unshard()
        for following in self._next_in_forward():
            following.begin_unshard()
        if self.is_root:
            args, kwargs = self._placed((args, kwargs))
        kind = self.policy.param_dtype
        if kind is not None and self.policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), kind)
        return args, kwargs

    def _note_begin(self, module: Module) -> None:
        """Note the order in which groups are used. The use before may have ended early, by an error or without some of its
        modules."""
        if id(module) not in self._to_come:
            if self.is_root:
                self.context.previous_order, self.context.order = self.context.order, []
                for state in self.context.states:
                    state._to_come = set()
            self.context.order.append(self)
            self._to_come = {id(each()) for each in self.modules}
        self._to_come.discard(id(module))

    def _placed(self, inputs: tuple) -> tuple:
        """Return the root's inputs on the GPU of the parameters, if they are on one."""
        flats = [state.group.flat for state in self.context.states if state.group is not None]
        if not flats or not flats[0].is_cuda:
            return inputs
        return tree_map(lambda value: value.to(flats[0].device) if isinstance(value, Tensor) else value, inputs)

    def _become_root(self, module: Module) -> None:
        """Make this module the root of all sharded modules in it; a root keeps its parameters for the backward pass."""
        context, self.is_root = RootContext(), True
        for submodule in itertools.chain([module], *(each().modules() for each in self.modules)):
            found = state_of(submodule)
            if found is not None and found not in context.states:
                if found.context is not None:
                    raise RuntimeError(
                        "fully_shard: a submodule ran before the module that contains it; call the outermost one first"
                    )
                found.context = context
                context.states.append(found)
        if self.reshard_after_forward is None:
            self.reshard_after_forward = False

    def _next_in_forward(self) -> Sequence[ModuleState]:
        if self.forward_prefetch is not None:
            return self.forward_prefetch
        if thread_state.backward_task is not None:
            return ()
        place, before = len(self.context.order), self.context.previous_order
        return before[place : place + 1] if before[place - 1 : place] == [self] else ()

    def begin_unshard(self) -> None:
        """Begin to gather the parameters."""
        if self.group is not None:
            self.group.begin_unshard()

    def unshard(self) -> None:
        """Gather the parameters, and wait for them."""
        if self.group is not None:
            self.group.finish_unshard(self._on_arrival)

    def reshard(self) -> None:
        """Free the whole parameters."""
        if self.group is not None:
            self.group.reshard()

    @_outside
    def after_forward(self, module: Module, args: tuple, output: Any) -> Any:
        """Free the parameters, and watch for the backward pass."""
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        if thread_state.backward_task is not None:  # recomputed in the backward pass, which needs the parameters now
            return output
        records = is_grad_enabled()
        if not self._to_come and (self.reshard_after_forward is not False or not records):
            self.reshard()
        if records:
            for leaf in _tensors(output):
                if leaf.requires_grad:
                    leaf.register_hook(self._before_backward)
        return output

    def _shard_for_state(self, *_: Any) -> None:
        self.reshard()

    # Backward

    def _before_backward(self, grad: Tensor) -> None:
        context = self.context
        if not context.callback_queued:
            context.callback_queued = True
            queue_callback(lambda: _end_backward(context))
        if self._in_backward:
            return
        self._in_backward = True
        self.unshard()
        for following in self._next_in_backward():
            following.begin_unshard()

    def _next_in_backward(self) -> Sequence[ModuleState]:
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        order = self.context.order
        place = order.index(self) if self in order else 0
        return [each for each in order[max(place - 1, 0) : place] if not each._in_backward]

    def _on_arrival(self, parameter: ShardedParameter) -> None:
        self._arrived.add(id(parameter))
        if len(self._arrived) == sum(each.requires_grad for each in self.group.parameters):
            self._finish_backward()

    def _finish_backward(self) -> None:
        self._arrived.clear()
        if self.requires_gradient_sync:
            self.group.begin_reduce()
        if self.reshard_after_backward:
            self.reshard()

    def end_backward(self) -> None:
        """Reduce what was not reduced, because some parameters got no gradient."""
        if self.group is not None and self._in_backward and (self._arrived or self.group.is_unsharded):
            self._finish_backward()
        self._in_backward = False

    def finish_reduce(self) -> None:
        """Wait for the averages of gradients."""
        if self.group is not None:
            self.group.finish_reduce()


def _end_backward(context: RootContext) -> None:
    context.callback_queued = False
    for state in list(dict.fromkeys(context.order))[::-1]:
        state.end_backward()
    for state in context.states[::-1]:
        if state.is_last_backward:
            state.finish_reduce()


def state_of(module: Module) -> ModuleState | None:
    """Return the state of a module that fully_shard was called on."""
    return module.__dict__.get("_fsdp_state")


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor)]


def _cast(value: Any, kind: Any) -> Any:
    """Return nested tensors with floating ones as another dtype."""

    def change(leaf: Any) -> Any:
        return leaf.to(kind) if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point else leaf

    return tree_map(change, value)
