"""`torch.utils.checkpoint` in compiled code: the function becomes part of the graph, and its intermediate values are not saved.

In: a call of `checkpoint` that dynamo captures. Out: the function's nodes, marked with `meta["recompute"]`, which the
partitioner recomputes in the backward at any cost. Random numbers are saved, so both runs see the same ones.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from rushlight._C import skip_code
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.utils.checkpoint import CheckpointFunction, checkpoint

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Value

# Options that have no effect in a graph.
_OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "early_stop")


def _follow_checkpoint(tx: Any, function: Value, *args: Value, **kwargs: Value) -> Value:
    """Follow the function that `checkpoint` calls, and mark the new nodes to be recomputed in the backward."""
    if "context_fn" in kwargs or "debug" in kwargs:
        raise GraphBreak("checkpoint() with context_fn or debug")
    kwargs = {name: value for name, value in kwargs.items() if name not in _OPTIONS}
    nodes = tx.graph.graph.nodes
    last = next(iter(reversed(nodes)), None)
    result = function.call(tx, list(args), kwargs)
    if state.grad_enabled:
        for node in itertools.takewhile(lambda node: node is not last, reversed(nodes)):
            node.meta["recompute"] = True
    return result


HANDLERS[checkpoint] = _follow_checkpoint
# If checkpoint cannot be captured, all of it runs in eager: the recomputation must save the same tensors as the first run.
skip_code(checkpoint.__code__, True)
skip_code(CheckpointFunction.forward.__code__, True)
