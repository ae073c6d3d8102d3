"""`loss_parallel`: cross entropy of logits that are cut along the classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.distributed.tensor.dispatch import cut_classes

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Context manager in which cross entropy works on logits that are cut along the classes, as the last layer gives them.

    Only a maximum, a sum and the loss of each sample travel, instead of the logits. The backward pass must be inside, too.

        with loss_parallel():
            loss = F.cross_entropy(logits, labels)  # logits: DTensor with Shard(1); labels: replicated, or a plain tensor
            loss.backward()
    """
    before = cut_classes(True)
    try:
        yield
    finally:
        cut_classes(before)
