"""Start one function in several processes, and hand on the error of the first that fails."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import traceback
from collections.abc import Callable
from typing import Any


class ProcessRaisedException(Exception):
    """A process raised an error: its traceback as text, the index of the process and its number."""

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessExitedException(Exception):
    """A process ended by a signal or with an exit code other than 0, without an error to show."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid, self.exit_code = msg, error_index, error_pid, exit_code


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: list, connections: list):
        self.processes, self._connections = processes, connections

    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until a process ends, at most `timeout` seconds; whether all have ended well.

        ProcessRaisedException or ProcessExitedException where one failed; the others are ended then.
        """
        running = {process.sentinel: process for process in self.processes if process.exitcode is None}
        for sentinel in multiprocessing.connection.wait(list(running), timeout) if running else []:
            running[sentinel].join()
        failed = [index for index, process in enumerate(self.processes) if process.exitcode not in (None, 0)]
        if failed:
            self._fail(failed[0])
        return all(process.exitcode == 0 for process in self.processes)

    def _fail(self, index: int) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        process, connection = self.processes[index], self._connections[index]
        if connection.poll():
            text = f"\n\n-- Process {index} terminated with the following error:\n{connection.recv()}"
            raise ProcessRaisedException(text, index, process.pid)
        text = f"process {index} terminated with exit code {process.exitcode}"
        raise ProcessExitedException(text, index, process.pid, process.exitcode)


def _run(function: Callable, index: int, args: tuple, errors: Any) -> None:
    try:
        function(index, *args)
    except KeyboardInterrupt:
        return
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


def start_processes(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Call `fn(index, *args)` in `nprocs` processes; with `join` wait for all, otherwise return their context."""
    context = multiprocessing.get_context(start_method)
    processes, connections = [], []
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
        process.start()
        processes.append(process)
        connections.append(receiver)
    started = ProcessContext(processes, connections)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Call `start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
