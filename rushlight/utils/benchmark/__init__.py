"""`torch.utils.benchmark`: times of short pieces of code, with warm-up, repetitions and tables.

Instructions are not counted (no Callgrind), and C++ statements are not built.
"""

from rushlight.utils.benchmark.compare import Colorize, Compare
from rushlight.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from rushlight.utils.benchmark.timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
    "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip
