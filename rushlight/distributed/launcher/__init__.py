"""`torch.distributed.launcher`: `rushlight launch`, which starts programs as several ranks by mpirun."""
