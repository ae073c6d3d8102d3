"""The functions whose compilation the golden files show."""

import rushlight as torch

F = torch.nn.functional


def normalise(x, weight):
    centred = x - x.mean(-1, keepdim=True)
    return centred * weight


def chain(x, table, index):
    rows = table[index] + x
    scores = rows.softmax(-1)
    return scores.t(), scores.amax(0)


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 64)
        self.norm = torch.nn.LayerNorm(64)
        self.down = torch.nn.Linear(64, 8)

    def forward(self, x):
        hidden = F.gelu(self.up(x))
        return F.softmax(self.down(self.norm(hidden)), -1)


def scores(x, weight):
    hidden = F.gelu(x @ weight)
    return hidden.softmax(-1), x.sum(0)
