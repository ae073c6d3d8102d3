"""Small models as Triton kernels in Triton's interpreter: inference, and training steps with dropout."""

from __future__ import annotations

import contextlib
import copy

import pytest

import rushlight as torch
from rushlight.compiler.logs import leave, listen
from tests.inductor.triton.models import GPT, MODELS

TARGET = {"target": "triton-interpreter"}
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


class Pieces:
    """A listener that collects the Triton pieces of all graphs."""

    def __init__(self):
        self.found = []

    def heard(self, log, record):
        if record.stage == "code":
            self.found.append(record.subject)

    def interpreting(self, log):
        return contextlib.nullcontext()


@pytest.mark.parametrize("name", MODELS)
def test_inference(name):
    model, inputs = MODELS[name]()
    pieces = Pieces()
    listen(pieces)
    try:
        with torch.no_grad():
            found, wanted = torch.compile(model, options=TARGET)(*inputs), model(*inputs)
    finally:
        leave(pieces)
    torch.testing.assert_close(found, wanted, **CLOSE)
    assert [made.eager for made in pieces.found] == [{}]


def test_steps_of_training_with_dropout():
    start, x, y = GPT().train(), torch.randint(0, 50, (2, 20)), torch.randint(0, 50, (2, 20))
    found = []
    for options in ({}, TARGET):
        model = copy.deepcopy(start)
        optimizer, run = torch.optim.SGD(model.parameters(), lr=0.1), torch.compile(model, options=options)
        torch.manual_seed(3)
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = run(x, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        found.append([*losses, *(parameter.detach() for parameter in model.parameters())])
    torch.testing.assert_close(*found, **CLOSE)
