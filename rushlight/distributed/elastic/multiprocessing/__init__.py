"""`torch.distributed.elastic.multiprocessing`: processes that are watched, which is not here yet."""
