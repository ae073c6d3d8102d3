"""DTensor: a tensor that lies on the ranks of a mesh. Each rank has a part, and operators work on the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.autograd.function import Function
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import make_wrapper_subclass
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.objects import all_gather_object
from rushlight.distributed.tensor import classes, dispatch, random  # noqa: F401  (their ways of operators are registered)
from rushlight.distributed.tensor.layout import Placements, Spec, normalized, required_mesh
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.distributed.tensor.redistribution import moved

__all__ = ["DTensor"]


class DTensor(Tensor):
    """A tensor on the ranks of a mesh: `placements` says for each of its dimensions how. Its shape is that of the whole.

        mesh = init_device_mesh("cpu", (2,))
        rows = distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)])
        (rows @ rows.t()).full_tensor()

    Operators move their inputs to placements that fit, by collectives, so all ranks must call them alike. NotImplementedError
    for operators without a rule.
    """

    __slots__ = ("_local_tensor", "_spec")
    _local_tensor: Tensor
    _spec: Spec

    @staticmethod
    def __new__(cls, local: Tensor, spec: Spec, requires_grad: bool = False) -> DTensor:
        """Return the tensor of a rank's part; `distribute_tensor` and `from_local` are the ways to make one."""
        made = make_wrapper_subclass(
            cls, spec.shape, strides=spec.strides, dtype=spec.dtype, device=local.device, requires_grad=requires_grad
        )  # fmt: skip
        made._local_tensor, made._spec = local.detach(), spec
        return made

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Everything is set where it is made."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run an operator on the ranks' parts."""
        return dispatch.run(func, args, kwargs or {}, DTensor, DTensor)

    @property
    def device_mesh(self) -> DeviceMesh:
        """Return the mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """Return how the tensor lies along each dimension of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Sequence[int] | None = None, stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        """Return the tensor of which this rank's part is `local_tensor`; gradients flow back to it.

        Without `shape` and `stride` all parts have the same shape. With `run_check` replicated parts are copied from the first
        rank. RuntimeError: `shape` is given without `stride`. ValueError: the mesh is missing, or `run_check` finds parts of
        several shapes or dtypes.
        """
        mesh = required_mesh(device_mesh, "from_local")
        placed = normalized(placements, mesh, local_tensor.dim())
        if (shape is None) != (stride is None):
            raise RuntimeError("Found shape or stride alone: give both, or none for parts of one shape")
        if run_check:
            _check_parts(local_tensor, mesh, placed)
        whole = tuple(shape) if shape is not None else _whole_shape(local_tensor, mesh, placed)
        steps = tuple(stride) if stride is not None else _whole_strides(local_tensor, whole)
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        spec = Spec(mesh, placed, whole, steps, local_tensor.dtype)
        given = None if grad_placements is None else normalized(grad_placements, mesh, local_tensor.dim())
        return _FromLocal.apply(local_tensor, spec, given)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return this rank's part; gradients of it are taken to lie as the tensor does, or as `grad_placements` says."""
        if not self.requires_grad:
            return self._local_tensor
        given = None if grad_placements is None else normalized(grad_placements, self.device_mesh, self.dim())
        return _ToLocal.apply(self, given)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole tensor. All ranks of the mesh must call it."""
        replicated = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return replicated.to_local(grad_placements=grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, async_op: bool = False,
    ) -> DTensor:  # fmt: skip
        """Return the tensor with other placements. All ranks of the mesh must call it; `async_op` does not change that.

        RuntimeError for another mesh, without placements, or for ones that are Partial where the tensor is not.
        """
        mesh = device_mesh or self.device_mesh
        if mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        wanted = normalized(placements, mesh, self.dim())
        for now, then in zip(self.placements, wanted, strict=True):
            if isinstance(then, Partial) and now != then:
                raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        if wanted == self.placements and not self.requires_grad:
            return self
        return _Redistribute.apply(self, wanted)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"

    def __deepcopy__(self, memo: dict) -> DTensor:
        if id(self) not in memo:
            copied = DTensor(self._local_tensor.clone(), self._spec, self.requires_grad)
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
        return memo[id(self)]

    def tolist(self) -> list:
        """Return the whole as nested lists. All ranks of the mesh must call it."""
        return self.full_tensor().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: a part is not the whole."""
        raise RuntimeError("a DTensor has no array of the whole: call full_tensor().numpy() or to_local().numpy()")

    __hash__ = Tensor.__hash__


def _check_parts(local: Tensor, mesh: DeviceMesh, placements: Placements) -> None:
    """Raise ValueError unless all ranks have parts of one shape and dtype; copy replicated parts from the first rank."""
    if mesh.get_coordinate() is None:
        return
    for mesh_dim, placement in enumerate(placements):
        group = mesh.get_group(mesh_dim)
        everyone: list[Any] = [None] * group.size()
        all_gather_object(everyone, (str(local.dtype), tuple(local.shape)), group=group)
        if len(set(everyone)) > 1:
            raise ValueError(f"Inconsistent tensor metadata (including shape and dtype) across ranks: {everyone}")
        if isinstance(placement, Replicate):
            broadcast(local.detach(), group=group, group_src=0)


def _whole_shape(local: Tensor, mesh: DeviceMesh, placements: Placements) -> tuple[int, ...]:
    shape = list(local.shape)
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            shape[placement.dim] *= mesh.size(mesh_dim)
    return tuple(shape)


def _whole_strides(local: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of the whole in which dimensions have the order that they have in a part."""
    if local.is_contiguous():
        return contiguous_strides(shape)
    order = sorted(range(len(shape)), key=lambda dim: (-local.stride(dim), dim))
    steps, following = [0] * len(shape), 1
    for dim in order[::-1]:
        steps[dim] = following
        following *= shape[dim]
    return tuple(steps)


def _of_gradients(placements: Placements) -> Placements:
    """Return how the gradient of a tensor lies: that of a partial one is the same for each rank's part."""
    return tuple(Replicate() if isinstance(each, Partial) else each for each in placements)


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: Spec, grad_placements: Placements | None) -> DTensor:
        ctx.placements = grad_placements or _of_gradients(spec.placements)
        return DTensor(local, spec)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple:
        return moved(grad._local_tensor, grad._spec, ctx.placements), None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, grad_placements: Placements | None) -> Tensor:
        ctx.spec = tensor._spec.placed(grad_placements or _of_gradients(tensor.placements))
        return tensor._local_tensor.view_as(tensor._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return DTensor(grad, ctx.spec), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, placements: Placements) -> DTensor:
        ctx.placements = tensor.placements
        return DTensor(moved(tensor._local_tensor, tensor._spec, placements), tensor._spec.placed(placements))

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple:
        wanted = _of_gradients(ctx.placements)
        return DTensor(moved(grad._local_tensor, grad._spec, wanted), grad._spec.placed(wanted)), None


