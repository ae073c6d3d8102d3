"""Which of the scripted programs of tests/jit run natively: `python -m tests.compiler.native_programs` counts them, and reasons.

In: the programs of `tests/jit/programs`. Out: for each, the outcomes by the interpreter and of repeated calls, and how it runs.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import rushlight as torch
from rushlight.jit.runtime.executor import executor_of
from rushlight.jit.runtime.objects import ScriptObject
from tests.jit import differential

_CALLS = 5


@contextmanager
def native(after: str) -> Iterator[None]:
    """Native code is compiled after this many seconds; "never": not at all."""
    name, value = ("RUSHLIGHT_JIT_NATIVE", "0") if after == "never" else ("RUSHLIGHT_JIT_NATIVE_AFTER", after)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def repeated(program: differential.Program) -> differential.Program:
    """The program with each of its calls repeated several times."""
    calls = [call for call in program.calls for _ in range(_CALLS)]
    return differential.Program(program.file, program.name, calls)


def how(scripted: object) -> tuple[str, list[str]]:
    """Whether a scripted function or module runs "whole", in "parts" or "interpreted", and the reasons why parts do not run
    natively."""
    owner = getattr(scripted, "_c", None)
    function = owner.type.find_method("forward") if isinstance(owner, ScriptObject) else getattr(scripted, "_function", None)
    if function is None:
        return "interpreted", ["no function"]
    natives = executor_of(function).natives([owner] if owner is not None else [])
    parts = [part for each in natives for part in each.parts()]
    reasons = [part.reason for part in parts if part.reason]
    if not any(part.what == "native" for part in parts):
        return "interpreted", reasons or ["see RUSHLIGHT_LOGS=graph_breaks"]
    return ("whole" if all(each.is_whole for each in natives) else "parts"), reasons


def main() -> None:
    """Print the counts."""
    import tempfile
    from pathlib import Path

    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in differential.programs():
            module = differential.load(differential.FOLDER / f"{program.file}.py", "rushlight", Path(folder))
            with native("0"), torch.no_grad():
                scripted: list[object] = []
                differential.outcomes(module, repeated(program), torch, keep=scripted.append)
            if not scripted:
                continue
            kind, why = how(scripted[0])
            counts[kind] += 1
            reasons.update(why)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    for reason, count in reasons.most_common(25):
        print(f"  {count:5}  {reason}")


if __name__ == "__main__":
    main()
