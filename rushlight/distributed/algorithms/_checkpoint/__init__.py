"""`torch.distributed.algorithms._checkpoint`: recomputing of activations, which is not here yet."""
