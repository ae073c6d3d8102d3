"""`torch.distributed.elastic`: restarts of processes, which is not here yet."""
