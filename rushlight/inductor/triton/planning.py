"""Launch plans: what a Triton program does for inputs of known sizes, as data that C code repeats (`csrc/gpu_plan.c`).

In: the function that launches a program, and inputs. Out: a `LaunchPlan`. The function runs once with a planner in the
launcher's place: addresses are numbers of slots, memory is only counted, and launches are noted. Kernels are loaded.
Stage: inductor, calling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight._C import LaunchPlan
from rushlight.core.tensor import Tensor
from rushlight.cuda import plans, runtime
from rushlight.cuda.driver import Kernel

_SLOT_BITS = 56  # an address of a slot: its number behind the bits of an offset
_ALIGNMENT = 16
# Returns a kernel for a name, constants, warps, stages, and whether all pointers, and all numbers, are multiples of 16.
LoadKernel = Callable[[str, dict[str, int], int, int, dict[bool, bool]], Kernel]


class _Slot(NamedTuple):
    """Memory that a plan allocates."""

    data_ptr: int


class Planner:
    """Stands for a launcher while the launches of a program are noted."""

    def __init__(self, index: int, inputs: Sequence[Tensor], pointers: dict[str, list[bool]], load: LoadKernel, reason: str):
        self._device = runtime.device_at(index)
        self._inputs = inputs
        self._pointers, self._load, self._reason = pointers, load, reason
        self._memory: list[int] = []
        self._steps: list[plans.Step] = []
        self._uses_status = False

    def addresses(self) -> list[int]:
        """Return what stands for the inputs' addresses."""
        return [(number + 1) << _SLOT_BITS for number in range(len(self._inputs))]

    def allocate(self, nbytes: int) -> _Slot:
        """Note that memory is needed."""
        self._memory.append(nbytes)
        return _Slot((len(self._inputs) + len(self._memory)) << _SLOT_BITS)

    def free(self, memory: _Slot) -> None:
        """Do nothing: the plan's memory is released at its end."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Note a copy."""
        if nbytes:
            self._steps.append(plans.copy(self._value(target), self._value(source), nbytes))

    def clear_status(self) -> int:
        """Return the address of the device's status word."""
        self._uses_status = True
        return self._device.status()

    def has_failed(self, status: int) -> bool:
        """Return False: the host does not wait."""
        return False

    def launch(
        self, kernel: str, grid: tuple[int, ...], arguments: tuple[int, ...], constants: dict[str, int], *, warps: int,
        stages: int,
    ) -> None:  # fmt: skip
        """Load a kernel and note its launch."""
        if 0 in grid:
            return
        values, aligned = [], {True: True, False: True}
        for argument, is_pointer in zip(arguments, self._pointers[kernel], strict=True):
            value = self._value(argument) if is_pointer else (plans.NUMBER, argument)
            values.append(value)
            if not self._is_aligned(*value):
                aligned[is_pointer] = False
        found = self._load(kernel, constants, warps, stages, aligned)
        self._steps.append(plans.launch(found, grid, values, constants))

    def _value(self, address: int) -> plans.Value:
        """Return the slot of an address, and the offset there, or `NUMBER` for an address in no slot."""
        return (address >> _SLOT_BITS) - 1, address & ((1 << _SLOT_BITS) - 1)

    def _is_aligned(self, slot: int, offset: int) -> bool:
        is_input = 0 <= slot < len(self._inputs)
        return ((self._inputs[slot]._impl.data_ptr if is_input else 0) + offset) % _ALIGNMENT == 0

    def slot_of(self, memory: _Slot) -> int:
        """Return the number of memory's slot."""
        return self._value(memory.data_ptr)[0]

    def plan(self, outputs: Sequence[tuple]) -> LaunchPlan:
        """Return the plan."""
        reason = self._reason if self._uses_status else None
        return plans.make_plan(self._device.index, self._inputs, self._memory, self._steps, outputs, reason)
