"""What a program has made and is to keep, told to the search for cyclic garbage.

In: a moment after which many new objects stay, such as those of imported modules. Out: a next search that passes them over.
"""

from __future__ import annotations

import gc


def keep_new_objects() -> None:
    """Count all objects as old ones, as the next searches would after going through each of them.

    Garbage among them is found when old objects are searched. Nothing happens where a program has frozen objects itself.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
