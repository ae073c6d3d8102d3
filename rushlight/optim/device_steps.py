"""Steps of all parameters of a group that are on GPUs, as one call that the provider of `SERVICE` makes.

In: the function that updates one parameter, the rows (parameter, gradient, state) of a group, and its options. Out: the rows
that were not updated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.providers import import_provider
from rushlight.core.tensor import Tensor

SERVICE = "optimizer steps on GPUs"
Row = tuple[Tensor, Tensor, dict[str, Any]]
Update = Callable[[Tensor, Tensor, dict[str, Any], dict[str, Any]], None]


class Steps:
    """What updates rows of one device together: the provider sets `run`, which returns the rows that it has not updated."""

    def __init__(self) -> None:
        self.run: Callable[[Update, list[Row], dict[str, Any]], list[Row]] | None = None


steps = Steps()


def step_together(update: Update, rows: list[Row], options: dict[str, Any]) -> list[Row]:
    """Update rows on GPUs, those of a device together; return the rows that were not updated."""
    if steps.run is None:
        import_provider(SERVICE)
    left = []
    for place in dict.fromkeys(row[0].device for row in rows):
        left += steps.run(update, [row for row in rows if row[0].device == place], options)
    return left
