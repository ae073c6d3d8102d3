"""Run a command of the examples as programs in a terminal do: Ctrl-C ends it, and so does a reader that has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

INTERRUPTED = 128 + 2  # what shells say of a program that Ctrl-C ended


def run(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Call `main` with the command's words, and exit with what it returns."""
    try:
        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        print()
        status = INTERRUPTED
    except BrokenPipeError:
        # Python writes what is left when it exits, to where nobody reads.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
