"""Torch's own samples of bad arguments (OpInfo's error inputs) given to Rushlight: the same type of error, the same statement.

    python -m tests.yardsticks.errors                  # all operators: what differs, and a summary
    python -m tests.yardsticks.errors add gather       # some
    python -m tests.yardsticks.errors --write          # and add those that are clean now to clean_errors.txt

An operator is clean when every bad call raises the type that torch raises, with a message that matches OpInfo's pattern.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.yardsticks.command_line import add_to_list, chosen_operators, parse_arguments
from tests.yardsticks.conversion import Converter, Unconvertible, counterpart
from tests.yardsticks.operators import full_name

CLEAN = Path(__file__).with_name("clean_errors.txt")


def operators() -> dict:
    """The OpInfos that have error inputs, by full name."""
    return {full_name(op): op for op in op_db if op.error_inputs_func is not None}


def check(op) -> tuple[int, list[str]]:
    """The number of bad calls tried, and a line for each one that did not raise as in torch."""
    function = counterpart(op)
    if function is None:
        return 1, ["missing"]
    torch.manual_seed(0)
    tried, problems = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in op.error_inputs("cpu"):
            outcome = _outcome(function, case)
            tried += outcome is not None
            if outcome:
                problems.append(outcome)
    return tried, problems


def _outcome(function, case) -> str | None:
    """None if the case can't be tried, "" if it matches torch, otherwise the difference."""
    sample = case.sample_input
    try:
        subject, args, kwargs = Converter()((sample.input, sample.args, sample.kwargs))
    except Unconvertible:
        return None
    wanted = f"{case.error_type.__name__} with {case.error_regex!r}"
    try:
        function(subject, *args, **kwargs)
    except Exception as error:
        if isinstance(error, case.error_type) and re.search(case.error_regex, str(error)):
            return ""
        return f"wanted {wanted}, got {type(error).__name__}: {str(error)[:200]!r}"
    return f"wanted {wanted}, got no error"


def main() -> int:
    """Check the operators named on the command line, or all; print what differs and how many are clean."""
    options = parse_arguments(__doc__, CLEAN)
    chosen = chosen_operators(operators(), options.names)
    clean, cases, failures = [], 0, 0
    for name, op in chosen.items():
        tried, problems = check(op)
        cases, failures = cases + tried, failures + len(problems)
        for problem in problems:
            print(f"{name}: {problem}")
        if tried and not problems:
            clean.append(name)
    print(f"{cases - failures} of {cases} bad calls raise as in torch; {len(clean)} of {len(chosen)} operators are clean")
    if options.write:
        add_to_list(CLEAN, clean)
    return 0


if __name__ == "__main__":
    sys.exit(main())
