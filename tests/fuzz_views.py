"""A long run of random chains of views and in-place writes against torch: `python -m tests.fuzz_views --chains 20000`.

Half of the chains record gradients. Every difference is printed with its program and seed; the exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys

import rushlight
from tests.ops.torch_oracle import array_of
from tests.ops.view_chains import Chain, difference


def main() -> int:
    """Run the chains and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--show", type=int, default=5, help="how many differences to print")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    differing = 0
    for number in range(options.first, options.first + options.chains):
        found = difference(Chain(rushlight, number // 2, grad=bool(number % 2)), torch, array_of)
        if found is not None:
            differing += 1
            if differing <= options.show:
                print(f"chain {number}: {found}\n", flush=True)
    print(f"{options.chains} chains of views and writes, {differing} differences from torch {torch.__version__}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
