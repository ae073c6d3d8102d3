"""`torch.utils.data._utils`: the parts of a data loader that programs use by themselves."""

from rushlight.utils.data._utils import collate, pin_memory, worker

__all__ = ["collate", "pin_memory", "worker"]
