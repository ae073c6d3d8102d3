"""Names of PyTorch's readers and writers of archives that programs only mention."""

from rushlight.core.absent import absent_class

PyTorchFileReader = absent_class("torch.PyTorchFileReader", "torch.load reads archives")
