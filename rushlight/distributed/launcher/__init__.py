"""`torch.distributed.launcher`: starting of processes, which is not here yet."""
