"""A program in which rank 1 does something wrong while the others wait for it: faulty.py KIND [SECONDS]."""

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

KIND = sys.argv[1]


def misbehave(x: torch.Tensor) -> torch.Tensor:
    """Do what KIND says; return the tensor for the next collective."""
    if KIND == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif KIND == "raise":
        raise ValueError("something is wrong")
    elif KIND == "leave":
        sys.exit(0)
    elif KIND == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif KIND == "sleep":
        time.sleep(600)
    elif KIND == "other":
        dist.broadcast(x, 0)
    elif KIND == "shape":
        return torch.ones(4)
    return x


def collectives_until(seconds: float, x: torch.Tensor) -> None:
    """Run collectives of several kinds; rank 1 kills itself after some seconds, at no particular place, and notes when."""
    if dist.get_rank() == 1:
        Path(__file__).with_suffix(".time").write_text(str(time.time() + seconds))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    big, pieces = torch.ones(200_000), [torch.ones(3) for _ in range(dist.get_world_size())]
    while True:
        works = [dist.all_reduce(big, async_op=True), dist.all_reduce(x, async_op=True)]
        dist.all_gather(pieces, x)
        (big[:1000] * 2).sum()
        for work in works:
            work.wait()
        dist.barrier()


def main() -> None:
    dist.init_process_group("mpi", timeout=timedelta(seconds=1))
    x = torch.ones(3)
    dist.all_reduce(x)
    if KIND == "random":
        collectives_until(float(sys.argv[2]), x)
    if KIND == "monitored":
        if dist.get_rank() != 1:
            dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True)
        time.sleep(600)
    dist.all_reduce(misbehave(x) if dist.get_rank() == 1 else x)


if __name__ == "__main__":
    main()
