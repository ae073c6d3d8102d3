"""Train a GPT data-parallel: each rank has the model, and its part of each batch.

    rushlight launch -n 2 examples/distributed/train_ddp.py --steps 50
    mpirun -n 2 rushlight exec examples/distributed/train_ddp.py --steps 50
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent))
from gpt import GPT, Batches, loss_of  # noqa: E402  (the folder is added first)


def train(steps: int, compiled: bool) -> list[float]:
    """Return the losses of the steps, means over all ranks."""
    rank, ranks, batches = dist.get_rank(), dist.get_world_size(), Batches()
    torch.manual_seed(0)
    model = GPT(len(batches.alphabet))
    model = DistributedDataParallel(torch.compile(model) if compiled else model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, *batches.part(step, rank, ranks))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        losses.append(mean.item())
    return losses


def main() -> None:
    """Train, and print the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    dist.init_process_group()
    begin = time.perf_counter()
    losses = train(options.steps, options.compile)
    if dist.get_rank() == 0:
        for step, loss in enumerate(losses):
            print(f"step {step} loss {loss:.7f}")
        print(f"{(time.perf_counter() - begin) / options.steps * 1000:.1f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
