"""The effect of each CPython 3.11 to 3.13 instruction on a followed frame. `breaks` lists those that break the graph.

In: a translator and an instruction. Out: the translator's stack, variables and position after it.
"""

from __future__ import annotations

from rushlight.dynamo.opcodes import calls, containers, control, exceptions, operators, variables
from rushlight.dynamo.opcodes.breaks import BREAKS
from rushlight.dynamo.opcodes.table import HANDLERS, handled

__all__ = ["BREAKS", "HANDLERS", "calls", "containers", "control", "exceptions", "handled", "operators", "variables"]
