"""Names of PyTorch's archive readers and writers that programs mention without using them."""

from rushlight.core.absent import absent_class

PyTorchFileReader = absent_class("torch.PyTorchFileReader", "torch.load reads archives")
