"""How much memory this process has held at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Bytes. Linux's own figure, where there is one: that of getrusage starts from what the parent process held."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
