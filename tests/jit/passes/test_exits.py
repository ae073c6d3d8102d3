"""Variables and exits become values: emitted graphs in text, after ConvertToSSA and the passes that clean up; CanonicalizeOutputs."""

from __future__ import annotations

from textwrap import dedent

import pytest

from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.run import run_pass
from tests.jit.passes.support import canonical, check

EARLY_RETURN = (
    """
    graph(%x : int, %n : int):
       = prim::Store[name="y"](%x)
      %q : bool = aten::gt(%x, %n)
       = prim::If(%q)
        block0():
          %a : int = prim::Load[name="y"]()
           = prim::ReturnStmt(%a)
          -> ()
        block1():
          %b : int = aten::add(%x, %n)
           = prim::Store[name="y"](%b)
          -> ()
      %c : int = prim::Load[name="y"]()
      %d : int = aten::mul(%c, %n)
       = prim::ReturnStmt(%d)
      %r : int = prim::Uninitialized()
      return (%r)
    """,
    """
    graph(%x : int, %n : int):
      %q : bool = aten::gt(%x, %n)
      %r : int = prim::If(%q)
        block0():
          -> (%x)
        block1():
          %b : int = aten::add(%x, %n)
          %d : int = aten::mul(%b, %n)
          -> (%d)
      return (%r)
    """,
)
BREAK_IN_WHILE = (
    """
    graph(%n : int, %x : int):
      %most : int = prim::Constant[value=9223372036854775807]()
       = prim::Store[name="y"](%x)
       = prim::Loop(%most)
        block0(%i : int):
          %a : int = prim::Load[name="y"]()
          %q : bool = aten::eq(%a, %n)
           = prim::If(%q)
            block0():
               = prim::BreakStmt()
              -> ()
            block1():
              -> ()
          %b : int = aten::add(%a, %n)
           = prim::Store[name="y"](%b)
          -> ()
        block1():
          %c : int = prim::Load[name="y"]()
          %d : bool = aten::lt(%c, %n)
          -> (%d)
      %e : int = prim::Load[name="y"]()
       = prim::ReturnStmt(%e)
      %r : int = prim::Uninitialized()
      return (%r)
    """,
    """
    graph(%n : int, %x : int):
      %most : int = prim::Constant[value=9223372036854775807]()
      %f : bool = prim::Constant[value=0]()
      %p : bool = aten::lt(%x, %n)
      %y : int = prim::Loop(%most, %p, %x)
        block0(%i : int, %a : int):
          %q : bool = aten::eq(%a, %n)
          %d : bool, %e : int = prim::If(%q)
            block0():
              -> (%f, %a)
            block1():
              %b : int = aten::add(%a, %n)
              %c : bool = aten::lt(%b, %n)
              -> (%c, %b)
          -> (%d, %e)
      return (%y)
    """,
)
CONTINUE_IN_FOR = (
    """
    graph(%n : int, %x : int):
       = prim::Store[name="y"](%x)
       = prim::Loop(%n)
        block0(%i : int):
          %q : bool = aten::eq(%i, %x)
           = prim::If(%q)
            block0():
               = prim::ContinueStmt()
              -> ()
            block1():
              -> ()
          %a : int = prim::Load[name="y"]()
          %b : int = aten::add(%a, %i)
           = prim::Store[name="y"](%b)
          -> ()
      %e : int = prim::Load[name="y"]()
       = prim::ReturnStmt(%e)
      %r : int = prim::Uninitialized()
      return (%r)
    """,
    """
    graph(%n : int, %x : int):
      %most : int = prim::Constant[value=9223372036854775807]()
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %t : bool = prim::Constant[value=1]()
      %p : bool = aten::gt(%n, %0)
      %y : int, %k : int = prim::Loop(%most, %p, %x, %0)
        block0(%j : int, %a : int, %i : int):
          %q : bool = aten::eq(%i, %x)
          %e : int = prim::If(%q)
            block0():
              -> (%a)
            block1():
              %b : int = aten::add(%a, %i)
              -> (%b)
          %s : int = aten::add(%i, %1)
          %c : bool = aten::lt(%s, %n)
          %d : bool = aten::__and__(%c, %t)
          -> (%d, %e, %s)
      return (%y)
    """,
)
RETURN_IN_FOR = (
    """
    graph(%n : int, %x : int):
       = prim::Loop(%n)
        block0(%i : int):
          %q : bool = aten::eq(%i, %x)
           = prim::If(%q)
            block0():
               = prim::ReturnStmt(%i)
              -> ()
            block1():
              -> ()
          -> ()
       = prim::ReturnStmt(%n)
      %r : int = prim::Uninitialized()
      return (%r)
    """,
    """
    graph(%n : int, %x : int):
      %most : int = prim::Constant[value=9223372036854775807]()
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %t : bool = prim::Constant[value=1]()
      %f : bool = prim::Constant[value=0]()
      %u : int = prim::Uninitialized()
      %p : bool = aten::gt(%n, %0)
      %has : bool, %value : int, %k : int = prim::Loop(%most, %p, %f, %u, %0)
        block0(%j : int, %has0 : bool, %value0 : int, %i : int):
          %q : bool = aten::eq(%i, %x)
          %go : bool, %has1 : bool, %value1 : int = prim::If(%q)
            block0():
              -> (%f, %t, %i)
            block1():
              -> (%t, %f, %u)
          %s : int = aten::add(%i, %1)
          %c : bool = aten::lt(%s, %n)
          %d : bool = aten::__and__(%c, %go)
          -> (%d, %has1, %value1, %s)
      %r : int = prim::If(%has)
        block0():
          -> (%value)
        block1():
          -> (%n)
      return (%r)
    """,
)
RETURN_IN_WITH = (
    """
    graph(%x : int, %q : bool, %m : __torch__.M):
       = prim::With()
        block0():
           = prim::If(%q)
            block0():
               = prim::ReturnStmt(%x)
              -> ()
            block1():
              -> ()
          %y : int = aten::neg(%x)
           = prim::Store[name="y"](%y)
          -> ()
        block1():
          %z : Any = prim::Exit(%m)
          -> ()
      %a : int = prim::Load[name="y"]()
      %b : int = aten::neg(%a)
       = prim::ReturnStmt(%b)
      %r : int = prim::Uninitialized()
      return (%r)
    """,
    """
    graph(%x : int, %q : bool, %m : __torch__.M):
      %t : bool = prim::Constant[value=1]()
      %f : bool = prim::Constant[value=0]()
      %u : int = prim::Uninitialized()
      %has : bool, %value : int, %y : int = prim::If(%q)
        block0():
          -> (%t, %x, %u)
        block1():
          %a : int = aten::neg(%x)
          -> (%f, %u, %a)
      %z : Any = prim::Exit(%m)
      %r : int = prim::If(%has)
        block0():
          -> (%value)
        block1():
          %b : int = aten::neg(%y)
          -> (%b)
      return (%r)
    """,
)
EXITS = {
    "return": EARLY_RETURN,
    "break in while": BREAK_IN_WHILE,
    "continue in for": CONTINUE_IN_FOR,
    "return in for": RETURN_IN_FOR,
    "return in with": RETURN_IN_WITH,
}


@pytest.mark.parametrize("name", EXITS)
def test_exits_become_values(name):
    before, wanted = map(dedent, EXITS[name])
    graph = parse_ir(before)
    for each in ("ConvertToSSA", "RunCleanupPasses"):
        run_pass(each, graph)
        lint(graph)
    assert canonical(graph) == canonical(parse_ir(wanted))


def test_results_stand_in_the_order_of_their_uses():
    check(
        "CanonicalizeOutputs",
        """
        graph(%x : int, %n : int, %q : bool):
          %1 : bool = prim::Constant[value=1]()
          %unused : int, %a : int, %b : int = prim::If(%q)
            block0():
              -> (%x, %x, %n)
            block1():
              -> (%n, %n, %x)
          %c : int, %d : int, %e : int = prim::Loop(%n, %1, %b, %a, %x)
            block0(%i : int, %f : int, %g : int, %h : int):
              %j : int = aten::add(%g, %i)
              %k : int = aten::mul(%f, %j)
              -> (%1, %k, %j, %h)
          %l : int = aten::sub(%e, %d)
          return (%l, %b)
        """,
        """
        graph(%x : int, %n : int, %q : bool):
          %1 : bool = prim::Constant[value=1]()
          %a : int, %b : int, %unused : int = prim::If(%q)
            block0():
              -> (%x, %n, %x)
            block1():
              -> (%n, %x, %n)
          %e : int, %d : int, %c : int = prim::Loop(%n, %1, %x, %a, %b)
            block0(%i : int, %h : int, %g : int, %f : int):
              %j : int = aten::add(%g, %i)
              %k : int = aten::mul(%f, %j)
              -> (%1, %h, %j, %k)
          %l : int = aten::sub(%e, %d)
          return (%l, %b)
        """,
    )
