"""`rushlight launch`: starts mpirun, shows what ranks print, and ends all of them when one dies or the user interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from rushlight.distributed.launcher.command import command, variables
from rushlight.distributed.launcher.options import Options, cores, parse
from rushlight.distributed.launcher.output import Relay
from rushlight.distributed.launcher.start_rank import die_with_parent

_PATIENCE = 10.0  # seconds for mpirun to end its ranks before it is killed itself


def main(words: Sequence[str]) -> int:
    """Start a program as several ranks; return the exit status: 0, that of the rank that failed, or 128 and its signal."""
    options = parse(words)
    try:
        line = command(options)
    except FileNotFoundError as error:
        print(f"rushlight launch: {error}", file=sys.stderr)
        return 127
    _announce(options)
    return _Launch(options, line).run()


def _announce(options: Options) -> None:
    if options.ranks > cores():
        print(f"rushlight launch: {options.ranks} ranks share {cores()} cores, so that each waits for others", file=sys.stderr)


class _Launch:
    """One run of mpirun."""

    def __init__(self, options: Options, line: list[str]) -> None:
        self._relay = Relay(options.log_dir)
        self._interrupted = 0
        environment = {**os.environ, **variables(options)}
        self._process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True, errors="replace",
            start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip

    def run(self) -> int:
        """Wait for the ranks; return the exit status."""
        previous = {number: signal.signal(number, self._end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._copy_output()
            status = self._process.wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._relay.close()
        return self._report(status)

    def _copy_output(self) -> None:
        pairs = ((self._process.stdout, sys.stdout), (self._process.stderr, sys.stderr))
        threads = [threading.Thread(target=self._relay.copy, args=pair, daemon=True) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _end(self, number: int, frame: FrameType | None) -> None:
        """End mpirun, which ends the ranks; the second time, or after some seconds, kill all."""
        self._interrupted += 1
        if self._interrupted == 1:
            self._process.terminate()
            timer = threading.Timer(_PATIENCE, self._kill)
            timer.daemon = True
            timer.start()
        else:
            self._kill()

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _report(self, status: int) -> int:
        if self._interrupted:
            print("rushlight launch: interrupted; all ranks were ended", file=sys.stderr)
            return 128 + signal.SIGINT
        status = self._relay.status(status if status >= 0 else 128 - status)
        if status:
            print(f"rushlight launch: {self._relay.cause(status)}", file=sys.stderr)
        return status
