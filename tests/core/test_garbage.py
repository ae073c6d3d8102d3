"""Objects that a program keeps are passed over by the next searches for garbage, which still find what is garbage later."""

from __future__ import annotations

import gc
import weakref

import pytest

from rushlight.core.garbage import keep_new_objects


class Item:
    pass


@pytest.fixture(autouse=True)
def searched_by_hand():
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.skipif(gc.get_freeze_count() > 0, reason="this interpreter begins with frozen objects")
def test_new_objects_are_old_afterwards():
    item = Item()
    item.itself = item
    gone = weakref.ref(item)
    keep_new_objects()
    assert any(found is item for found in gc.get_objects(2)) and not any(found is item for found in gc.get_objects(0))
    del item
    gc.collect(1)
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    before = gc.get_freeze_count()
    keep_new_objects()
    assert 0 < gc.get_freeze_count() <= before
