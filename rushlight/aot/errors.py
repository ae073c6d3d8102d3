"""Errors of aot."""

from __future__ import annotations


class Untraceable(RuntimeError):
    """A program has no joint graph, for the reason in the message. The program then runs as captured, in eager."""
