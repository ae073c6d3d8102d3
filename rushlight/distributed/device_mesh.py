"""DeviceMesh: the ranks as an array, with a process group for each line along each of its dimensions.

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
    mesh["shard"].get_group()      # the 4 ranks in this rank's row
    mesh.get_local_rank("shard")   # this rank's place in it
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.core.dtype import int32
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import impl_from_array
from rushlight.distributed.backends import has_gpu
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import default_group, is_initialized, registry
from rushlight.distributed.initialization import init_process_group
from rushlight.distributed.subgroups import new_group

_Groups = list[ProcessGroup | None]
_entered: list[DeviceMesh] = []


def current_mesh() -> DeviceMesh | None:
    """Return the mesh whose context this is, None for none."""
    return _entered[-1] if _entered else None


cuda = LazyModule("rushlight.cuda")


def _choose_gpu(rank: int) -> None:
    """Make a GPU the current one, unless the program has chosen one: ranks of a machine take them in turn."""
    if not cuda.current_device():
        cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)) % cuda.device_count())


class DeviceMesh:
    """An array of ranks; this process has a place in it, or none.

    `mesh` is the array, or nested lists of ranks. All ranks must make the same meshes in the same order. ValueError for a
    device other than "cpu", or names that are not one for each dimension.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Tensor | Sequence,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        _groups: _Groups | None = None,
        _root: DeviceMesh | None = None,
    ) -> None:
        if device_type != "cpu" and not (device_type == "cuda" and has_gpu()):
            raise ValueError(f"a DeviceMesh of {device_type!r}: expected 'cpu', or 'cuda' where there is a GPU")
        ranks = mesh.numpy() if isinstance(mesh, Tensor) else np.asarray(mesh)
        self.device_type = device_type
        self._ranks = ranks.astype(np.int64)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._check_names()
        if not is_initialized():
            init_process_group()
        self._rank = default_group().rank()
        if device_type == "cuda":
            _choose_gpu(self._rank)
        self._root = _root
        self._groups = _groups if _groups is not None else [self._line_group(dim) for dim in range(self._ranks.ndim)]
        self._flattened: dict[str, DeviceMesh] = {}

    def __enter__(self) -> DeviceMesh:
        """Make this the mesh of distributed tensors that are made without one."""
        _entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.pop()

    def _check_names(self) -> None:
        names = self.mesh_dim_names
        if names is not None and (len(names) != self._ranks.ndim or len(set(names)) < len(names)):
            raise ValueError(f"mesh_dim_names {names} are not one name for each of {self._ranks.ndim} dimensions")

    def _line_group(self, dim: int) -> ProcessGroup | None:
        """Make the groups of all lines along a dimension; return that of this rank's line."""
        everyone = default_group()
        if self._ranks.ndim == 1 and self._ranks.tolist() == list(everyone.ranks):
            return everyone
        lines = np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim])
        name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
        made = [new_group(line.tolist(), group_desc=f"mesh_{name}", sort_ranks=False) for line in lines]
        return next((each for each in made if isinstance(each, ProcessGroup)), None)

    @property
    def mesh(self) -> Tensor:
        """Return the ranks, an int32 tensor."""
        return wrap(impl_from_array(self._ranks.astype(np.int32), int32))

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the size of each dimension."""
        return self._ranks.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, or of those along a dimension."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return this process's rank in the world."""
        return self._rank

    def get_coordinate(self) -> list[int] | None:
        """Return this rank's place in the array, None for none."""
        places = np.argwhere(self._ranks == self._rank)
        return places[0].tolist() if len(places) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this rank's place along a dimension, which may be left out for a mesh of one. RuntimeError: it has none."""
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"rank {self._rank} is not in {self}")
        return place[self._dim(mesh_dim, "get_local_rank")]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the group of this rank's line along a dimension, which may be left out for a mesh of one.

        RuntimeError: the mesh has several dimensions and none is given, or this rank is not in it.
        """
        found = self._groups[self._dim(mesh_dim, "get_group")]
        if found is None:
            raise RuntimeError(f"rank {self._rank} is not in {self}")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the groups of this rank's lines, one for each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _dim(self, dim: int | str | None, caller: str) -> int:
        if dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"{caller}: found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                    "specified when device_mesh.ndim > 1."
                )
            return 0
        return self._dim_named(dim) if isinstance(dim, str) else dim

    def _dim_named(self, name: str) -> int:
        if self.mesh_dim_names is None:
            raise KeyError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if name not in self.mesh_dim_names:
            raise KeyError(f"Invalid mesh_dim_name {name!r}: the mesh's dimensions are {self.mesh_dim_names}")
        return self.mesh_dim_names.index(name)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of this rank along the named dimensions: the others are fixed at its place.

        KeyError for a name that the mesh does not have; RuntimeError where this rank is not in it.
        """
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        dims = [self._dim_named(name) for name in names]
        if dims == list(range(self.ndim)):
            return self
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"rank {self._rank} is not in {self}")
        part = self._ranks[tuple(slice(None) if dim in dims else place[dim] for dim in range(self.ndim))]
        part = part.transpose([sorted(dims).index(dim) for dim in dims])
        groups = [self._groups[dim] for dim in dims]
        return DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=groups, _root=self._get_root_mesh())

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Return all ranks of this part as one dimension, which the root mesh then has by its name."""
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if name not in root._flattened:
            root._flattened[name] = self._flat(root, name)
        return root._flattened[name]

    def _flat(self, root: DeviceMesh, name: str) -> DeviceMesh:
        if self.ndim == 1:
            return DeviceMesh(self.device_type, self._ranks, mesh_dim_names=(name,), _groups=self._groups, _root=root)
        members = self._ranks.reshape(-1)
        made = new_group(members.tolist(), use_local_synchronization=True, group_desc=f"mesh_{name}", sort_ranks=False)
        group = made if isinstance(made, ProcessGroup) else None
        return DeviceMesh(self.device_type, members, mesh_dim_names=(name,), _groups=[group], _root=root)

    def _get_root_mesh(self) -> DeviceMesh:
        """Return the mesh that this is a part of, or itself."""
        return self._root or self

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup], device_type: str, mesh: Tensor | Sequence | None = None, *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """Return a mesh of groups that exist: of one, or of one for each dimension of `mesh`. ValueError: `mesh` is missing."""
        groups: _Groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if mesh is None and len(groups) != 1:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        ranks = list(groups[0].ranks) if mesh is None else mesh  # type: ignore[union-attr]
        return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __getstate__(self) -> dict[str, Any]:
        """Return the mesh without its groups, which are found by their names where it is loaded."""
        names = [None if group is None else group.group_name for group in self._groups]
        return {**self.__dict__, "_groups": names, "_root": None, "_flattened": {}, "_ranks": self._ranks.tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._ranks = np.asarray(state["_ranks"], np.int64)
        self._groups = [None if name is None else registry.by_name.get(name) for name in state["_groups"]]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and self._key() == other._key()
            and np.array_equal(self._ranks, other._ranks)
        )

    def __hash__(self) -> int:
        return hash((self._key(), self._ranks.tobytes()))

    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, self.mesh_dim_names

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{names})"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict | None = None,
) -> DeviceMesh:  # fmt: skip
    """Return all ranks as an array of `mesh_shape`, row by row, with a group for each line. All ranks must call it.

    Calls `init_process_group` where that was not done. RuntimeError: names are given twice, or not one for each dimension;
    the shape does not have as many places as there are ranks. ValueError for `backend_override`: there is MPI only.
    """
    if backend_override is not None:
        raise ValueError("init_device_mesh: there is no backend but MPI, so backend_override cannot be given")
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    _check_names(shape, mesh_dim_names)
    if not is_initialized():
        init_process_group()
    count = default_group().size()
    if math.prod(shape) != count:
        raise RuntimeError(f"Mesh should not be bigger or smaller than the world of {count} ranks, but has shape {shape}")
    return DeviceMesh(device_type, np.arange(count).reshape(shape), mesh_dim_names=mesh_dim_names)


def _check_names(shape: tuple[int, ...], names: tuple[str, ...] | None) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if len(shape) != len(names):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(names)} and "
            f"len(mesh_shape): {len(shape)}."
        )
