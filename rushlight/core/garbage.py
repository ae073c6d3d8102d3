"""Tell Python's cyclic garbage collector which objects are there to stay.

In: a moment after which many new objects live on, such as those of imported modules. Out: the next collection skips them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def keep_new_objects() -> None:
    """Move all objects to the oldest generation, as collections that find them alive would.

    Garbage among them is found when the oldest generation is collected. Does nothing where a program has frozen objects itself.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextmanager
def making_objects_that_stay() -> Iterator[None]:
    """Return a context manager that switches the garbage collector off and moves the objects made in it to the oldest
    generation. Collecting among them would take as long as making them.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            keep_new_objects()
            gc.enable()
