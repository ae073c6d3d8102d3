"""`torch.distributed.run`: torchrun, which is `rushlight launch` here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rushlight.distributed.launcher.launch import main as _launch
from rushlight.distributed.launcher.options import parser


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    return parser()


def main(args: Sequence[str] | None = None) -> None:
    """Start a program as several ranks; ends by SystemExit with its status where that is not 0."""
    status = _launch(sys.argv[1:] if args is None else args)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
