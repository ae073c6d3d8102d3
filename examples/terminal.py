"""Run an example's command: Ctrl-C ends it without a traceback, and so does a closed pipe after it (`| head`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

INTERRUPTED = 128 + 2  # the exit status that shells report for a program that SIGINT ended


def run(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Call `main` with the command's words, and exit with what it returns."""
    try:
        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        print()
        status = INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout when it exits. The null device takes the rest, because the pipe has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
