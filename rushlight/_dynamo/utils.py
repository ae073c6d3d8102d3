"""What happened in captures."""

from rushlight.dynamo.rules import counters

__all__ = ["counters"]
