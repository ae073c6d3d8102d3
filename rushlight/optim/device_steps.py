"""Steps of all parameters of a group that are on GPUs: a table that the provider of `SERVICE` fills.

In: a native step's kernel, rows and options. Out: the rows that were not updated together.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.providers import import_provider

SERVICE = "optimizer steps on GPUs"
steps: dict[str, Callable[[list[tuple], tuple], bool]] = {}


def step_on_gpus(kernel: str, rows: list[tuple], options: tuple) -> list[tuple]:
    """Update rows on GPUs, those of a device together; return the rows that were not updated."""
    import_provider(SERVICE)
    step, left = steps.get(kernel), []
    for place in dict.fromkeys(row[0].device for row in rows):
        together = [row for row in rows if row[0].device == place]
        if step is None or not step(together, options):
            left += together
    return left
