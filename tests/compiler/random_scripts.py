"""Random TorchScript programs over numbers, lists and small tensors, for comparing native code with the interpreter."""

from __future__ import annotations

import random


class Writer:
    """Writes one function from a seed. Variables: ints a, b, floats u, v, a list of ints, a tensor."""

    def __init__(self, seed: int, tensors: bool = False):
        self.random = random.Random(seed)
        self.tensors = tensors
        self.counters = 0

    def text(self) -> str:
        """The function's source; it is called `program`."""
        tensor = ", x: Tensor" if self.tensors else ""
        result = "int, float, List[int]" + (", Tensor" if self.tensors else "")
        lines = [f"def program(a: int, b: int, u: float, values: List[int]{tensor}) -> Tuple[{result}]:", "    v = u * 0.5", "    rows = [values, [a, 1]]"]
        if self.tensors:
            lines += ["    y = torch.ones(3)", "    z = y[:2]", "    kept = [x * 0.5]", "    q = torch.arange(3)"]
        lines += self.block(1, 3)
        lines.append(f"    return a + b, u - v, rows[-1] + values{', x + y + z.sum() + len(kept) + q' if self.tensors else ''}")
        return "\n".join(lines) + "\n"

    def block(self, depth: int, loops: int) -> list[str]:
        """Some statements."""
        pad = "    " * depth
        lines: list[str] = []
        for _ in range(self.random.randint(2, 4)):
            kind = self.random.choice(["assign", "assign", "assign", "if", "loop", "list", "tensor"])
            if kind == "if":
                lines.append(f"{pad}if {self.condition()}:")
                lines += self.block(depth + 1, loops - 1) if loops > 0 else [f"{pad}    {self.assignment()}"]
                if self.random.random() < 0.6:
                    lines += [f"{pad}else:", f"{pad}    {self.assignment()}"]
            elif kind == "loop" and loops > 0:
                self.counters += 1
                name = f"i{self.counters}"
                lines.append(f"{pad}for {name} in range({self.random.choice(['3', 'b % 5', 'len(values)', '2'])}):")
                lines.append(f"{pad}    a = a + {name}")
                lines += self.block(depth + 1, loops - 1)
                if self.random.random() < 0.3:
                    lines += [f"{pad}    if {self.condition()}:", f"{pad}        {self.random.choice(['break', 'continue'])}"]
            elif kind == "list":
                lines.append(pad + self.list_statement())
            elif kind == "tensor" and self.tensors:
                lines.append(pad + self.tensor_statement())
            else:
                lines.append(pad + self.assignment())
        return lines

    def assignment(self) -> str:
        """An assignment to a number."""
        name = self.random.choice("abuv")
        return f"{name} = {self.integer(2) if name in 'ab' else self.real(2)}"

    def integer(self, depth: int) -> str:
        """An expression of type int."""
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice(["a", "b", "3", "-7", "len(values)", "int(min(max(u, -99.0), 99.0))", "values[a % len(values)]"])
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        return self.random.choice([
            f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"({left} // {self.random.choice('2357')})",
            f"({left} % -{self.random.choice('2357')})", f"({left} ^ {right})", f"({left} & {right})", f"min({left}, {right})",
            f"max({left}, {right})", f"abs({left})", f"({left} if {self.condition(depth - 1)} else {right})",
        ])  # fmt: skip

    def real(self, depth: int) -> str:
        """An expression of type float."""
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice(["u", "v", "0.5", "-1.25", "float(a % 17)"])
        left, right = self.real(depth - 1), self.real(depth - 1)
        return self.random.choice([
            f"({left} + {right})", f"({left} - {right})", f"({left} * 0.5)", f"({left} / (abs({right}) + 1.0))", f"abs({left})",
            f"({left} // 2.0)", f"({left} % 3.0)", f"min({left}, {right})", f"({left} * float(b % 3))",
        ])  # fmt: skip

    def condition(self, depth: int = 1) -> str:
        """A condition."""
        integers, reals = [self.integer(depth) for _ in range(2)], [self.real(depth) for _ in range(2)]
        first = self.random.choice([" > ".join(integers), " <= ".join(reals), "a % 2 == 0"])
        if self.random.random() < 0.3:
            return f"{first} {self.random.choice(['and', 'or'])} not ({self.real(depth)} < 0.25)"
        return first

    def list_statement(self) -> str:
        """A statement that uses the list."""
        return self.random.choice([
            f"values.append({self.integer(1)})", f"values[{self.random.choice(['0', '-1', 'a % len(values)'])}] = {self.integer(1)}",
            "values = values + [b]", "values = [a, b] * 2", "values = rows[a % len(rows)]", "rows.append([a, b])",
            "rows[-1].append(a)", "rows[0][0] = b", "a = rows[b % len(rows)][-1]", "rows = [values, values]", "values = rows[0] + [a]",
            "values.insert(a % 3, b)", "values.extend(rows[-1][:2])", "values = sorted(values)", "values.reverse()", "b = min(values)",
            "values = [each * 2 for each in values[:4]]", "a = a + 1 if b in values else a - 1", "rows[0] = values[1:] + [a]", "b = sum(values)",
        ])  # fmt: skip

    def tensor_statement(self) -> str:
        """An assignment to the tensor."""
        return self.random.choice([
            "x = x * 0.5 + 1.0", "x = x - x.mean()", "x = torch.tanh(x) * u", "x = x + float(a % 7)", "x = torch.relu(x) - 0.1",
            "u = float(x.sum())", "x = x if bool(x[0] > 0.0) else -x", "x = x[a % 3] + x", "x = y[: 3] - 1.0",
            "y[a % 3] = u", "y[b % 3] += x[a % 3]", "y += x * 0.5", "x = y", "y = x", "y = x.clone()", "x.mul_(0.5)", "kept.append(x)",
            "x = kept[a % len(kept)] * 0.5", "y[1:] = x[:2]", "y[0:2].fill_(v)", "x = y.view(3)", "kept = [x * 1.0, y + 1.0]",
            "x = torch.where(y > u, x, y)", "y[y > 1.0] = 0.25", "x[a % 3] = y[b % 3] * 2.0", "z = x[1:]", "x = torch.cat([z, y[:1]])",
            "z[0] = 0.5", "z = y[:2]", "z -= 0.25", "x = torch.stack(kept).mean(0)",
            "q = q * (a % 5) % 7", "q[a % 3] = b % 9", "q += 1", "x = x + q", "u = float(q.sum())", "a = int(q[b % 3])",
            "x = x * (q > b)", "q = torch.where(x > u, q, q + 1)", "q[b % 3] += q[a % 3]", "q = q.clone()", "x = x.clamp(-1.0, 1.0) * float(q[0] % 3)",
            "y = torch.zeros(3) + v", "x = (x.sum() > u) * x", "q = torch.tensor([1, 2, 3])", "x[0] = q[1]", "q[0] = 3", "y = (y.sum() * 0.125) * u + y",
        ])  # fmt: skip
