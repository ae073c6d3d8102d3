"""What scripted code must not say, and the messages."""

from __future__ import annotations

import typing

import pytest

import rushlight as torch


def with_keyword(x: int):
    print(x, sep="")


def method_of_number(x: int):
    return x.add(1)


def legacy_keyword():
    return torch.LongTensor(2, device="cpu")


def too_large():
    return 0xFFFFFFFFFFFFFFFF


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (with_keyword, "print doesn't accept any keyword arguments"),
        (method_of_number, "'int' object has no attribute or method 'add'"),
        (legacy_keyword, "take sizes or one list, got the keyword 'device'"),
        (too_large, "Integral constant out of range"),
    ],
)
def test_refused(function, message):
    with pytest.raises(RuntimeError, match=message):
        torch.jit.script(function)


@pytest.mark.parametrize("name", ["List", "Dict", "Tuple", "Optional"])
def test_generics_need_their_contents(name):
    message = f"Attempted to use {name} without (a contained type|contained types)"
    with pytest.raises(RuntimeError, match=message):
        torch.jit.CompilationUnit(f"def f(x: {name}):\n    return x")
    with pytest.raises(RuntimeError, match=message):
        torch.jit.isinstance(1, getattr(typing, name))
