"""`torch.distributed._composable`: the old names of functions that change modules."""
