"""Random programs: functions on tensors, numbers, lists, dicts and objects with loops, branches, breaks, try, with, match,
closures, classes, generators, comprehensions and grad modes.

In: a seed. Out: the source of a function `program(a, b, n, v, d, o)`, always the same for a seed. A program may raise exceptions, and
may change its arguments, the object `o` and the global variables `COUNT` and `ITEMS`.
"""

from __future__ import annotations

import random

PREAMBLE = """
import collections
import contextlib
import functools
from dataclasses import dataclass, field

import rushlight as torch

torch.manual_seed(0)
LAYER = torch.nn.Linear(3, 3)
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


class Loud(Thing):
    def step(self, k=1):
        ITEMS.append(k)
        return super().step(k) - 1

    def __len__(self):
        return abs(self.n) % 3

    def __getitem__(self, index):
        if index > len(self):
            raise IndexError(index)
        return self.n + index

    def __call__(self, x):
        self.n += 1
        return x + self.n


@dataclass
class Pair:
    first: object
    second: object = 2
    notes: list = field(default_factory=list)


def produce(t, count):
    for i in range(count):
        ITEMS.append(i)
        yield t + i


def echo(t):
    try:
        while True:
            got = yield t
            t = t + (got or 0)
    finally:
        ITEMS.append("closed")


@contextlib.contextmanager
def noted(name):
    ITEMS.append(name)
    try:
        yield len(ITEMS)
    except KeyError:
        ITEMS.append("caught")
    finally:
        ITEMS.append("end")


def recurse(t, count):
    return t if count <= 0 else recurse(t + count, min(count, 5) - 1)


def many(x, *rest, scale=1, **named):
    return x * scale + len(rest) + sum(named.values())


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
        self.objects = ["o"]
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
            lambda: f"len({{*v, {self.number(2)}}})", lambda: f"collections.deque(v, 2)[{self.number(2)}]",
            lambda: f"{choose(self.objects)}.n", lambda: f"sorted(v, key=lambda i: i % 3)[{self.number(2)}]", lambda: f"next(iter({choose(['v', 'd', '[7]'])}), 0)",
            lambda: f"sum(i for i in v if i != {self.number(2)})", lambda: f"Pair(n, {self.number(2)}).second", lambda: "len(o.__dict__)",
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
            lambda: f"recurse({self.tensor(depth + 1)}, {self.number(1)})", lambda: f"many({self.tensor(depth + 1)}, *v, scale={self.number(2)})",
            lambda: f"functools.partial(many, n, {self.number(2)}, k=2)(scale={self.tensor(depth + 1)})", lambda: f"LAYER({self.tensor(depth + 1)})",
            lambda: f"{choose(self.objects)}.step({self.number(2)})", lambda: f"sum(produce({self.tensor(depth + 1)}, 2), {self.tensor(2)})",
            lambda: f"Pair({self.tensor(depth + 1)}).first", lambda: f"(torch.rand(3) + {self.tensor(depth + 1)})",
            lambda: f"torch.cat([{self.tensor(2)}[:1], {self.tensor(2)}[1:]])", lambda: f"(lambda t, k={self.number(2)}: t + k)({self.tensor(depth + 1)})",
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
        simple += [self.unpack, self.note, self.hide, self.delete, self.leave_early]
        nested = [
            self.branch, self.loop, self.while_loop, self.guarded, self.function, self.without_grad, self.managed, self.loop_over,
            self.match, self.guarded_fully, self.own_class, self.own_generator, self.endless_loop,
        ]  # fmt: skip
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
            (f"for {name} in Loud(a, n):", [name]), (f"for {name} in sorted({{*v[:3]}}):", [name]), (f"for {name}, {other} in [(1, n), (n, 2)]:", [name, other]),
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
        manager = self.random.choice(["Noting(True)", "Noting(False)", "noted('w')", "contextlib.nullcontext(3)"])
        more = self.random.choice(["", "", ", torch.no_grad()", ", Noting(n > 1)", ", contextlib.suppress(ValueError)"])
        self.line(f"with {manager} as {name}{more}:")
        self.numbers.append(name)
        self.block()
        self.numbers.pop()


    # Statements with rarer parts of the language

    def unpack(self) -> None:
        first, second = self.fresh("i"), self.fresh("i")
        self.line(self.random.choice([
            f"{first}, *{second} = v", f"{first}, {second} = {self.number(1)}, n", f"*{second}, {first} = (n, *v)",
            f"{first} = {second} = {self.number(1)}", f"({first}, _), {second} = (n, d), [n]", f"if ({first} := {self.number(1)}) > 1: n -= 1",
        ]))  # fmt: skip
        self.numbers.append(first)

    def note(self) -> None:
        self.line(self.random.choice([
            f'ITEMS.append(f"{{n!r:>3}} {{{self.number(1)}}}")', "ITEMS.extend(str(i) for i in v[:2])", "o.notes = [*getattr(o, 'notes', ()), n]",
            "vars(o)['by'] = len(v)", f"d.update({{k: {self.number(2)} for k in ('x', 'y')}})", "v.extend(d.values() if 't' not in d else ())",
            f"o.pair = Pair(n, {self.number(2)})", "o.pair.notes.append(n) if hasattr(o, 'pair') else v.append(0)",
        ]))  # fmt: skip

    def hide(self) -> None:
        """A comprehension whose variable shadows one that a function captured."""
        name, reader, made = self.fresh("i"), self.fresh("r"), self.fresh("m")
        self.line(f"{name} = {self.number(1)}")
        self.line(f"{reader} = lambda: {name}")
        self.line(self.random.choice([
            f"{made} = [(lambda: {name})() for {name} in v[:2]]", f"{made} = [{name} + n for {name} in v if {name} != 1]",
            f"{made} = [f() for f in [lambda: {name} + n for {name} in range(2)]]", f"{made} = [*{{{name}: n for {name} in v}}]",
            f"{made} = [int(str({name})) for {name} in v[:2]]",
        ]))  # fmt: skip
        self.line(f"v = [*{made}, {reader}(), {name}][-6:]")
        self.numbers.append(name)

    def delete(self) -> None:
        self.line(self.random.choice(["del v[-1]", "del v[:1]", "del o.n", "del d['k']", "o.__dict__.pop('extra', None)"]))

    def leave_early(self) -> None:
        self.line(f"if {self.condition()}:")
        self.line(f"    return {self.random.choice([self.tensor(1), 'n', 'v, o'])}, 'early'")

    def match(self) -> None:
        self.line(f"match {self.random.choice(['v', 'd', 'o', '(n, v)', self.number(1), 'Pair(n, 3)'])}:")
        cases = self.random.sample([
            "[first, *rest]", "{'k': 1, **others}", "{'k': found}", "Thing(n=2)", "Loud() | Pair(first=1)", "(1 | 2, [_, *_])", "(0, other)",
            "Pair(first, second) if second > first", "int() as number", "0 | 1", "str() | None", "[]", "Thing(t=t, n=k) if k",
        ], self.random.randint(1, 4))  # fmt: skip
        for case in cases:
            self.line(f"    case {case}:")
            self.depth += 1
            self.block(2)
            self.depth -= 1
        if self.random.random() < 0.5:
            self.line("    case _:")
            self.line("        ITEMS.append('none')")

    def guarded_fully(self) -> None:
        self.line("try:")
        self.block()
        self.line(self.random.choice(["except (ValueError, ZeroDivisionError):", "except LookupError:", "except Exception:"]))
        if self.random.random() < 0.3:
            self.line("    raise RuntimeError('again') from None" if self.random.random() < 0.5 else "    raise RuntimeError('again')")
        else:
            self.block(2)
        if self.random.random() < 0.5:
            self.line("else:")
            self.block(2)
        if self.random.random() < 0.6:
            self.line("finally:")
            self.block(2)

    def own_class(self) -> None:
        name, made, count = self.fresh("C"), self.fresh("o"), self.fresh("i")
        self.line(f"{count} = {self.number(1)}")
        self.numbers.append(count)
        self.line(f"class {name}({self.random.choice(['Loud', 'Thing'])}):")
        self.line(f"    scale = {self.number(1)}")
        if self.random.random() < 0.5:
            self.line("    def __init__(self, t, n):")
            self.line("        super().__init__(t, n)")
            self.line(f"        self.more = {count}")
        self.line("    def step(self, k=1):")
        if self.random.random() < 0.3:
            self.line(f"        nonlocal {count}")
            self.line(f"        {count} += k")
        self.line(f"        return super().step(k) + {count}")
        self.line(f"{made} = {name}({self.tensor(1)}, {self.number(1)})")
        if self.depth == 1:
            self.objects.append(made)
        else:
            self.line(f"{self.random.choice(self.tensors)} = {made}.step({self.number(2)})")

    def own_generator(self) -> None:
        name, item = self.fresh("g"), self.fresh("t")
        self.line(f"def {name}(x, count={self.number(2)} % 4):")
        self.line("    for i in range(count):")
        if self.random.random() < 0.4:
            self.line("        ITEMS.append(n)")
        self.line(f"        {self.random.choice(['yield x + i', 'yield x * n', 'yield from produce(x, 2)', 'yield (yield x) or x'])}")
        self.line("    return n")
        if self.random.random() < 0.3:
            self.line(f"{item} = echo({self.tensor(1)})")
            self.line(f"next({item})")
            self.line(f"{self.random.choice(self.tensors)} = {item}.send({self.number(1)})")
            self.line(f"{item}.close()")
            return
        self.line(f"for {item} in {name}({self.tensor(1)}):")
        self.tensors.append(item)
        self._loop_body([])
        self.tensors.remove(item)

    def endless_loop(self) -> None:
        name = self.fresh("i")
        self.line(f"{name} = 0")
        self.line("while True:")
        self.line(f"    {name} += 1")
        self.line(f"    if {name} > {self.random.randint(0, 3)}: break")
        self._loop_body([name])


def random_source(seed: int) -> str:
    """The source of a module with the program of a seed."""
    writer = _Writer(seed)
    writer.line("global COUNT")
    while writer.budget > 0:
        writer.statement()
    writer.line(f"return {writer.tensor()}, {', '.join(writer.tensors)}, {', '.join(writer.numbers)}, v, d, o")
    return f"{PREAMBLE}def program({ARGUMENTS}):\n" + "\n".join(writer.lines) + "\n"
