"""`torch.distributed.tensor.debug`: which collectives a program's distributed tensors cause."""

from rushlight.distributed.tensor.debug.comm_mode import CommDebugMode

__all__ = ["CommDebugMode"]
