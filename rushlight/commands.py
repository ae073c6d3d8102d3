"""The command `rushlight`: `exec` runs a program, `launch` runs it as several ranks, `export` makes C++ of a model, `explore`
shows what is compiled on a page, the others look into archives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; its exit status."""
    words = sys.argv[1:] if words is None else list(words)
    if words[:1] == ["exec"]:
        from rushlight.as_torch.program import main as run  # the import makes `torch` Rushlight

        return run(words[1:])
    if words[:1] == ["launch"]:
        from rushlight.distributed.launcher.launch import main as launch

        return launch(words[1:])
    if words[:1] == ["export"]:
        from rushlight.deploy.commands import main as export

        return export(words[1:], before_python=_become_torch)
    if words[:1] == ["explore"]:
        from rushlight.explorer.commands import main as explore

        return explore(words[1:], _program_runner)
    from rushlight.jit.commands import main as archives

    return archives(words)


def _program_runner() -> Callable[[Sequence[str]], None]:
    """Make `torch` Rushlight, and give what runs a program."""
    return importlib.import_module("rushlight.as_torch.program").run_program


def _become_torch() -> None:
    """Have `import torch` give Rushlight in a program that is imported after this."""
    importlib.import_module("rushlight.as_torch")
