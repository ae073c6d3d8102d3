"""`torch.distributed.device_mesh`: arrangements of processes, which are not here yet."""

from rushlight.distributed import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
