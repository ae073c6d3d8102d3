"""`torch.distributed.algorithms.ddp_comm_hooks`: ways of exchanging gradients, which is not here yet."""
