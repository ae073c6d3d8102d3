"""`torch._subclasses`: tensors that stand for others."""

from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
