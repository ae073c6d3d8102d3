"""Modules for eager-mode quantization, with inputs."""

from __future__ import annotations

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as tq


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.first, self.relu = nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU()
        self.each = nn.Conv2d(16, 16, 3, 1, 2, dilation=2, groups=16)
        self.groups = nn.Conv2d(16, 24, (1, 3), 1, (0, 1), groups=4, bias=False)
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        x = self.groups(self.each(self.relu(self.first(self.quant(x)))))
        return self.dequant(self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)))


class Signal(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant, self.layer = tq.QuantStub(), tq.DeQuantStub(), nn.Conv1d(4, 6, 5, 2, 2)

    def forward(self, x):
        return self.dequant(self.layer(self.quant(x)))


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.up, self.relu, self.down = nn.Linear(33, 70), nn.ReLU(), nn.Linear(70, 5)

    def forward(self, x):
        return self.dequant(self.down(self.relu(self.up(self.quant(x)))))


class Sequence(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layer, self.head = kind(9, 12, **options), nn.Linear(24 if options.get("bidirectional") else 12, 4)

    def forward(self, x):
        made, states = self.layer(x)
        return self.head(made), states


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.plain = nn.LSTMCell(9, 12), nn.GRUCell(12, 6), nn.RNNCell(6, 5)

    def forward(self, x):
        hidden, memory = self.lstm(x)
        return self.plain(self.gru(hidden)), memory


def recurrent(model, dtype=torch.qint8):
    kinds = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}
    return tq.quantize_dynamic(model.eval(), kinds, dtype=dtype)


RECURRENT = {
    "lstm": lambda: (recurrent(Sequence(nn.LSTM, num_layers=2, bidirectional=True)), torch.randn(5, 3, 9)),
    "lstm_batch_first": lambda: (recurrent(Sequence(nn.LSTM, batch_first=True)), torch.randn(3, 6, 9)),
    "lstm_halves": lambda: (recurrent(Sequence(nn.LSTM), torch.float16), torch.randn(5, 3, 9)),
    "gru": lambda: (recurrent(Sequence(nn.GRU, num_layers=2)), torch.randn(5, 3, 9)),
    "cells": lambda: (recurrent(Cells()), torch.randn(3, 9)),
}


def static(model, example, fused=()):
    model = model.eval()
    model.qconfig = tq.get_default_qconfig("x86")
    if fused:
        tq.fuse_modules(model, list(fused), inplace=True)
    prepared = tq.prepare(model)
    with torch.no_grad():
        prepared(example)
    return tq.convert(prepared)


MODELS = {
    "images": lambda: (static(Images(), torch.randn(2, 3, 12, 13), [["first", "relu"]]), torch.randn(2, 3, 12, 13)),
    "channels_last": lambda: (
        static(Images(), torch.randn(2, 3, 12, 13)), torch.randn(2, 3, 12, 13).to(memory_format=torch.channels_last)),
    "signal": lambda: (static(Signal(), torch.randn(2, 4, 21)), torch.randn(2, 4, 21)),
    "rows": lambda: (static(Rows(), torch.randn(9, 33), [["up", "relu"]]), torch.randn(9, 33)),
    "rows_of_images": lambda: (static(Rows(), torch.randn(9, 33)), torch.randn(2, 3, 4, 33)),
    "dynamic": lambda: (tq.quantize_dynamic(nn.Sequential(nn.Linear(33, 64), nn.ReLU(), nn.Linear(64, 7)).eval(), {nn.Linear}),
                        torch.randn(6, 33)),
}  # fmt: skip
