"""`torch.distributed.constants`."""

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
"""How long processes wait for one another."""
default_pg_nccl_timeout = timedelta(minutes=10)
