"""Trees of containers."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from rushlight.core.pytree import tree_flatten, tree_map


def test_dicts_of_several_kinds_fit_each_other():
    other = OrderedDict(b={"c": 4}, a=3)
    made = tree_map(lambda left, right: (left, right), {"a": 1, "b": OrderedDict(c=2)}, other)
    assert made == {"a": (1, 3), "b": OrderedDict(c=(2, 4))} and type(made["b"]) is OrderedDict


@pytest.mark.parametrize("other", [[1, 2], {"a": 1}, {"a": 1, "c": 2}])
def test_other_containers_do_not(other):
    with pytest.raises(ValueError, match="expected"):
        tree_flatten({"a": 1, "b": 2})[1].flatten_up_to(other)
