"""Triton programs as data: the text of a graph's kernels and launches, and what they need."""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight.inductor.codegen.triton.kernels import Launch
from rushlight.inductor.ir import Buffer, ConstantBuffer
from rushlight.inductor.memory import ArenaPlan, SlotPlan
from rushlight.inductor.scheduler import Group


@dataclass
class TritonProgram:
    """A program: its text, its launches in order, and the memory that it takes and gives.

    `kernel_source` defines the kernels and needs Triton; `wrapper_source` defines the functions that launch them, and is plain
    Python. `constants`, `folded` and `outputs` are in the order of these functions' parameters and results.
    """

    kernel_source: str = ""
    wrapper_source: str = ""
    launches: list[Launch] = field(default_factory=list)
    fold_launches: list[Launch] = field(default_factory=list)
    constants: list[ConstantBuffer] = field(default_factory=list)
    folded: list[Buffer] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    arena: ArenaPlan | SlotPlan | None = None
    groups: list[Group] = field(default_factory=list)
    in_place: dict[str, str] = field(default_factory=dict)
    uses_status: bool = False

    @property
    def source(self) -> str:
        """The whole text."""
        return f"{self.kernel_source}\n\n{self.wrapper_source}"

    @property
    def kernels(self) -> dict[str, Launch]:
        """The kernels: name -> its first launch."""
        found: dict[str, Launch] = {}
        for launch in (*self.fold_launches, *self.launches):
            found.setdefault(launch.kernel, launch)
        return found
