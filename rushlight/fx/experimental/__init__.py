"""`torch.fx.experimental`: where PyTorch has `make_fx`."""
