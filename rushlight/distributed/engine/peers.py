"""The processes of all ranks: which machine each is on, and whether it still runs, as far as this machine can tell."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Peer:
    """The process of a rank. `space` is equal where process ids mean the same: the machine and the namespace of ids."""

    space: str
    host: str
    pid: int


def myself() -> Peer:
    """Return this process."""
    return Peer(f"{_read('/proc/sys/kernel/random/boot_id')} {_link('/proc/self/ns/pid')}", socket.gethostname(), os.getpid())


def has_ended(peer: Peer, me: Peer) -> bool:
    """Return whether a process has ended; False where it is on another machine, which this one cannot tell."""
    if peer.space != me.space or peer.pid == me.pid:
        return False
    status = _read(f"/proc/{peer.pid}/stat")
    return not status or status.rpartition(")")[2].split()[0] in ("Z", "X")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
