"""Random programs: functions on tensors, numbers, lists and dicts with loops, branches, breaks, try, closures and grad modes.

In: a seed. Out: the source of a function `program(a, b, n, v, d, o)`, always the same for a seed. A program may raise exceptions, and
may change its arguments, the object `o` and the global variables `COUNT` and `ITEMS`.
"""

from __future__ import annotations

import random

PREAMBLE = """
import contextlib
import rushlight as torch

COUNT = 0
ITEMS = [1, 2]


class Thing:
    scale = 2

    def __init__(self, t, n):
        self.t = t
        self.n = n

    def step(self, k=1):
        self.n += k
        return self.t * self.scale + self.n

    @property
    def half(self):
        return self.t / 2


class Noting:
    def __init__(self, swallows):
        self.swallows = swallows

    def __enter__(self):
        ITEMS.append("in")
        return len(ITEMS)

    def __exit__(self, kind, error, traceback):
        ITEMS.append("out" if kind is None else kind.__name__)
        return self.swallows and kind is not None


def produce(t, count):
    for i in range(count):
        ITEMS.append(i)
        yield t + i


"""
ARGUMENTS = "a, b, n, v, d, o"


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.budget = self.random.randint(6, 18)
        self.tensors = ["a", "b"]
        self.numbers = ["n"]
        self.functions: list[str] = []
        self.in_loop = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    # Expressions

    def number(self, depth: int = 0) -> str:
        choose = self.random.choice
        if depth > 1 or self.random.random() < 0.4:
            return choose([choose(self.numbers), str(self.random.randint(-3, 5))])
        return choose([
            lambda: f"({self.number(depth + 1)} {choose(['+', '-', '*'])} {self.number(depth + 1)})",
            lambda: f"({self.number(depth + 1)} % 5)", lambda: "len(v)", lambda: "o.n", lambda: "COUNT", lambda: "len(ITEMS)",
            lambda: f"d.get({choose(['k', 'q'])!r}, 1)", lambda: "a.shape[0]", lambda: "v[0]", lambda: "v[-1]",
            lambda: f"abs({self.number(depth + 1)})", lambda: f"max({self.number(depth + 1)}, 2)", lambda: "sum(v)",
            lambda: f"({self.number(depth + 1)} if {self.condition()} else {self.number(depth + 1)})", lambda: "d['k']",
            lambda: f"len([i for i in v if i > {self.number(2)}])", lambda: f"v[{self.number(2)}]", lambda: "10 // (n - 2)",
        ])()  # fmt: skip

    def tensor(self, depth: int = 0) -> str:
        choose = self.random.choice
        if depth > 1 or self.random.random() < 0.3:
            return choose(self.tensors)
        options = [
            lambda: f"({self.tensor(depth + 1)} {choose(['+', '-', '*'])} {self.tensor(depth + 1)})",
            lambda: f"({self.tensor(depth + 1)} + {self.number(1)})", lambda: f"({self.number(1)} * {self.tensor(depth + 1)})",
            lambda: f"torch.sin({self.tensor(depth + 1)})", lambda: f"{self.tensor(depth + 1)}.relu()", lambda: "o.t", lambda: "o.half",
            lambda: f"torch.stack([{self.tensor(depth + 1)} for _ in range(2)]).sum(0)", lambda: f"o.step({self.number(1)})",
            lambda: f"torch.where({self.tensor(depth + 1)} > 0, {self.tensor(depth + 1)}, {self.tensor(depth + 1)})",
            lambda: f"sum([{self.tensor(depth + 1)}, {self.tensor(depth + 1)}])", lambda: f"{self.tensor(depth + 1)}.clone()",
        ]  # fmt: skip
        if self.functions:
            options += [lambda: f"{choose(self.functions)}({self.tensor(depth + 1)})"] * 2
        return choose(options)()

    def condition(self) -> str:
        choose = self.random.choice
        return choose([
            lambda: f"{self.number(1)} {choose(['<', '>', '==', '!='])} {self.number(1)}", lambda: "v", lambda: f"{self.number(2)} in v",
            lambda: "'q' in d", lambda: f"not {self.number(2)}", lambda: "a is b", lambda: "torch.is_grad_enabled()",
            lambda: f"{choose(self.tensors)}.sum() > {self.number(2)}", lambda: f"isinstance({choose(self.tensors)}, torch.Tensor)",
            lambda: f"{self.number(2)} < {self.number(2)} < 4", lambda: f"{self.number(2)} and {self.number(2)}",
        ])()  # fmt: skip

    # Statements

    def block(self, most: int = 3) -> None:
        self.depth += 1
        known = (len(self.tensors), len(self.numbers), len(self.functions))
        for _ in range(self.random.randint(1, most)):
            self.statement()
        del self.tensors[known[0] :], self.numbers[known[1] :], self.functions[known[2] :]
        self.depth -= 1

    def statement(self) -> None:
        self.budget -= 1
        simple = [
            self.assign_tensor, self.assign_number, self.change_list, self.change_dict, self.change_object, self.change_global,
            self.leave_graph, self.assign_tensor, self.assign_number, self.write_tensor, self.raise_error,
        ]  # fmt: skip
        nested = [self.branch, self.loop, self.while_loop, self.guarded, self.function, self.without_grad, self.managed, self.loop_over]
        if self.in_loop:
            simple.append(self.leave_loop)
        self.random.choice(simple + nested if self.budget > 0 and self.depth < 5 else simple)()

    def assign_tensor(self) -> None:
        value = self.tensor()
        name = self.random.choice([*self.tensors, self.fresh("t")])
        self.line(f"{name} = {value}")
        if name not in self.tensors:
            self.tensors.append(name)

    def assign_number(self) -> None:
        value = self.number()
        name = self.random.choice(["n", self.fresh("i")])
        self.line(self.random.choice([f"{name} = {value}", f"n += {value}"]))
        if name != "n" and self.lines[-1].lstrip().startswith(name):
            self.numbers.append(name)

    def change_list(self) -> None:
        number = self.number(1)
        self.line(self.random.choice([
            f"v.append({number})", f"v.insert(0, {number})", "v.pop()", f"v[0] = {number}", "v.sort()", f"v += [{number}]", "v[1:2] = [7, 8]",
            f"v.extend(range({number} % 3))", "v = v[::-1]", "v.reverse()", f"v.remove({number})", f"v = [i + {number} for i in v]",
        ]))  # fmt: skip

    def change_dict(self) -> None:
        number = self.number(1)
        self.line(self.random.choice([
            f"d['k'] = {number}", f"d['q'] = {number}", "d.pop('q', None)", "del d['k']", f"d.setdefault('z', []).append({number})",
            "d.update(k=3)", "d = {**d, 'w': 1}", f"d['t'] = {self.tensor(1)}", "d['k'] += 1",
        ]))  # fmt: skip

    def change_object(self) -> None:
        self.line(self.random.choice([
            f"o.n = {self.number(1)}", f"o.t = {self.tensor(1)}", "o.step()", "o.log = v", "o.n += 1", "o = Thing(a, n)", "o.scale = 3",
            "setattr(o, 'extra', d)", "o.own = o",
        ]))  # fmt: skip

    def change_global(self) -> None:
        self.line(self.random.choice(["COUNT += 1", f"COUNT = {self.number(1)}", f"ITEMS.append({self.number(1)})", "ITEMS.pop()"]))

    def leave_graph(self) -> None:
        name = self.fresh("i")
        self.line(self.random.choice([
            "print(end='')", f"{name} = int({self.random.choice(self.tensors)}.sum().item()) % 7", f"{name} = int(str(n))",
            f"{name} = len(repr(o.n))", "ITEMS.append(str(n))",
        ]))  # fmt: skip
        if name in self.lines[-1]:
            self.numbers.append(name)

    def write_tensor(self) -> None:
        name = self.random.choice(self.tensors)
        self.line(self.random.choice([f"{name}.add_({self.number(1)})", f"{name}[0] = {self.number(1)}", f"{name} *= 2", f"{name} = {name}.mul_(2)"]))

    def raise_error(self) -> None:
        self.line(f"if {self.condition()}:")
        self.line("    " + self.random.choice(["raise ValueError('no', n)", "raise KeyError(n)", "assert not v, 'list'", "int('q')", "[][n]"]))

    def leave_loop(self) -> None:
        self.line(f"if {self.condition()}:")
        self.line("    " + self.random.choice(["break", "continue"]))

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.block()
        if self.random.random() < 0.5:
            self.line("else:")
            self.block()

    def loop(self) -> None:
        name = self.fresh("i")
        self.line(f"for {name} in range({self.random.randint(1, 4)}):")
        self._loop_body([name])

    def loop_over(self) -> None:
        name, other = self.fresh("i"), self.fresh("i")
        header, names = self.random.choice([
            (f"for {name} in list(v):", [name]), (f"for {name} in v[:3]:", [name]), (f"for {name}, {other} in enumerate(v[:3]):", [name, other]),
            (f"for {other} in d:", []), (f"for {other}, {name} in list(d.items()):", []), (f"for {name}, {other} in zip(v, [1, 2]):", [name, other]),
            (f"for {other} in produce(a, 3):", []), (f"for {name} in (j * 2 for j in v[:2]):", [name]), (f"for {name} in v[:4]:", [name]),
        ])  # fmt: skip
        self.line(header)
        self._loop_body(names)

    def while_loop(self) -> None:
        name = self.fresh("i")
        self.line(f"{name} = 0")
        self.line(f"while {name} < {self.random.randint(1, 4)}:")
        self.line(f"    {name} += 1")
        self._loop_body([name])

    def _loop_body(self, names: list[str]) -> None:
        self.in_loop += 1
        self.numbers += names
        self.block()
        del self.numbers[len(self.numbers) - len(names) :]
        self.in_loop -= 1
        if self.random.random() < 0.2:
            self.line("else:")
            self.block(1)

    def guarded(self) -> None:
        self.line("try:")
        self.block()
        if self.random.random() < 0.8:
            kind = self.random.choice(["ValueError", "(KeyError, IndexError)", "Exception"])
            self.line(f"except {kind} as error:")
            self.line("    ITEMS.append(type(error).__name__)")
            self.block(2)
            if self.random.random() < 0.2:
                self.line("    raise")
        else:
            self.line("finally:")
            self.block(2)

    def function(self) -> None:
        name, count = self.fresh("f"), self.fresh("i")
        self.line(f"{count} = {self.number(1)}")
        self.numbers.append(count)
        self.line(f"def {name}(x, scale={self.number(1)}):")
        if self.random.random() < 0.5:
            self.line(f"    nonlocal {count}")
            self.line(f"    {count} += 1")
        if self.random.random() < 0.3:
            self.line("    print(end='')")
        self.line(f"    return x * scale + {count}")
        self.functions.append(name)

    def without_grad(self) -> None:
        self.line(f"with {self.random.choice(['torch.no_grad()', 'torch.enable_grad()', 'torch.set_grad_enabled(n > 0)'])}:")
        self.block()

    def managed(self) -> None:
        name = self.fresh("i")
        self.line(f"with Noting({self.random.choice(['True', 'False'])}) as {name}:")
        self.numbers.append(name)
        self.block()
        self.numbers.pop()


def random_source(seed: int) -> str:
    """The source of a module with the program of a seed."""
    writer = _Writer(seed)
    writer.line("global COUNT")
    while writer.budget > 0:
        writer.statement()
    writer.line(f"return {writer.tensor()}, {', '.join(writer.tensors)}, {', '.join(writer.numbers)}, v, d, o")
    return f"{PREAMBLE}def program({ARGUMENTS}):\n" + "\n".join(writer.lines) + "\n"
