"""`torch.distributed._tensor.device_mesh`: a name of `torch.distributed.device_mesh`."""

from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
