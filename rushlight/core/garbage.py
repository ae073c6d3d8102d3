"""What a program has made and is to keep, told to the search for cyclic garbage.

In: a moment after which many new objects stay, such as those of imported modules. Out: a next search that passes them over.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def keep_new_objects() -> None:
    """Count all objects as old ones, as the next searches would after going through each of them.

    Garbage among them is found when old objects are searched. Nothing happens where a program has frozen objects itself.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextmanager
def making_objects_that_stay() -> Iterator[None]:
    """A context in which nothing searches for garbage, and whose new objects count as old ones: a search among them would take
    as long as to make them."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            keep_new_objects()
            gc.enable()
