"""`torch.utils.weak`: dictionaries whose entries go with tensors."""

from __future__ import annotations

import gc

import pytest

import rushlight as torch
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary

pytestmark = pytest.mark.usefixtures("small_heap")


def test_entries_go_with_their_keys():
    kept, gone = torch.ones(2), torch.ones(2)
    found = WeakTensorKeyDictionary({kept: 1})
    found[gone] = 2
    assert len(found) == 2 and found[gone] == 2 and kept in found and torch.ones(2) not in found
    del gone
    gc.collect()
    assert len(found) == 1 and list(found.items()) == [(kept, 1)] and len(found.keyrefs()) == 1
    del found[kept]
    assert not found and found.get(kept) is None and 3 not in found


def test_keys_are_found_by_identity():
    class Same:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    one, other = Same(), Same()
    found = WeakIdKeyDictionary()
    found[one], found[other] = 1, 2
    assert (found[one], found[other]) == (1, 2) and WeakIdRef(one) != WeakIdRef(other) and WeakIdRef(one) == WeakIdRef(one)
    extended = found | WeakIdKeyDictionary({one: 3})
    assert found.copy() == found and extended != found and (extended[one], extended[other]) == (3, 2)


def test_references_to_tensors():
    x = torch.ones(2)
    reference = TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None
    with pytest.raises(AssertionError, match="expected torch.Tensor"):
        TensorWeakRef(1)
