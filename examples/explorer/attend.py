"""Attention's scores: `rushlight explore examples/explorer/attend.py`."""

import rushlight as torch


def attend(x, w, b):
    scores = x @ w
    scores = scores + b
    return torch.softmax(scores, dim=-1)


with torch.no_grad():
    compiled = torch.compile(attend)
    for _ in range(20):
        compiled(torch.randn(64, 128), torch.randn(128, 256), torch.randn(256))
