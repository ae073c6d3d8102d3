"""Train a GPT sharded: each rank keeps a part of the parameters, the gradients and the optimizer's state.

    rushlight launch -n 2 examples/distributed/train_sharded.py --steps 50 --checkpoint /tmp/gpt
    rushlight launch -n 4 examples/distributed/train_sharded.py --steps 100 --checkpoint /tmp/gpt

The second command goes on where the first one ended, with another number of ranks.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(Path(__file__).parent))
from gpt import GPT, Batches, loss_of  # noqa: E402  (the folder is added first)


class Training:
    """A model, its optimizer and the number of steps made, which a checkpoint keeps."""

    def __init__(self) -> None:
        self.batches, self.step = Batches(), 0
        torch.manual_seed(0)
        self.model = GPT(len(self.batches.alphabet))
        for block in self.model.blocks:
            fully_shard(block)
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def state_dict(self) -> dict:
        """Return the state."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def load_state_dict(self, state: dict) -> None:
        """Take a state."""
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )  # fmt: skip
        self.step = state["step"]

    def advance(self) -> float:
        """Make a step; return the loss, the mean over all ranks."""
        ranks = dist.get_world_size()
        self.optimizer.zero_grad()
        loss = loss_of(self.model, *self.batches.part(self.step, dist.get_rank(), ranks))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        return mean.item()


def main() -> None:
    """Train up to a number of steps, and print the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args()
    dist.init_process_group()
    training = Training()
    if options.checkpoint is not None and (options.checkpoint / ".metadata").exists():
        checkpoint.load({"training": training}, checkpoint_id=options.checkpoint)
    begin, first = time.perf_counter(), training.step
    while training.step < options.steps:
        loss = training.advance()
        if dist.get_rank() == 0:
            print(f"step {training.step - 1} loss {loss:.7f}")
    if dist.get_rank() == 0:
        print(f"{(time.perf_counter() - begin) / max(training.step - first, 1) * 1000:.1f} ms a step")
    if options.checkpoint is not None:
        checkpoint.save({"training": training}, checkpoint_id=options.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
