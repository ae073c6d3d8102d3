"""A scripted sequence-to-sequence model whose decoder runs until it says that it is done."""

import rushlight as torch
from rushlight import nn


class Seq2Seq(nn.Module):
    """An LSTM over the ids of a sentence, and a cell that goes on from its state, greedily."""

    def __init__(self, vocabulary: int = 40, width: int = 32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.cell = nn.LSTMCell(width, width)
        self.out = nn.Linear(width, vocabulary)
        self.begin: int = 1
        self.end: int = 2

    def forward(self, ids: torch.Tensor, limit: int) -> tuple[torch.Tensor, list[int]]:
        """The logits of each step, (1, steps, vocabulary), and the symbols that were chosen, at most `limit`."""
        encoded, (h, c) = self.encoder(self.embed(ids))
        hidden, state = h[-1], c[-1]
        token = torch.full((1,), self.begin, dtype=torch.long)
        steps = torch.jit.annotate(list[torch.Tensor], [])
        chosen = torch.jit.annotate(list[int], [])
        for _ in range(limit):
            hidden, state = self.cell(self.embed(token), (hidden, state))
            logits = self.out(hidden)
            token = logits.argmax(-1)
            steps.append(logits)
            chosen.append(int(token.item()))
            if chosen[-1] == self.end:
                break
        return torch.stack(steps, 1), chosen
