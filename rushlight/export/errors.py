"""The error of `export` for what a user got wrong."""

from __future__ import annotations


class UserError(RuntimeError):
    """The arguments of `export`, or what the program does with open sizes, are not what can be exported."""
