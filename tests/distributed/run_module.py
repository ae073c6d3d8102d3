"""Runs `main(torch, dist)` of a module as one rank, and keeps what it returns in a file: run_module.py MODULE FOLDER [fork].

With "fork" it is all ranks of WORLD_SIZE: PyTorch, whose import takes seconds, is imported once.
"""

import importlib
import os
import pickle
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    found = importlib.import_module(sys.argv[1]).main(torch, dist)
    (Path(sys.argv[2]) / f"{dist.get_rank()}.pickle").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def fork_ranks() -> None:
    """Run `main` in a child for each rank; exit with 1 if one fails."""
    children = []
    for rank in range(int(os.environ["WORLD_SIZE"])):
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = str(rank)
            return main()
        children.append(child)
    sys.exit(int(any(os.waitpid(child, 0)[1] for child in children)))


if __name__ == "__main__":
    fork_ranks() if sys.argv[3:] == ["fork"] else main()
