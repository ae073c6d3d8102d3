"""`torch.distributed.algorithms.model_averaging`: averages of several processes' models, which is not here yet."""
