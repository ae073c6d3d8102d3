"""The error of `export` for mistakes of the user."""

from __future__ import annotations


class UserError(RuntimeError):
    """The arguments of `export`, or the program's use of open sizes, cannot be exported."""
