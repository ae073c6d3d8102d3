"""What can be exported: `python -m tests.deploy.survey` exports models and programs, runs them without Python, and compares.

In: groups of cases: the zoo of tests/jit (`zoo`), the programs of tests/jit/programs (`programs`), models of timm and transformers that
PyTorch traced (`timm`, `transformers`, for which these have to be installed). Out: for each whether it was exported and agrees, or why not;
with `--write`, docs/deploy-survey.md. Each runs in another process, so that one that crashes or hangs is an outcome like others.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import rushlight as torch
from tests.deploy.survey_cases import write_case
from tests.deploy.survey_programs import write_corpus
from tests.deploy.survey_table import written
from tests.jit.zoo_of import zoo_of

GROUPS = ("zoo", "programs", "timm", "transformers")
_SECONDS = 300  # limit for one case, after which it is abandoned


class Worker:
    """Another process that runs cases one after the other."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None

    def outcome(self, case: Path) -> str:
        """The outcome of one case."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.deploy.survey_cases"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"{case}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], _SECONDS)[0]:
            self.close()
            return f"takes more than {_SECONDS} s"
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.process = None
            return f"crashes: the process ended with {status}"
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def write_zoo(folder: Path) -> Iterator[Path]:
    """Write the modules of the zoo."""
    for name, make in zoo_of("rushlight").items():
        torch.manual_seed(0)
        module, arguments = make()
        write_case(folder / name, module, arguments)
        yield folder / name


def write_models(folder: Path, group: str) -> Iterator[Path]:
    """Have PyTorch write models, in a process of its own."""
    from tests.deploy.survey_torch import names

    asked = [name for name in names() if name.startswith(f"{group}/")]
    subprocess.run(
        [sys.executable, "-m", "tests.deploy.survey_torch", str(folder), *asked], check=True, stdout=subprocess.DEVNULL
    )
    yield from (folder / name for name in asked)


def cases_of(group: str, folder: Path) -> list[Path]:
    """The cases of a group, written below a folder, unless they are there."""
    own = folder / group
    if own.exists():
        return sorted(path for path in own.iterdir() if path.is_dir())
    makers = {"zoo": lambda: write_zoo(own), "programs": lambda: write_corpus(own)}
    return list(makers[group]() if group in makers else write_models(folder, group))


def main() -> None:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=GROUPS, choices=GROUPS)
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--sample", type=int, default=0, help="so many of each group, chosen at random but always the same")
    parser.add_argument("--cases", type=Path, help="the folder of cases, which is kept")
    parser.add_argument("--write", type=Path, nargs="?", const=Path("docs/deploy-survey.md"), help="write the table")
    options = parser.parse_args()
    worker, found = Worker(), {}
    with tempfile.TemporaryDirectory() as temporary:
        for group in options.groups:
            cases = [case for case in cases_of(group, options.cases or Path(temporary)) if options.only in case.name]
            chosen = random.Random(0).sample(cases, min(options.sample or len(cases), len(cases)))
            found[group] = {}
            for case in sorted(chosen):
                error = case / "error.txt"
                outcome = f"not traced: {error.read_text().splitlines()[0]}" if error.exists() else worker.outcome(case)
                found[group][case.name] = outcome
                print(f"{group}/{case.name}: {outcome}", flush=True)
            print(group, dict(Counter(outcome.partition(":")[0] for outcome in found[group].values())), flush=True)
    worker.close()
    if options.write is not None:
        options.write.write_text(written(found))


if __name__ == "__main__":
    main()
