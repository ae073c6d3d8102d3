"""What differs from process to process and a capture may have looked at: hashes of texts, the order of sets, and addresses.

What a capture made of these holds for its own process. Noted by thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

_FIXED = (int, float, complex, bool)  # whose hashes are the same in all processes


class _Seen(threading.local):
    any = False


_seen = _Seen()


def forget() -> None:
    """A capture begins."""
    _seen.any = False


def note() -> None:
    """The capture looked at something of this process."""
    _seen.any = True


def note_order(items: Iterable) -> None:
    """The capture looked at the order of a set."""
    if not all(type(item) in _FIXED for item in items):
        note()


def note_text(text: object) -> None:
    """The capture has made a value, which may be a text with an address."""
    if type(text) is str and " at 0x" in text:
        note()


def were_seen() -> bool:
    """Whether the capture looked at anything of this process."""
    return _seen.any
