"""What aot raises."""

from __future__ import annotations


class Untraceable(RuntimeError):
    """Why a program has no joint graph; it runs as captured then."""
