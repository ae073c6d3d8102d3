"""Runs `main(torch, dist)` of a module as one rank, and keeps what it returns in a file: run_module.py MODULE FOLDER."""

import importlib
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


if __name__ == "__main__":
    main()
