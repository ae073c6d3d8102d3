"""benchmarks/perplexity.py: likelihoods of a text's tokens."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from benchmarks.perplexity import PIECE, WINDOW, distances, log_likelihoods, perplexity, windows_of
from examples.generation import Session
from tests.examples.small_gemma import model


def test_likelihoods_of_tokens():
    window = [place * 7 % 50 for place in range(PIECE + 9)]
    session = Session(model(context=200), 100, compiled=False)
    found = list(log_likelihoods(session, window))
    session.rewind()
    logits = session.feed(torch.tensor([window]), last=False)[0].log_softmax(1)
    expected = [float(logits[place, token]) for place, token in enumerate(window[1:])]
    assert found == pytest.approx(expected, abs=1e-3)


def test_windows():
    size = WINDOW - 1
    tokens = list(range(2 * size + 5))
    assert windows_of(tokens, -1, 9) == [[-1, *tokens[:size]], [-1, *tokens[size : 2 * size]]]
    assert len(windows_of(tokens, -1, 1)) == 1
    with pytest.raises(ValueError, match="the text has 9 tokens; expected at least 511"):
        windows_of(tokens[:9], -1, 1)


def test_perplexity():
    assert perplexity([[math.log(0.5)], [math.log(0.125)]]) == pytest.approx(4)
    assert distances([[1.0, 2.0]], [[1.5, 0.0]]) == (1.25, 2.0)
