"""Random code of the machine behind the TorchScript interpreter: `python -m tests.fuzz_machine --trials 20000`.

Each trial makes instructions at random, some of them nearly right: the verifier refuses them with ValueError, or they run, and may
raise what Python code raises. Nothing may crash. Trials run in processes, so that a crash is a line of the report. The exit status
is 1 if there was a finding; `--only 17` runs one trial.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable

import rushlight
from rushlight._C import Machine, MachineCode, machine_has_fast_path, machine_operations
from rushlight.jit.operators.registry import operators_named, own_names
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import ClassType

BATCH = 500
SECONDS = 0.02
MEMORY_LIMIT = 4 << 30
OPERATIONS = machine_operations()
NAMES = {number: name for name, number in OPERATIONS.items()}
Pair = namedtuple("Pair", "first second")
Step = tuple[int, int, int, int]


def _tolerant(function: Callable, results: int) -> Callable:
    """A function that returns None instead of raising, so that most runs go on."""

    def call(*arguments: object) -> object:
        try:
            return function(*arguments)
        except Exception:
            return None if results == 1 else (None,) * results

    return call


def _operators() -> list[tuple]:
    """Operators as (name, function, None); all fast paths are among them."""
    found = []
    for name in own_names():
        for each in operators_named(name):
            if machine_has_fast_path(each.full_name):
                results = len(each.schema.returns)
                found.append((each.full_name, _tolerant(each.function, results), None, len(each.schema.arguments), results))
    return found


OPERATORS = _operators()


def _object() -> ScriptObject:
    made = ScriptObject(ClassType("__torch__.Fuzzed"))
    made.slots.update(n=1, items=[1, 2])
    return made


def values(choose: random.Random) -> tuple:
    """Constants of many kinds; some are hostile."""
    numbers = [0, 1, 2, 3, -1, 7, True, False, 2**31, -(2**63), 2**63 - 1, 2**70, 0.5, -0.0, float("inf"), float("nan"), 1j]
    others = [None, "", "abc", "a b {} c", "é€😀", [], [1, 2, 3], [1.0], ["a"], {}, {"a": 1}, {1: [2]}, (), (1, "b"), Pair(1, 2),
              rushlight.ones(2, 3), rushlight.tensor(1.5), _object(), object(), [[1], [2]]]  # fmt: skip
    return tuple(choose.sample(numbers, 5) + choose.sample(others, 7))


class Writer:
    """Writes nearly valid instructions: it tracks the stack depth, and operands are mostly in range."""

    def __init__(self, choose: random.Random, functions: int):
        self.choose = choose
        self.functions = functions
        self.registers = choose.randint(1, 5)
        self.inputs = choose.randint(0, 3)
        self.outputs = choose.randint(0, 2)
        self.operators = [choose.choice(OPERATORS) for _ in range(6)]
        self.steps: list[Step] = []
        self.depth = self.inputs

    def code(self) -> list[Step]:
        """The instructions of a function."""
        self.block(self.choose.randint(3, 25), 2)
        self.reach(self.outputs)
        self.emit("RET")
        return self.steps

    def emit(self, name: str, x: int = 0, taken: int = 0, given: int = 0) -> int:
        self.steps.append((OPERATIONS[name], x, taken, given))
        return len(self.steps) - 1

    def patch(self, index: int, target: int) -> None:
        operation, _, taken, given = self.steps[index]
        self.steps[index] = (operation, target - index, taken, given)

    def reach(self, depth: int) -> None:
        """Pushes or drops until the stack has this depth."""
        while self.depth < depth:
            self.push()
        while self.depth > depth:
            if self.choose.random() < 0.5:
                self.emit("STORE", self.choose.randrange(self.registers))
            else:
                self.emit("DROP")
            self.depth -= 1

    def push(self) -> None:
        name = self.choose.choice(("LOAD", "LOAD", "MOVE", "LOADC"))
        self.emit(name, self.choose.randrange(12 if name == "LOADC" else self.registers))
        self.depth += 1

    def operate(self, name: str, x: int, taken: int, given: int) -> None:
        while self.depth < taken:
            self.push()
        self.emit(name, x, taken, given)
        self.depth += given - taken

    def block(self, count: int, nesting: int) -> None:
        for _ in range(count):
            self.choose.choice((self.statement, self.statement, self.statement, self.branch, self.loop))(nesting)

    def statement(self, nesting: int) -> None:
        """One instruction."""
        choose = self.choose
        kind = choose.randrange(12)
        if kind < 5:
            number = choose.randrange(len(self.operators))
            self.operate("OPN", number, *self.operators[number][3:])
        elif kind == 5:
            self.operate("LIST_CONSTRUCT", 0, choose.randint(0, 3), 1)
        elif kind == 6:
            self.operate(choose.choice(("TUPLE_CONSTRUCT", "DICT_CONSTRUCT")), 0, 2 * choose.randint(0, 2), 1)
        elif kind == 7:
            self.operate(*choose.choice((("GET_ATTR", 0, 1, 1), ("SET_ATTR", 1, 2, 0), ("ISINSTANCE", 1, 1, 1),
                                         ("NAMED_TUPLE_CONSTRUCT", 0, 2, 1), ("LIST_UNPACK", 0, 1, 2))))  # fmt: skip
        elif kind == 8:
            self.operate("RARE", 0, choose.randint(0, 3), choose.randint(0, 2))
        elif kind == 9:
            self.operate("CALL", choose.randrange(self.functions), choose.randint(0, 3), choose.randint(0, 2))
        else:
            self.push()

    def branch(self, nesting: int) -> None:
        """An if, after which the stack is as before."""
        if not nesting:
            return
        depth = self.depth
        self.push()
        test = self.emit("JF")
        self.depth -= 1
        self.block(2, nesting - 1)
        self.reach(depth)
        self.patch(test, len(self.steps))

    def loop(self, nesting: int) -> None:
        """A loop with one carried value."""
        if not nesting:
            return
        for _ in range(4):
            self.push()
        start = self.emit("LOOP", 0, 4)
        depth = self.depth
        self.emit("STORE", self.choose.randrange(self.registers))
        self.depth -= 1
        self.block(2, nesting - 1)
        self.reach(depth)
        self.emit("JMP", start - len(self.steps))
        self.patch(start, len(self.steps))
        self.depth = depth - 3


def damaged(steps: list[Step], choose: random.Random) -> list[Step]:
    """Change numbers and operations of instructions, repeat and drop some."""
    steps = list(steps)
    for _ in range(choose.choice((0, 0, 1, 1, 2, 5))):
        place, kind = choose.randrange(len(steps)), choose.randrange(6)
        numbers = list(steps[place])
        if kind == 0:
            numbers[0] = choose.randrange(-1, len(OPERATIONS) + 2)
        elif kind < 4:
            numbers[kind] = choose.choice((0, 1, 2, 3, 4, -1, -2, 5, 2**31 - 1, -(2**31), 10**6))
        elif kind == 4:
            steps.insert(place, choose.choice(steps))
            continue
        elif len(steps) > 1:
            del steps[place]
            continue
        steps[place] = tuple(numbers)
    return steps


def make(trial: int, machine_codes: dict[str, MachineCode]) -> MachineCode:
    """The code of a trial; ValueError if it is refused. Adds the functions that it calls to `machine_codes`."""
    choose = random.Random(trial)
    names = ("first", "second", "third")
    made = None
    for name in names:
        writer = Writer(choose, len(names))
        steps = damaged(writer.code(), choose)
        try:
            made = machine_codes[name] = MachineCode(
                tuple(steps), tuple(steps), values(choose), tuple(each[:3] for each in writer.operators), names, ("n", "items"),
                (Pair, (int, str)), writer.inputs, writer.outputs, writer.registers, choose.random() < 0.5,
            )  # fmt: skip
        except ValueError:
            if name == names[-1] and made is None:
                raise
    return made


def _rarely(choose: random.Random) -> Callable:
    def rarely(steps: tuple, position: int, taken: list, entered: list) -> tuple:
        return tuple(taken[:1] or [position]) * (steps[position][3] if choose.random() < 0.9 else choose.randint(0, 2))

    return rarely


def _raise(error: BaseException, places: list, entered: list) -> None:
    raise error


def run_trial(trial: int) -> bool:
    """Makes and runs the code of a trial; returns whether the verifier accepted it."""
    codes: dict[str, MachineCode] = {}
    choose = random.Random(trial)
    machine = Machine(codes.__getitem__, lambda value, name: codes["first"], _rarely(choose), _raise, ScriptObject)
    try:
        make(trial, codes)
    except ValueError:
        return False
    for code in codes.values():
        arguments = list(values(choose))[: choose.randint(0, 3)]
        try:
            machine.run(code, arguments, lambda: True, SECONDS)
        except Exception:
            continue  # whatever Python code may raise
    return True


def _alarm(number: int, frame: object) -> None:
    raise TimeoutError("a trial takes too long")


def run(trials: range) -> int:
    """Runs trials in this process, announcing each; returns the number that ran."""
    signal.signal(signal.SIGALRM, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    admitted = 0
    for trial in trials:
        print(f"trial {trial}", flush=True)
        signal.setitimer(signal.ITIMER_REAL, 10)
        admitted += run_trial(trial)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"end {admitted}", flush=True)
    return admitted


def run_batches(trials: range) -> tuple[int, int]:
    """Runs trials in successive processes; returns the numbers that ran and that crashed."""
    admitted = findings = 0
    start = trials.start
    while start < trials.stop:
        stop = min(start + BATCH, trials.stop)
        with tempfile.TemporaryFile("w+") as out:
            command = [sys.executable, "-m", "tests.fuzz_machine", "--start", str(start), "--trials", str(stop - start), "--inside"]
            code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
            out.seek(0)
            lines = out.read().splitlines()
        if lines and lines[-1].startswith("end "):
            admitted += int(lines[-1].split()[1])
            start = stop
            continue
        findings += 1
        last = next((line for line in reversed(lines) if line.startswith("trial ")), f"trial {start - 1}")
        print(f"FOUND {last}: the process ended with status {code}\n" + "\n".join(lines[-5:]))
        start = int(last.split()[1]) + 1
    return admitted, findings


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--inside", action="store_true", help="run in this process")
    options = parser.parse_args()
    if options.only is not None:
        run(range(options.only, options.only + 1))
        return 0
    trials = range(options.start, options.start + options.trials)
    if options.inside:
        run(trials)
        return 0
    admitted, findings = run_batches(trials)
    print(f"{len(trials)} trials, {admitted} ran, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
