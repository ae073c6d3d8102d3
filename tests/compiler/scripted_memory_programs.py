"""Scripted functions that write to tensors, take views of them and keep them in lists, for comparing native code with the
interpreter. Each has arguments by name in `ARGUMENTS`; those that have no native form are in `INTERPRETED`."""

from __future__ import annotations

from typing import List, Optional, Tuple  # noqa: UP035 (TorchScript's annotations)

import rushlight as torch
from rushlight import Tensor


def rows_written(x: Tensor) -> Tensor:
    """Rows of a tensor that is made here."""
    out = torch.empty_like(x)
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        total = total + x[i]
        out[i] = total
    return out


def elements_written(n: int) -> Tensor:
    """Writes to elements by two indices."""
    x = torch.zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            x[i, j] = i * n + j
    return x


def accumulated(x: Tensor) -> Tensor:
    """`+=` on a tensor that a loop carries."""
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        total += x[i] * 0.5
    return total


def argument_written(x: Tensor, n: int) -> Tensor:
    """Writes to an argument, which is also the result."""
    for i in range(n):
        x[i] += 1
        x.mul_(1.5)
    return x


def argument_filled(x: Tensor, n: int) -> int:
    """Fills an argument with numbers and other tensors."""
    for i in range(n):
        x[i].fill_(i)
        x[i, 0] = x[i + 1, 1] + 2
        x[:, 2].zero_()
    return n


def alias_sees(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    """A view taken before a write sees it."""
    y = x.clone()
    row = y[1]
    column = y[:, 0]
    for i in range(n):
        y[i] = y[i] * 2 + column.sum()
        row[0] = float(i)
    return y, row + column.sum()


def swapped_roles(n: int) -> Tensor:
    """Two buffers that swap roles."""
    a = torch.zeros(4)
    b = torch.ones(4)
    for i in range(n):
        a[i % 4] = b.sum()
        a, b = b, a
    return a * 10 + b


def snapshots(n: int) -> Tensor:
    """A stored copy does not change with its source."""
    x = torch.zeros(3)
    last = x.clone()
    for i in range(n):
        last = x.clone()
        x[i % 3] = i + 1
    return torch.stack([last, x])


def no_snapshot(n: int) -> Tensor:
    """A stored alias changes with its tensor."""
    x = torch.zeros(3)
    last = x
    for i in range(n):
        last = x
        x[i % 3] = i + 1
    return torch.stack([last, x])


def one_or_the_other(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    """A write through a name that may alias either of two tensors."""
    a = x + 0
    b = x + 1
    for i in range(n):
        if i % 2 == 0:
            c = a
        else:
            c = b
        c[0] = c[0] * 2 + i
    return a, b


def made_in_the_loop(n: int) -> Tensor:
    """A tensor that each round makes, writes to and keeps."""
    found: List[Tensor] = []  # noqa: UP006
    for i in range(n):
        y = torch.zeros(3)
        y[i % 3] = i
        y += 1
        found.append(y)
    return torch.stack(found)


def carried_and_written(x: Tensor, n: int) -> Tensor:
    """An in-place operation on the previous round's result."""
    y = x * 1
    for i in range(n):
        y = y * 0.5
        y += x
        y[0] = i
    return y


def shifted(x: Tensor, n: int) -> Tensor:
    """Overlapping slices on both sides."""
    for _ in range(n):
        x[1:-1] = x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
    return x


def moved_along(x: Tensor, n: int) -> Tensor:
    """Writes a slice into an overlapping one."""
    y = x.clone()
    for _ in range(n):
        y[1:] = y[:-1].clone()
    return y


def windows(x: Tensor, k: int) -> Tensor:
    """Slices whose start depends on the loop."""
    n = x.size(0) - k + 1
    out = torch.zeros(n)
    for i in range(n):
        out[i] = x[i : i + k].sum()
    for j in range(k):
        out += x[j : j + n]
    return out


def transposed(x: Tensor) -> Tensor:
    """Columns of a transposed view."""
    y = torch.zeros(x.size(1), x.size(0))
    z = y.t()
    for i in range(x.size(0)):
        z[i] = x[i]
        y[:, i] += 1
    return y


def masked(x: Tensor, n: int) -> Tensor:
    """A write through a mask."""
    y = x.clone()
    for i in range(n):
        y[y > i] = 0.5
        y.masked_fill_(y < -i, 1.0)
    return y


def counted(values: Tensor, bins: int) -> Tensor:
    """A histogram of ints."""
    found = torch.zeros(bins, dtype=torch.int64)
    for i in range(values.size(0)):
        found[int(values[i])] += 1
    return found


def converted(n: int) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
    """Converts numbers to tensors of other types."""
    a = torch.zeros(3, dtype=torch.int64)
    b = torch.zeros(3, dtype=torch.bool)
    c = torch.zeros(3, dtype=torch.float64)
    for i in range(n):
        a[i] = i * 2
        b[i] = i % 2
        c[i] = i / 3
        c[0] = a[i]
    return a, b, c


def many_operators(x: Tensor, g: Tensor, n: int) -> Tensor:
    """Operators in place, chained."""
    m = torch.zeros_like(x)
    v = torch.zeros_like(x)
    y = x.clone()
    for t in range(1, n + 1):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        y -= 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        y.clamp_(-1.0, 1.0)
    return y


def a_list_of_arguments(xs: List[Tensor], n: int) -> Tensor:  # noqa: UP006
    """Elements by index and in order."""
    total = torch.zeros_like(xs[0])
    for x in xs:
        total = total + x * x
    for i in range(n):
        total = total + xs[i % len(xs)] - xs[-1]
    return total


def lists_that_change(x: Tensor, n: int) -> Tensor:
    """Lists of tensors: set, popped, inserted, reversed, sliced."""
    kept = [x, x + 1]
    for i in range(n):
        kept.append(kept[-1] * 0.5 + kept[i])
        kept[0] = kept[0] + i
        kept.insert(1, x * i)
        if i % 2 == 1:
            kept.pop()
    kept.reverse()
    total = torch.zeros_like(x)
    for each in kept[1:]:
        total = total * 2 + each
    return total + len(kept)


def differences(xs: List[Tensor]) -> List[Tensor]:  # noqa: UP006
    """A list of results."""
    found: List[Tensor] = []  # noqa: UP006
    before = torch.zeros_like(xs[0])
    for x in xs:
        found.append(x - before)
        before = x
    return found


def popped(x: Tensor, n: int) -> Tensor:
    """A stack of tensors."""
    stack = [x * 1]
    total = torch.zeros_like(x)
    for i in range(n):
        stack.append(stack[-1] + i)
        if len(stack) > 3:
            total += stack.pop(0)
    return total + stack.pop()


def unbound(x: Tensor) -> Tensor:
    """The rows of a tensor as a list."""
    outputs: List[Tensor] = []  # noqa: UP006
    h = torch.zeros(x.size(1))
    for row in x.unbind(0):
        h = torch.tanh(row + h)
        outputs += [h]
    return torch.cat(outputs, 0)


def maybe_before(x: Tensor) -> Tensor:
    """None in the first round, a tensor in the others."""
    before: Optional[Tensor] = None  # noqa: UP045
    total = torch.zeros(x.size(1))
    for i in range(x.size(0)):
        if before is None:
            before = x[i] * 2
        else:
            before = before * 0.5 + x[i]
        total = total + before
    return total


def maybe_result(x: Tensor, limit: float) -> Optional[Tensor]:  # noqa: UP045
    """A tensor if there is one."""
    found: Optional[Tensor] = None  # noqa: UP045
    for i in range(x.size(0)):
        if float(x[i].sum()) > limit:
            found = x[i] + 1
    return found


def returned_early(x: Tensor, n: int, limit: float) -> Tensor:
    """A return of a tensor out of a loop."""
    for _ in range(n):
        y = x * 0.5 + 1
        if float((y - x).abs().max()) < limit:
            return y
        x = y
    return x - 100


def by_name(x: Tensor, mode: str, n: int) -> Tensor:
    """A string argument selects a branch."""
    for _ in range(n):
        if mode == "add":
            x = x + 1
        elif mode == "halve":
            x = x * 0.5
        else:
            x = -x
    return x


def by_sizes(n: int, k: int) -> Tensor:
    """Sizes from arguments."""
    x = torch.ones(n, k * 2)
    for i in range(n):
        x[i] = torch.full([k * 2], float(i)) + x[i, :1]
    return x


def numbers_of_tensors(x: Tensor, n: int) -> Tensor:
    """Combines tensors with numbers read from them."""
    total = 0.0
    for i in range(n):
        total += float(x[i % x.size(0)].item())
        x = torch.where(x > total, x * i, total)
        x = x.clamp(max=total + 3) + torch.tensor(total) + torch.full_like(x, i)
        x = x.mean() * total + x
    return x


def whole_rounds(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Slices of a different size in each round."""
    found: List[Tensor] = []  # noqa: UP006
    for t in range(q.size(0)):
        weights = torch.softmax(k[: t + 1] @ q[t], 0)
        found.append(weights @ v[: t + 1])
    return torch.stack(found)


def same_twice(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    """The same tensor as two results."""
    for _ in range(n):
        x = x + 1
    return x, x


def list_of_written(n: int) -> List[Tensor]:  # noqa: UP006
    """A list with one tensor several times, which is written to afterwards."""
    x = torch.zeros(2)
    found: List[Tensor] = []  # noqa: UP006
    for i in range(n):
        found.append(x)
        x[0] = i
    return found


def element_written(x: Tensor, n: int) -> Tensor:
    """A write to a tensor that was taken out of a list."""
    kept = [x * 1, x * 2]
    for i in range(n):
        y = kept[i % 2]
        y[0] = i
    return kept[0] + kept[1]


def arguments_back(x: Tensor, n: int) -> List[Tensor]:  # noqa: UP006
    """A list that contains an argument itself."""
    found = [x]
    for i in range(n):
        found.append(x + i)
    return found


ARGUMENTS: dict[str, list[tuple]] = {
    "rows_written": [((4, 3),)], "elements_written": [(4,), (1,)], "accumulated": [((5, 3),)],
    "argument_written": [((5, 2), 3), ((5,), 3)], "argument_filled": [((5, 3), 4)], "alias_sees": [((4, 3), 4), ((4, 3), 0)],
    "swapped_roles": [(5,), (0,), (1,)], "snapshots": [(5,)], "no_snapshot": [(5,)], "one_or_the_other": [((3,), 5)],
    "made_in_the_loop": [(5,)], "carried_and_written": [((3,), 4)], "shifted": [((8,), 3)], "moved_along": [((5,), 2)],
    "windows": [((9,), 3)], "transposed": [((4, 3),)], "masked": [((3, 4), 3)], "converted": [(3,)],
    "many_operators": [((6,), (6,), 5)], "lists_that_change": [((3,), 5)], "popped": [((3,), 6)], "unbound": [((4, 3),)],
    "maybe_before": [((4, 3),), ((1, 3),)], "maybe_result": [((4, 3), -9.0), ((4, 3), 99.0)],
    "returned_early": [((3,), 50, 0.01), ((3,), 2, 0.0)], "by_name": [((3,), "add", 3), ((3,), "halve", 2), ((3,), "", 3)],
    "by_sizes": [(3, 2)], "numbers_of_tensors": [((4,), 4)], "whole_rounds": [((5, 4), (5, 4), (5, 4))],
    "same_twice": [((3,), 2)], "list_of_written": [(3,)], "element_written": [((3,), 3)], "arguments_back": [((3,), 2)],
    "a_list_of_arguments": [([(3,), (3,)], 4)], "differences": [([(3,), (3,), (3,)],)], "counted": [([0, 2, 1, 2], 4)],
}  # fmt: skip
INTERPRETED = ("arguments_back",)
