"""`torch.utils.deterministic`: whether new memory is filled under deterministic algorithms."""

import sys
import types

from rushlight.core.determinism import DETERMINISM


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and its like are filled, with NaN or the largest number, under deterministic algorithms."""
        return DETERMINISM.fills

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fills: bool) -> None:
        if not isinstance(fills, bool):
            raise RuntimeError(f"expected a bool, but got {type(fills)}")
        DETERMINISM.fills = fills


sys.modules[__name__].__class__ = _Module
