"""Writes to what the backward pass needs, where they are allowed."""

import pytest

import rushlight as torch
from rushlight.autograd.graph import allow_mutation_on_saved_tensors


def _through(a):
    b = a.clone()
    out = (b**2).sum() + b[:1].exp().sum()
    b[1:].mul_(10)
    b.sin_()
    return out


def test_gradients_are_those_of_the_elements_before_the_write():
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _through(a).backward()
    with allow_mutation_on_saved_tensors() as copies:
        (found,) = torch.autograd.grad(_through(a), a)
        assert not copies.cloned
    torch.testing.assert_close(found, torch.tensor([2.0 + torch.e, 4.0, 6.0]))


def test_a_copy_is_made_once_and_lives_as_long_as_it_is_needed():
    with allow_mutation_on_saved_tensors() as copies:
        a = torch.ones(2, requires_grad=True).clone()
        first, second = a**2, a**3
        a.sin_()
        assert len(copies.cloned) == 1
        third = a**2
        a.sin_()
        assert len(copies.cloned) == 2
        del first, second
        assert len(copies.cloned) == 1
        del third
        assert not copies.cloned
        a.sin_()
        assert not copies.cloned


def test_out_is_a_write():
    with allow_mutation_on_saved_tensors():
        a, b = torch.ones(2, requires_grad=True), torch.ones(2) * 3
        product = a * b
        torch.sin(torch.ones(2), out=b)
        product.sum().backward()
    torch.testing.assert_close(a.grad, torch.full((2,), 3.0))


def test_the_backward_pass_belongs_into_the_block():
    with allow_mutation_on_saved_tensors():
        out = (torch.ones(2, requires_grad=True) ** 2).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        out.backward()
