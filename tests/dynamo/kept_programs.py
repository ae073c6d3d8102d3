"""Runs the small programs from captures saved by another process: `python -m tests.dynamo.kept_programs FOLDER`.

The first process saves its captures in the folder, and later ones load them. Prints as JSON the numbers of captures saved and
loaded, and the results that differ from eager. Graphs run node by node, so nothing is compiled.
"""

from __future__ import annotations

import json
import marshal
import sys
import warnings
from pathlib import Path
from typing import Any

from rushlight import dynamo
from rushlight.compiler.kept_graphs import KeptGraph, NoData, to_data
from rushlight.dynamo import capture, keeping, kept_frames
from rushlight.dynamo.fingerprints import of_code
from rushlight.utils.native.cache import digest
from tests.dynamo.harness import differences
from tests.dynamo.test_programs import PROGRAMS


class Entry:
    """The saved capture of one frame."""

    def __init__(self, frame: Any, path: Path, counts: dict[str, int]) -> None:
        self.frame = frame
        self.path = path
        self.counts = counts

    def find(self, history: Any) -> Any:
        """Loads a capture from the folder."""
        if not self.path.exists():
            return None
        described, graph = marshal.loads(self.path.read_bytes())
        kept = kept_frames.Kept(*described)
        found = kept_frames.find(kept, self.frame)
        self.counts["found" if found else "unlike"] += 1
        if found is None:
            return None
        history.repeat(*kept.seen)
        module = KeptGraph(graph, found.attributes).module()
        return found.guarded(module, capture._disable_capture(module.forward))

    def keep(self, history: Any, found: Any) -> None:
        """Saves a capture in the folder."""
        try:
            content = marshal.dumps((tuple(keeping.describe(self.frame.f_code, found, history)), to_data(found.graph)))
        except (keeping.CannotKeep, NoData, ValueError):
            self.counts["refused"] += 1
            return
        self.counts["kept"] += 1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(content)


class Keeper(dynamo.FrameCallback):
    """Saves and loads the captures of one program."""

    def __init__(self, folder: Path, counts: dict[str, int]) -> None:
        super().__init__(lambda module, inputs: module.forward)
        self.folder = folder
        self.counts = counts

    def kept(self, frame: Any) -> Entry:
        """The entry for the frame's code."""
        return Entry(frame, self.folder / digest(of_code(frame.f_code)), self.counts)


def main(folder: Path) -> None:
    """Run all programs."""
    counts, differing = {"kept": 0, "found": 0, "unlike": 0, "refused": 0}, []
    warnings.simplefilter("ignore")
    for parameters in PROGRAMS:
        (program,) = parameters.values
        dynamo.reset()
        captured = dynamo.optimize(Keeper(folder / parameters.id, counts))(program.function)
        differing += differences(program, captured)
    print(json.dumps({**counts, "differing": differing}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
