"""`torch.distributed.algorithms.ddp_comm_hooks`: ways in which DistributedDataParallel exchanges gradients."""
