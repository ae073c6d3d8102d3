"""Passes against torch's passes of the same names, on the same texts."""

from __future__ import annotations

import pytest

from tests.jit.passes.support import like_torch

pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

ARITHMETIC = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %2 : int = prim::Constant[value=2]()
      %3 : int = aten::add(%1, %2)
      %4 : int = aten::mul(%3, %2)
      %a : Tensor = aten::add(%x, %y, %4)
      %b : Tensor = aten::add(%x, %y, %4)
      %c : Tensor = aten::mul(%a, %b)
      return (%c)
"""
BRANCHES = """
    graph(%x : Tensor, %n : int):
      %1 : int = prim::Constant[value=1]()
      %2 : int = prim::Constant[value=2]()
      %t : bool = aten::lt(%1, %2)
      %a : Tensor = prim::If(%t)
        block0():
          %3 : Tensor = aten::add(%x, %x, %1)
          -> (%3)
        block1():
          %4 : Tensor = aten::mul(%x, %x)
          -> (%4)
      %q : bool = aten::gt(%n, %1)
      %p : int, %r : Tensor, %s : int = prim::If(%q)
        block0():
          %5 : int = prim::Constant[value=7]()
          %6 : int = aten::add(%n, %1)
          -> (%5, %x, %6)
        block1():
          %7 : int = prim::Constant[value=7]()
          -> (%7, %x, %n)
      %8 : Tensor = aten::add(%a, %r, %p)
      %9 : Tensor = aten::add(%8, %r, %s)
      return (%9)
"""
LOOPS = """
    graph(%x : Tensor, %n : int):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %a : Tensor = prim::Loop(%0, %true, %x)
        block0(%i : int, %b : Tensor):
          %c : Tensor = aten::add(%b, %x, %i)
          -> (%true, %c)
      %d : Tensor, %e : int = prim::Loop(%n, %true, %a, %n)
        block0(%j : int, %f : Tensor, %g : int):
          %h : int = aten::add(%1, %1)
          %k : Tensor = aten::add(%f, %f, %h)
          -> (%true, %k, %g)
      %z : Tensor = aten::add(%d, %d, %e)
      return (%z)
"""
LISTS = """
    graph(%x : Tensor, %y : Tensor):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %l : int[] = prim::ListConstruct(%0, %1)
      %m : int[] = prim::ListConstruct(%0, %1)
      %k : int = aten::len(%l)
      %g : int = aten::__getitem__(%m, %1)
      %q : int[] = aten::append(%m, %k)
      %a : Tensor = aten::permute(%x, %l)
      %b : Tensor = aten::permute(%y, %m)
      %c : Tensor = aten::add(%a, %b, %g)
      return (%c)
"""
MUTATED = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::relu(%x)
      %b : Tensor = aten::add_(%x, %y, %1)
      %c : Tensor = aten::relu(%x)
      %d : Tensor = aten::mul(%y, %y)
      %e : Tensor = aten::mul(%y, %y)
      %f : Tensor = aten::add_(%d, %y, %1)
      %g : Tensor = aten::sigmoid(%y)
      %h : Tensor = aten::sigmoid(%y)
      %i : Tensor[] = prim::ListConstruct(%a, %c, %e, %g, %h)
      %u : Tensor = aten::cos(%y)
      return (%i)
"""
UNUSED = """
    graph(%x : Tensor, %n : int):
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %q : bool = aten::gt(%n, %1)
      %a : Tensor, %b : Tensor = prim::If(%q)
        block0():
          %c : Tensor = aten::add(%x, %x, %1)
          %d : Tensor = aten::mul(%x, %x)
          -> (%c, %d)
        block1():
          -> (%x, %x)
      %e : Tensor, %f : Tensor = prim::Loop(%n, %true, %a, %x)
        block0(%i : int, %g : Tensor, %h : Tensor):
          %j : Tensor = aten::add(%g, %g, %1)
          %k : Tensor = aten::mul(%h, %j)
          prim::Print(%i)
          -> (%true, %j, %k)
      return (%f)
"""
TUPLES = """
    graph(%x : Tensor, %y : Tensor, %q : bool, %n : int):
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
      %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
      %c : Tensor = prim::TupleIndex(%t, %1)
      %s : (Tensor) = prim::TupleSlice[beg=0, end=1](%t)
      %d : Tensor = prim::TupleUnpack(%s)
      %u : (Tensor, Tensor) = prim::If(%q)
        block0():
          %v : (Tensor, Tensor) = prim::TupleConstruct(%a, %c)
          -> (%v)
        block1():
          %w : (Tensor, Tensor) = prim::TupleConstruct(%b, %d)
          -> (%w)
      %e : Tensor, %f : Tensor = prim::TupleUnpack(%u)
      %g : Tensor = aten::add(%e, %f, %1)
      return (%g)
"""
ALL_TUPLES = """
    graph(%x : (Tensor, (Tensor, int)), %q : bool):
      %a : Tensor, %b : (Tensor, int) = prim::TupleUnpack(%x)
      %c : Tensor, %d : int = prim::TupleUnpack(%b)
      %e : Tensor = aten::add(%a, %c, %d)
      %u : (Tensor, Tensor) = prim::If(%q)
        block0():
          %v : (Tensor, Tensor) = prim::TupleConstruct(%a, %c)
          -> (%v)
        block1():
          %w : (Tensor, Tensor) = prim::TupleConstruct(%e, %e)
          -> (%w)
      %r : (Tensor, (Tensor, Tensor)) = prim::TupleConstruct(%e, %u)
      return (%r)
"""
EXPANDED = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %false : bool = prim::Constant[value=0]()
      %s : int[] = prim::ListConstruct(%1, %1)
      %a : Tensor = aten::expand(%x, %s, %true)
      %b : Tensor = aten::expand(%x, %s, %false)
      return (%a, %b)
"""
PRODUCTS = """
    graph(%x : Tensor, %y : Tensor, %z : Tensor, %n : int):
      %1 : int = prim::Constant[value=1]()
      %2 : float = prim::Constant[value=2.]()
      %c : Tensor = aten::addmm(%x, %y, %z, %1, %1)
      %d : Tensor = aten::addmm(%x, %y, %z, %1, %2)
      return (%c, %d)
"""
IDIOMS = """
    graph(%x : Tensor, %y : Tensor, %z : Tensor, %n : int):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %2 : int = prim::Constant[value=2]()
      %l : Tensor[] = prim::ListConstruct(%x, %y, %z)
      %k : int = aten::len(%l)
      %a : Tensor = aten::__getitem__(%l, %1)
      %b : Tensor, %c : Tensor, %d : Tensor = prim::ListUnpack(%l)
      %s : Tensor[] = aten::slice(%l, %0, %2, %1)
      %m : Tensor[] = aten::add(%l, %s)
      %e : Tensor = aten::cat(%m, %k)
      %q : Tensor[] = prim::ListConstruct(%x, %y)
      %r : Tensor[] = aten::append(%q, %a)
      %t : int = aten::len(%q)
      %f : Tensor = aten::add(%e, %b, %t)
      %g : Tensor = aten::add(%f, %c, %k)
      return (%g, %d)
"""
SHAPES = """
    graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %y : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %o : Tensor?, %u : Tensor):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %none : NoneType = prim::Constant()
      %false : bool = prim::Constant[value=0]()
      %2 : int = prim::Constant[value=2]()
      %3 : int = prim::Constant[value=3]()
      %l : int[] = prim::ListConstruct(%2, %3)
      %a : Tensor = aten::expand(%x, %l, %false)
      %b : Tensor = aten::type_as(%a, %y)
      %c : Tensor = aten::type_as(%x, %y)
      %d : int = aten::dim(%x)
      %e : int = aten::size(%x, %1)
      %f : int[] = aten::size(%x)
      %g : int = prim::dtype(%x)
      %h : bool = prim::is_cuda(%x)
      %i : Device = prim::device(%x)
      %j : bool = aten::is_floating_point(%x)
      %k : bool = aten::__is__(%x, %none)
      %m : bool = aten::__isnot__(%o, %none)
      %n : bool = aten::__isnot__(%u, %none)
      %p : Tensor = aten::t(%u)
      %q : Tensor = aten::t(%p)
      %r : Tensor = aten::_unwrap_optional(%u)
      %s : Tensor = aten::_grad_sum_to_size(%u, %none)
      %t : Tensor = prim::NumToTensor(%d)
      %v : int = aten::Int(%t)
      %w : Tensor = prim::unchecked_cast(%u)
      %z : Tensor = aten::mul(%x, %1)
      %zz : Tensor = aten::cos(%z)
      %out : (Tensor, Tensor, int, int, int[], int, bool, Device, bool, bool, bool, bool, Tensor, Tensor, Tensor, int, Tensor, Tensor) = prim::TupleConstruct(%b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %m, %n, %q, %r, %s, %v, %w, %zz)
      return (%out)
"""
CONDITIONS = """
    graph(%x : int, %y : int):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %false : bool = prim::Constant[value=0]()
      %q : bool = aten::lt(%x, %y)
      %a : bool, %b : bool = prim::If(%q)
        block0():
          -> (%true, %false)
        block1():
          -> (%false, %true)
      %c : bool = aten::__not__(%q)
      %d : int = aten::add(%x, %0)
      %e : int = aten::mul(%d, %1)
      %f : int = aten::sub(%e, %0)
      %g : int = aten::floordiv(%f, %1)
      return (%a, %b, %c, %g)
"""
COUNTED = """
    graph(%x : Tensor):
      %1 : int = prim::Constant[value=1]()
      %3 : int = prim::Constant[value=3]()
      %true : bool = prim::Constant[value=1]()
      %a : Tensor = prim::Loop(%3, %true, %x)
        block0(%i : int, %b : Tensor):
          %c : Tensor = aten::add(%b, %x, %i)
          -> (%true, %c)
      return (%a)
"""
RANGE = COUNTED.replace("%x : Tensor):", "%x : Tensor, %n : int):").replace("Loop(%3", "Loop(%n")
UNREAD_RANGE = RANGE.replace("aten::add(%b, %x, %i)", "aten::add(%b, %x, %1)")
WHILE = """
    graph(%x : Tensor, %n : int, %q : bool):
      %1 : int = prim::Constant[value=1]()
      %3 : int = prim::Constant[value=3]()
      %a : Tensor = prim::Loop(%3, %q, %x)
        block0(%i : int, %b : Tensor):
          %c : Tensor = aten::add(%b, %x, %i)
          %r : bool = aten::lt(%i, %n)
          -> (%r, %c)
      return (%a)
"""
IN_PLACE = """
    graph(%x : Tensor, %y : Tensor):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::add_(%a, %y, %1)
      %c : Tensor = aten::relu_(%a)
      %d : Tensor = aten::sub(%a, %c, %1)
      %e : Tensor = aten::add_(%x, %d, %1)
      %v : Tensor = aten::select(%d, %0, %0)
      %f : Tensor = aten::mul_(%v, %1)
      %g : Tensor = aten::sigmoid(%y)
      %h : Tensor = aten::zero_(%g)
      %l : Tensor[] = prim::ListConstruct(%h, %g)
      %m : Tensor[] = aten::append(%l, %d)
      %n : Tensor = aten::stack(%l, %0)
      %o : Tensor[] = aten::append(%l, %d)
      return (%c, %e, %d, %n)
"""
LIST_WRITES = """
    graph(%x : Tensor, %y : Tensor):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %l : Tensor[] = prim::ListConstruct(%x)
      %m : Tensor[] = aten::append(%l, %y)
      %n : Tensor[] = aten::append(%l, %x)
      %a : Tensor = aten::cat(%l, %0)
      %o : Tensor[] = aten::append(%l, %a)
      %b : Tensor = aten::cat(%l, %0)
      return (%a, %b)
"""
LINEAR = """
    graph(%x : Tensor, %w : Tensor, %b : Tensor):
      %1 : int = prim::Constant[value=1]()
      %2 : int = prim::Constant[value=2]()
      %t : Tensor = aten::t(%w)
      %a : Tensor = aten::addmm(%b, %x, %t, %1, %1)
      %u : Tensor = aten::t(%w)
      %c : Tensor = aten::matmul(%a, %u)
      %d : Tensor = aten::add(%c, %b, %1)
      %v : Tensor = aten::t(%w)
      %e : Tensor = aten::matmul(%d, %v)
      %f : Tensor = aten::relu(%e)
      %z : Tensor = aten::t(%w)
      %g : Tensor = aten::addmm(%b, %f, %z, %1, %2)
      return (%g)
"""
DROPOUT = """
    graph(%x : Tensor):
      %p : float = prim::Constant[value=0.5]()
      %false : bool = prim::Constant[value=0]()
      %a : Tensor = aten::dropout(%x, %p, %false)
      %b : Tensor = aten::feature_dropout(%a, %p, %false)
      return (%b)
"""
NUMBERS = """
    graph(%x : Tensor, %n : int):
      %1 : int = prim::Constant[value=1]()
      %2 : float = prim::Constant[value=2.5]()
      %a : Tensor = prim::NumToTensor(%n)
      %b : int = aten::Int(%a)
      %c : Tensor = aten::add(%x, %2, %1)
      %d : Tensor = aten::add(%c, %b, %1)
      return (%d)
"""
RELUS = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::add(%x, %y, %1)
      %b : Tensor = aten::relu(%a)
      %c : Tensor = aten::relu(%x)
      %d : Tensor = aten::mul(%b, %c)
      %e : Tensor = aten::relu_(%d)
      return (%e)
"""
SUMS_OF_PRODUCTS = """
    graph(%x : Float(2, 3, strides=[3, 1], device=cpu), %y : Float(3, 4, strides=[4, 1], device=cpu), %b : Float(4, strides=[1], device=cpu)):
      %1 : int = prim::Constant[value=1]()
      %2 : int = prim::Constant[value=2]()
      %p : Float(2, 4, strides=[4, 1], device=cpu) = aten::mm(%x, %y)
      %q : Float(2, 4, strides=[4, 1], device=cpu) = aten::add(%p, %b, %1)
      %r : Float(2, 4, strides=[4, 1], device=cpu) = aten::mm(%x, %y)
      %s : Float(2, 4, strides=[4, 1], device=cpu) = aten::add(%b, %r, %1)
      %t : Float(2, 4, strides=[4, 1], device=cpu) = aten::mm(%x, %y)
      %u : Float(2, 4, strides=[4, 1], device=cpu) = aten::add(%t, %b, %2)
      return (%q, %s, %u)
"""
KNOWN_NUMBERS = """
    graph(%n : int, %m : int, %p : bool):
      %3 : int = prim::Constant[value=3]()
      %4 : int = prim::Constant[value=4]()
      %q : bool = aten::eq(%n, %3)
      %a : int = prim::If(%q)
        block0():
          %b : int = aten::add(%n, %m)
          -> (%b)
        block1():
          -> (%n)
      %r : bool = aten::ne(%m, %4)
      %c : int = prim::If(%r)
        block0():
          -> (%m)
        block1():
          %d : int = aten::mul(%m, %n)
          -> (%d)
      %e : int = aten::add(%a, %c)
      return (%e)
"""

CASES = [
    ("_jit_pass_refine_integer_values", KNOWN_NUMBERS),
    ("_jit_pass_remove_mutation", IN_PLACE),
    ("_jit_pass_remove_mutation", LIST_WRITES),
    ("_jit_pass_remove_inplace_ops", IN_PLACE),
    ("_jit_pass_fuse_linear", LINEAR),
    ("_jit_pass_erase_number_types", NUMBERS),
    ("_jit_pass_inplace_to_functional_activation", RELUS),
    ("_jit_pass_peephole", IDIOMS),
    ("_jit_pass_peephole", SHAPES),
    ("_jit_pass_loop_unrolling", RANGE),
    ("_jit_pass_loop_unrolling", UNREAD_RANGE),
    ("_jit_pass_loop_unrolling", WHILE),
    ("_jit_pass_constant_loop_unrolling", RANGE),
    ("_jit_pass_constant_propagation", ARITHMETIC),
    ("_jit_pass_constant_propagation", BRANCHES),
    ("_jit_pass_constant_propagation", LOOPS),
    ("_jit_pass_constant_propagation", LISTS),
    ("_jit_pass_constant_propagation_immutable_types", ARITHMETIC),
    ("_jit_pass_constant_propagation_immutable_types", BRANCHES),
    ("_jit_pass_constant_propagation_immutable_types", LISTS),
    ("_jit_pass_constant_pooling", BRANCHES),
    ("_jit_pass_cse", ARITHMETIC),
    ("_jit_pass_cse", MUTATED),
    ("_jit_pass_cse", BRANCHES),
    ("_jit_pass_dce", MUTATED),
    ("_jit_pass_dce_graph", MUTATED),
    ("_jit_pass_dce", UNUSED),
    ("_jit_pass_dce_allow_deleting_nodes_with_side_effects", UNUSED),
    ("_jit_pass_dce", LISTS),
    ("_jit_pass_lower_all_tuples", ALL_TUPLES),
    ("_jit_pass_lower_all_tuples", TUPLES),
    ("_jit_pass_remove_expands", EXPANDED),
    ("_jit_pass_decompose_ops", PRODUCTS),
]


CLEANED_CASES = [
    ("_jit_pass_fuse_addmm", SUMS_OF_PRODUCTS),
    ("_jit_pass_peephole_list_idioms", IDIOMS),
    ("_jit_pass_loop_unrolling", COUNTED),
    ("_jit_pass_constant_loop_unrolling", COUNTED),
]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_a_pass_gives_what_torch_gives(name, text):
    found, wanted = like_torch(name, text)
    assert found == wanted


@pytest.mark.parametrize(("name", "text"), CLEANED_CASES)
def test_a_pass_gives_what_torch_gives_but_for_what_is_left_to_clean(name, text):
    found, wanted = like_torch(name, text, cleaned=True)
    assert found == wanted
