"""DistributedDataParallel: each rank trains a copy of the module on its own inputs, with gradients averaged over ranks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_origin

from rushlight.autograd.grad_mode import is_grad_enabled
from rushlight.core.device import CPU, device, present_device
from rushlight.core.dtype import int32
from rushlight.core.following import is_compiling, runs_as_it_is
from rushlight.core.pytree import tree_map
from rushlight.core.tensor import Tensor
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import ReduceOp
from rushlight.distributed.groups import default_group
from rushlight.distributed.reducer.buckets import FIRST_BUCKET_BYTES, GradBucket, default_bucket_bytes
from rushlight.distributed.reducer.graph_walk import tensors_in
from rushlight.distributed.reducer.in_graph import AverageGradients
from rushlight.distributed.reducer.reducer import Reducer
from rushlight.distributed.reducer.replicas import broadcast_all, check_same_shapes
from rushlight.futures import Future
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.stateless import functional_call
from rushlight.ops.construct import tensor

__all__ = ["DistributedDataParallel"]

_outside = runs_as_it_is("it exchanges tensors with other ranks, outside of captured graphs")


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are averaged over the ranks of a group while the backward pass runs.

    Parameters and buffers are copied from rank 0 at the beginning. Gradients travel in buckets of `bucket_cap_mb` (the first:
    1 MiB), which is an eighth of all unless given, and at most 25. `find_unused_parameters` is for modules of which a loss may
    not depend on all parameters, `static_graph` for ones whose graph is the same in each step. With `gradient_as_bucket_view`
    the `.grad` are parts of the buckets, which saves a copy. Buffers are copied from rank 0 before each forward pass, unless
    `forward_sync_buffers` is False; with `broadcast_buffers=False` they are not even copied at the beginning.

        model = DistributedDataParallel(module)
        model(x).sum().backward()  # the .grad are the averages of all ranks

    The state dict has the module's keys with `module.` before them. RuntimeError: no parameter requires grad, or ranks have
    different modules. ValueError: `device_ids` is not the one GPU of the module, another `dim` than 0 or `check_reduction` are
    given, or no group exists.
    """

    def __init__(
        self, module: Module, device_ids: list | None = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, device_mesh: DeviceMesh | None = None,
        forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        Module.__init__(self)
        Joinable.__init__(self)
        self.process_group = _group_of(process_group, device_mesh)
        places = _check(module, device_ids, output_device, dim, check_reduction)
        self.module = module
        self.device_mesh, self.dim = device_mesh, 0
        self.device, self.is_multi_device_module = places[0] if places else CPU, len(places) > 1
        self.device_type = self.device.type
        self.device_ids = [self.device.index] if device_ids else None
        self.output_device = self.device if device_ids or output_device is not None else None
        if None not in (broadcast_buffers, forward_sync_buffers):
            raise ValueError("Cannot specify both broadcast_buffers and forward_sync_buffers: give the latter.")
        self.broadcast_buffers = False not in (broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [pair for pair in self._kept(module.named_parameters()) if pair[1].requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.modules_buffers = [buffer for _, buffer in self._kept(module.named_buffers())]
        if init_sync:
            check_same_shapes([parameter for _, parameter in named], self.process_group)
            self._copy_from(0, buffers=broadcast_buffers is not False)
        parameters = [parameter for _, parameter in named]
        self.bucket_bytes_cap = default_bucket_bytes(parameters) if bucket_cap_mb is None else int(bucket_cap_mb * (1 << 20))
        self._divides_by_all = True
        self._make_reducer()

    def _make_reducer(self) -> None:
        named = [pair for pair in self._kept(self.module.named_parameters()) if pair[1].requires_grad]
        names, parameters = zip(*named, strict=True)
        limits = (min(FIRST_BUCKET_BYTES, self.bucket_bytes_cap), self.bucket_bytes_cap)
        self.reducer = Reducer(
            parameters, names, self.process_group, limits, as_views=self.gradient_as_bucket_view,
            find_unused=self.find_unused_parameters, static_graph=self.static_graph,
        )  # fmt: skip
        self._has_hook = False
        self._group_name = self.process_group.group_name
        self._bucket_names = tuple(tuple(names[index] for index in bucket.indices) for bucket in self.reducer.buckets)

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles hold: neither the group nor the buckets, nor a communication hook.

        RuntimeError unless the group is that of all ranks, which a copy can find again.
        """
        if self.process_group is not default_group():
            raise RuntimeError("DistributedDataParallel can be copied and pickled with the group of all ranks only")
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("process_group", "reducer", "device_mesh")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group, self.device_mesh = default_group(), None
        self._make_reducer()

    def _kept(self, named: Any) -> list[tuple[str, Tensor]]:
        return [(name, each) for name, each in named if name not in self.parameters_to_ignore]

    def _copy_from(self, root: int, buffers: bool = True) -> None:
        """Copy parameters and buffers of the group's rank `root` to all ranks."""
        parameters = [each for _, each in self._kept(self.module.named_parameters())]
        broadcast_all(parameters + (self.modules_buffers if buffers else []), self.process_group, root)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module, and expect a backward pass from what it returns."""
        if is_compiling() and self._reduces_in_graph():
            return self._call_in_graph(inputs, kwargs)
        if self.device_ids:
            inputs, kwargs = tree_map(self._placed, (inputs, kwargs))
        self._before_forward()
        output = self.module(*inputs, **kwargs)
        self._after_forward(output)
        return output

    def _placed(self, value: Any) -> Any:
        return value.to(self.device, non_blocking=True) if isinstance(value, Tensor) else value

    def _reduces_in_graph(self) -> bool:
        """Return whether a captured graph can hold the reduction: nothing else is exchanged, by hooks or before the pass."""
        has_option = self.device_ids or self._has_hook or self.find_unused_parameters or self._join_config.enable
        return not (has_option or self._copies_buffers())

    def _call_in_graph(self, inputs: tuple, kwargs: dict) -> Any:
        if not (is_grad_enabled() and self.require_backward_grad_sync):
            return self.module(*inputs, **kwargs)
        parameters = dict(self.module.named_parameters())
        averaged = {}
        for names in self._bucket_names:
            results = AverageGradients.apply(self._group_name, *[parameters[name] for name in names])
            averaged.update(zip(names, results, strict=True))
        return functional_call(self.module, averaged, inputs, kwargs)

    @_outside
    def _before_forward(self) -> None:
        counting = Join.notify_join_context(self) if is_grad_enabled() else None
        reduces = is_grad_enabled() and self.require_backward_grad_sync
        if counting is not None:
            active = int(counting.result()[0].item())
            self.reducer.divisor = self.process_group.size() if self._divides_by_all else active
            _agree_to_reduce(self, reduces)
        if reduces:
            self.reducer.rebuild()
        if self._copies_buffers():
            self._copy_buffers()

    @_outside
    def _after_forward(self, output: Any) -> None:
        if not is_grad_enabled():
            return
        if self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            self.reducer.prepare(tensors_in(output))
        else:
            self.require_forward_param_sync = False
            self.reducer.disarm()

    def _copies_buffers(self) -> bool:
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self.modules_buffers)

    def _copy_buffers(self) -> None:
        root = _last_active(self, True) if self._join_config.enable else 0
        broadcast_all(self.modules_buffers, self.process_group, root)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager in which gradients add up on each rank; the next pass outside of it averages the sums.

        The forward pass must be inside, too.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Have `hook(state, bucket)` exchange the gradients of each GradBucket in place of an average by all_reduce.

        It returns a Future of one flat tensor, the gradients to use; see `algorithms.ddp_comm_hooks`. TypeError for a hook
        that cannot be called; ValueError for one whose annotations say that it takes or returns something else; RuntimeError
        for a second one.
        """
        _check_hook(hook)
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._has_hook = True
        self.reducer.hook = lambda bucket: hook(state, bucket)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return what can be said of the wrapped module and its buckets."""
        sizes = [bucket.flat.nbytes for bucket in self.reducer.buckets]
        return {
            "world_size": self.process_group.size(), "rank": self.process_group.rank(),
            "backend_name": self.process_group.name(), "module_name": type(self.module).__name__,
            "bucket_cap_bytes": self.bucket_bytes_cap, "bucket_sizes": ", ".join(map(str, sizes)),
            "find_unused_parameters": self.find_unused_parameters, "broadcast_buffers": self.broadcast_buffers,
            "gradient_as_bucket_view": self.gradient_as_bucket_view, "static_graph": self.static_graph,
        }  # fmt: skip

    def _set_static_graph(self) -> None:
        """Say that the graph is the same in each step, as `static_graph` does. RuntimeError after the first step."""
        if self.reducer.has_reduced:
            raise RuntimeError("_set_static_graph() should be called before training loop starts")
        self.static_graph = self.reducer.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: list[str]) -> None:
        """Have DistributedDataParallel leave these parameters and buffers of a module alone."""
        module._ddp_params_and_buffers_to_ignore = list(names)

    # Uneven inputs

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Return a context manager for loops over inputs of which ranks have different numbers; see `Join`.

        Gradients are divided by the number of all ranks, or with `divide_by_initial_world_size=False` of those with inputs.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )  # fmt: skip

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank without inputs does; takes `divide_by_initial_world_size`."""
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    @property
    def join_device(self) -> device:
        """Return the device of the module's first parameter."""
        return self.device

    @property
    def join_process_group(self) -> ProcessGroup:
        """Return the group that gradients are averaged over."""
        return self.process_group


class _Shadow(JoinHook):
    """What a rank without inputs does in each step of the others: it takes part in their collectives, with zeros."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self.model = model

    def main_hook(self) -> None:
        model = self.model
        reduces = _agree_to_reduce(model, None)
        if reduces:
            model.reducer.rebuild()
        if model._copies_buffers():
            broadcast_all(model.modules_buffers, model.process_group, _last_active(model, False))
        model.require_forward_param_sync = reduces
        if reduces:
            model.reducer.reduce_nothing()

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self.model
        model._copy_from(_last_active(model, is_last_joiner))
        model.reducer.divisor = model.process_group.size()


def _agree_to_reduce(model: DistributedDataParallel, reduces: bool | None) -> bool:
    """Return whether the ranks with inputs reduce gradients in this step; None stands for a rank without."""
    flag = tensor(int(bool(reduces)), dtype=int32)
    all_reduce(flag, ReduceOp.MAX, group=model.process_group)
    return bool(flag.item())


def _last_active(model: DistributedDataParallel, is_active: bool) -> int:
    """Return the highest number of the group's ranks that call this with `is_active`."""
    number = tensor(model.process_group.rank() if is_active else -1, dtype=int32)
    all_reduce(number, ReduceOp.MAX, group=model.process_group)
    return int(number.item())


def _group_of(group: ProcessGroup | None, mesh: DeviceMesh | None) -> ProcessGroup:
    if group is not None and mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh is None:
        return default_group() if group is None else group
    if mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
    return mesh.get_group(0)


def _check(
    module: Module, device_ids: list | None, output_device: Any, dim: int, check_reduction: bool
) -> list[device]:  # fmt: skip
    """Return the devices of the module's parameters."""
    places = list(dict.fromkeys(parameter.device for parameter in module.parameters()))
    given = [*(device_ids or ()), *(() if output_device is None else (output_device,))]
    if given and (not places or places[0].type != "cuda" or places != list(dict.fromkeys(map(present_device, given)))):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU modules, whose "
            f"device they name, but got device_ids {device_ids}, output_device {output_device}, and module parameters on "
            f"{', '.join(map(str, places))}"
        )
    if dim or check_reduction:
        raise ValueError(
            f"DistributedDataParallel got dim={dim}, check_reduction={check_reduction}, which have no effect: inputs are not "
            "scattered over devices, and reductions are always waited for. Leave both out"
        )
    if len({place.type for place in places}) > 1:
        raise ValueError(f"DistributedDataParallel's input module must be on the same type of devices, but found {places}.")
    for name, parameter in module.named_parameters():
        if type(parameter).__name__ in ("UninitializedParameter", "UninitializedBuffer"):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass "
                f"to correctly initialize the modules ({name})"
            )
    return places


def _check_hook(hook: object) -> None:
    """Raise TypeError or ValueError for what cannot be a communication hook."""
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    bucket = signature.parameters.get("bucket")
    if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, GradBucket, "dist.GradBucket", "GradBucket"):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    returned = signature.return_annotation
    is_text = isinstance(returned, str)
    if returned is not inspect.Signature.empty and not is_text and (get_origin(returned) or returned) is not Future:
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor] or torch._C.Future."
        )
