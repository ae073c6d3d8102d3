"""Facts that differ between processes and that a capture may depend on: hashes of texts, the order of sets, addresses.

A capture that saw one only holds in its own process. Recorded per thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

_STABLE_HASH = (int, float, complex, bool)  # hash() of these does not depend on PYTHONHASHSEED


class _Seen(threading.local):
    any = False


_seen = _Seen()


def forget() -> None:
    """Reset at the beginning of a capture."""
    _seen.any = False


def note() -> None:
    """Record that the capture depends on this process."""
    _seen.any = True


def note_order(items: Iterable) -> None:
    """Record that the capture saw the order of a set."""
    if not all(type(item) in _STABLE_HASH for item in items):
        note()


def note_text(text: object) -> None:
    """Record a value of the capture if it is a text with an address."""
    if type(text) is str and " at 0x" in text:
        note()


def were_seen() -> bool:
    """Return whether the capture depends on this process."""
    return _seen.any
