"""`torch.distributed.run`: torchrun, which is not here yet."""

from rushlight.core.absent import absent_function

main = absent_function("torch.distributed.run.main")
get_args_parser = absent_function("torch.distributed.run.get_args_parser")
