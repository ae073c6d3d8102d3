"""Tree views: what the frontend makes of Python, as s-expressions."""

from __future__ import annotations

import pytest

from rushlight.jit.errors import NotSupportedError
from rushlight.jit.frontend.definitions import get_jit_def


def add_and_double(a, b: int):
    # 注释: comments of any script
    c = a + b
    return c * 2


def test_a_function_prints_as_an_s_expression():
    assert str(get_jit_def(add_and_double, "f")) == """(def
  (ident f)
  (decl
    (list
      (param
        (ident a)
        (option)
        (option)
        (False))
      (param
        (ident b)
        (option (variable (ident int)))
        (option)
        (False)))
    (option))
  (list
    (assign
      (list (variable (ident c)))
      (option
        (+
          (variable (ident a))
          (variable (ident b))))
      (option))
    (return
      (*
        (variable (ident c))
        (const 2)))))
"""


def takes_any_number(*values):
    return values


def yields(x):
    yield x


def test_what_torchscript_lacks_is_named_with_its_place():
    with pytest.raises(NotSupportedError, match="variable number of arguments"):
        get_jit_def(takes_any_number)
    with pytest.raises(NotSupportedError, match="yield expressions aren't supported"):
        get_jit_def(yields)


def every_statement(a, b, items):
    x, (y, z) = a, (b, a)
    for i, v in enumerate(items):
        if i > 2 and v or not x:
            break
        elif a is not None:
            continue
    while a in items:
        del items[0]
    with a as c:
        pass
    assert x, "m"
    b[1:2, ..., None] -= -3
    print(y, z, [q for q in items], {k: k for k in items}, f"{a}!")
    raise ValueError(c.d(*items, e=(1,)))


def test_every_kind_of_statement_prints():
    text = str(get_jit_def(every_statement))
    for kind in ("tuple-literal", "for", "if", "break", "continue", "while", "del", "with", "withitem", "assert", "aug_assign",
                 "slice expr", "dots", "list comprehension", "dict comprehension", "string_literal {}!", "raise", "starred"):  # fmt: skip
        assert f"({kind}" in text, kind


@pytest.mark.oracle
def test_trees_are_printed_as_torch_prints_them():
    torch = pytest.importorskip("torch")
    for function in (add_and_double, every_statement):
        wanted = str(torch.jit.frontend.get_jit_def(function, function.__name__)).rstrip()
        assert str(get_jit_def(function)).rstrip() == wanted
