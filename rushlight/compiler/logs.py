"""Watching compilation: prints the stages that RUSHLIGHT_LOGS names and writes all of them under RUSHLIGHT_DUMP."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from rushlight.compiler.settings import Settings

_SUFFIX = {"graph": "py", "guards": "py", "bytecode": "py", "joint": "py", "partition": "py", "code": "cpp", "module": "py"}
_numbers = itertools.count()


class StageLog:
    """Receives the stages of one compilation as `log(stage, text)`; texts are made only when someone reads them."""

    def __init__(self, settings: Settings, name: str):
        self.settings = settings
        self.name = name
        self.folder: Path | None = None
        self._steps = itertools.count()

    def __call__(self, stage: str, text: Callable[[], str]) -> None:
        """Print and dump one stage as the settings say."""
        shown = stage in self.settings.logs
        if not shown and not self.settings.dump:
            return
        content = text()
        if shown:
            print(f"--- {stage}: {self.name} ---\n{content}\n", file=sys.stderr)
        if self.settings.dump:
            try:
                self._write(stage, content)
            except OSError as error:
                warnings.warn(f"compile: a stage is not written to RUSHLIGHT_DUMP, because {error}", stacklevel=2)

    def _write(self, stage: str, content: str) -> None:
        if self.folder is None:
            safe = re.sub(r"[^\w.-]", "_", self.name)
            self.folder = Path(self.settings.dump) / f"{next(_numbers):03d}_{safe}"
            self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{next(self._steps):02d}_{stage}.{_SUFFIX.get(stage, 'txt')}"
        path.write_text(content + "\n")
