"""`torch.distributed._tensor.experimental`: the old name of `torch.distributed.tensor.experimental`."""

from rushlight.distributed.tensor.experimental import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
