"""`torch.distributed._composable`: sharding as a function, which is not here yet."""
