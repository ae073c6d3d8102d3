"""TorchScript."""
