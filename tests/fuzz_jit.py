"""Random functions with ifs, loops and every way to leave them, scripted and as Python.

    python -m tests.fuzz_jit [FIRST] [COUNT]     # seeds FIRST .. FIRST + COUNT - 1; each failure prints its seed and source

In: a seed. Out: a program over ints, what Python gives for a few arguments, and what the scripted function gives.
"""

from __future__ import annotations

import linecache
import random
import sys

import rushlight as torch

ARGUMENTS = ((1, 2, 3), (-2, 0, 5), (10, -3, 1), (4, 4, 4))


class Writer:
    """Writes the statements of one program."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def program(self) -> str:
        """The source of a function `f` of three ints that returns two."""
        return "\n".join(["def f(a: int, b: int, c: int):", *self.block(4, False, 1), "    return c, b", ""])

    def block(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        """Some statements; the last may leave the block."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            made, leaves = self.statement(depth, in_loop, indent)
            lines += made
            if leaves:
                break
        return lines

    def statement(self, depth: int, in_loop: bool, indent: int) -> tuple[list[str], bool]:
        """A statement, and whether it leaves the block."""
        pick, pad = self.random.random(), "    " * indent
        if pick < 0.3 or depth == 0:
            names = self.random.choice("abc"), self.random.choice("abc")
            return [f"{pad}{names[0]} = {names[1]} {self.random.choice('+-*')} {self.random.randint(1, 4)}"], False
        if pick < 0.45:
            return self.choice(depth, in_loop, indent), False
        if pick < 0.7:
            return self.loop(depth, indent, pick < 0.6), False
        if pick < 0.8:
            return [f"{pad}return a + {self.random.randint(0, 9)}, b"], True
        if pick < 0.94 and in_loop:
            return [f"{pad}{'break' if pick < 0.87 else 'continue'}"], True
        if pick < 0.97:
            return [f"{pad}if a > 50:", f"{pad}    return c, a"], False
        return [f"{pad}with torch.no_grad():", *self.block(depth - 1, in_loop, indent + 1)], False

    def choice(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        """An if, perhaps with an else."""
        pad = "    " * indent
        test = f"{self.random.choice('abc')} {self.random.choice(['>', '<', '=='])} {self.random.randint(-3, 9)}"
        lines = [f"{pad}if {test}:", *self.block(depth - 1, in_loop, indent + 1)]
        if self.random.random() < 0.5:
            lines += [f"{pad}else:", *self.block(depth - 1, in_loop, indent + 1)]
        return lines

    def loop(self, depth: int, indent: int, counted: bool) -> list[str]:
        """A for loop or a while loop of a few rounds."""
        pad, inner = "    " * indent, "    " * (indent + 1)
        rounds, name = self.random.randint(0, 4), f"n{indent}"
        if counted:
            head = [f"{pad}for {name} in range({rounds}):", f"{inner}a = a + {name}"]
        else:
            head = [f"{pad}{name} = 0", f"{pad}while {name} < {rounds}:", f"{inner}{name} += 1"]
        return [*head, *self.block(depth - 1, True, indent + 1)]


def difference(seed: int) -> str | None:
    """The difference between the scripted function and Python's; None if they agree."""
    source = Writer(seed).program()
    name = f"<program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, object] = {"torch": torch}
    exec(compile(source, name, "exec"), scope)
    scripted = torch.jit.script(scope["f"])
    for arguments in ARGUMENTS:
        wanted = scope["f"](*arguments)
        if max(map(abs, wanted)) >= 1 << 62:  # ints of 64 bits wrap around
            continue
        found = scripted(*arguments)
        if found != wanted:
            return f"seed {seed}{arguments}: Python gives {wanted}, scripted code {found}\n{source}"
    return None


def main() -> None:
    """Run the seeds of the command line."""
    first, count = (int(each) for each in [*sys.argv[1:], *("0", "2000")[len(sys.argv) - 1 :]][:2])
    found = [each for each in map(difference, range(first, first + count)) if each is not None]
    print("\n".join(found[:10]))
    print(f"{count} programs, {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
