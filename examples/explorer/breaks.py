"""Three graph breaks and a recompilation, each with its reason on the page: `rushlight explore examples/explorer/breaks.py`."""

import rushlight as torch


def careless(x, limit):
    y = torch.sin(x) * limit
    print("the first sum is", y.sum().item() > 0)  # the value of a tensor, and an effect on the world
    y = y.relu() + 1
    if y.mean() > 1:  # a branch on a value
        y = y * 2
    return torch.softmax(y, dim=-1)


with torch.no_grad():
    compiled = torch.compile(careless)
    for rows in (8, 8, 16, 24):  # sizes change: captured again, with an open size
        compiled(torch.randn(rows, 32), 3.0)
