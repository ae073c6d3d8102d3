"""The C structs behind tensors: fields and their types, lifetimes, cycles, subclasses, and bad input."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import rushlight as rl
from rushlight import _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import StorageImpl, allocate
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import AutogradMeta, TensorImpl, VersionCounter, ViewMeta
from rushlight.core.thread_state import state

pytestmark = pytest.mark.usefixtures("small_heap")

WRONG = (None, 1, "x", [1], object())


def make_impl(**changes) -> TensorImpl:
    fields = {
        "storage": allocate(24), "sizes": (2, 3), "strides": (3, 1), "storage_offset": 0, "element_type": rl.float32,
        "where": CPU, "key_set": CPU_KEYS,
    }  # fmt: skip
    return TensorImpl(**{**fields, **changes})


def test_an_impl_calculates_what_follows_from_its_fields():
    impl = make_impl()
    assert impl.numel == 6 and impl.is_contiguous() and not impl.requires_grad and impl.version.value == 0
    assert impl.autograd is None and impl.view is None and impl.data_ptr == impl.storage.data_ptr
    impl.strides = (1, 2)
    assert not impl.is_contiguous()
    impl.sizes, impl.storage_offset = (1, 2), 2
    assert impl.numel == 2 and impl.data_ptr == impl.storage.data_ptr + 8 and impl.array.strides == (4, 8)


@pytest.mark.parametrize("field", ["storage", "sizes", "strides", "version", "autograd", "view", "storage_offset"])
def test_fields_refuse_other_types(field):
    impl = make_impl()
    before = getattr(impl, field)
    optional = field in ("autograd", "view")
    for value in WRONG:
        if (value is None and optional) or (value == 1 and field == "storage_offset"):
            continue
        with pytest.raises(TypeError):
            setattr(impl, field, value)
    with pytest.raises((TypeError, AttributeError)):
        delattr(impl, field)
    assert getattr(impl, field) == before


@pytest.mark.parametrize(
    "changes", [{"sizes": [2, 3]}, {"strides": (1,)}, {"storage": 3}, {"version": 0}, {"key_set": "x"}, {"storage_offset": None}]
)
def test_an_impl_needs_fitting_arguments(changes):
    with pytest.raises(TypeError):
        make_impl(**changes)


def test_unknown_attributes_are_refused():
    for made in (make_impl(), allocate(8), VersionCounter(), AutogradMeta()):
        with pytest.raises(AttributeError):
            made.no_such_field = 1
        with pytest.raises(AttributeError):
            made.no_such_field  # noqa: B018


def test_fields_of_the_small_structs():
    meta = AutogradMeta(True)
    assert (meta.requires_grad, meta.grad, meta.grad_fn, meta.output_nr, meta.hooks) == (True, None, None, 0, None)
    view = ViewMeta(rl.ones(1), 3)
    assert (view.version, view.origin) == (3, "")
    with pytest.raises(TypeError, match="base must be a Tensor"):
        ViewMeta(1, 2)
    assert VersionCounter(4).value == 4
    with pytest.raises(TypeError):
        VersionCounter("x")


def test_sizes_too_large_for_any_memory():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        _C.empty_impl((1 << 40, 1 << 40), rl.float64)
    for kind in (RuntimeError, MemoryError, rl.OutOfMemoryError):
        with pytest.raises(kind, match="cannot allocate"):
            _C.empty_impl((1 << 50,), rl.float64)
    with pytest.raises(RuntimeError, match="negative dimension"):
        _C.empty_impl((2, -1), rl.float64)
    with pytest.raises(TypeError):
        _C.empty_impl([2], rl.float64)


def test_a_storage_keeps_its_memory_for_those_who_look():
    storage = allocate(16)
    array = storage.bytes()
    array[:] = 7
    address = storage.data_ptr
    storage.buffer = allocate(64).buffer
    assert storage.data_ptr != address and array.tolist() == [7] * 16
    del storage
    assert array.tolist() == [7] * 16


def test_an_impl_follows_its_storage_to_new_memory():
    x = rl.ones(4)
    assert x.tolist() == [1] * 4
    other = rl.zeros(4)
    x._impl.storage.buffer = other._impl.storage.buffer
    assert x.tolist() == [0] * 4 and x.data_ptr() == other.data_ptr()


def test_storages_can_be_derived_from():
    class Labelled(StorageImpl):
        def __init__(self, label: str):
            super().__init__(None, 8, CPU, 0)
            self.label = label

    made = Labelled("a")
    assert made.nbytes == 8 and made.buffer is None and made.label == "a" and made.data_ptr == 0
    with pytest.raises(ValueError, match="number of bytes"):
        StorageImpl(None, -1, CPU)
    with pytest.raises(ValueError, match="number of bytes"):
        made.nbytes = -1


def test_weak_references_end_with_their_objects():
    x = rl.ones(2)
    references = [weakref.ref(x), weakref.ref(x._impl), weakref.ref(x._impl.storage)]
    assert all(reference() is not None for reference in references)
    del x
    assert all(reference() is None for reference in references)


def test_cycles_through_attributes_and_graphs_are_collected():
    gc.collect()
    x = rl.ones(2, requires_grad=True)
    x.itself = x
    y = x * 2
    y.grad_fn.metadata["output"] = y
    x.register_hook(lambda grad, keep=y: None)
    references = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_subclasses_have_attributes_and_survive_copies():
    class Named(Tensor):
        label = "none"

    made = Named([1.0, 2.0])
    made.label = "mine"
    assert isinstance(made, Tensor) and made.label == "mine" and (made + 1).tolist() == [2, 3]
    assert copy.copy(made).tolist() == [1, 2] and copy.deepcopy(made).tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(rl.ones(3))).tolist() == [1] * 3
    assert {made: 1}[made] == 1 and hash(made) == hash(made)


def test_handles_without_memory_are_refused():
    empty = object.__new__(Tensor)
    for action in (lambda: empty + 1, lambda: empty.shape, lambda: rl.relu(empty), lambda: rl.ones(2) + empty):
        with pytest.raises((AttributeError, TypeError, RuntimeError)):
            action()
    with pytest.raises(TypeError, match="must be a TensorImpl"):
        empty._impl = 3
    with pytest.raises(TypeError, match="expected a TensorImpl"):
        _C.wrap(3)


def test_the_threads_state_is_per_thread_and_checked():
    with pytest.raises(TypeError, match="list"):
        state.modes = ()
    with pytest.raises(TypeError):
        state.include = "x"
    with pytest.raises(AttributeError):
        del state.exclude
    seen = []
    with rl.no_grad():
        thread = threading.Thread(target=lambda: seen.append((state.grad_enabled, state.modes, state.exclude)))
        thread.start()
        thread.join()
    assert seen == [(True, [], 0)]


def test_arrays_share_memory_whatever_their_layout():
    x = rl.arange(12.0).view(3, 4)
    for view in (x, x[1], x.t(), x[:, 1:3], x[::2]):
        array = view.numpy()
        array[...] = np.arange(array.size).reshape(array.shape)
        assert view.tolist() == array.tolist()


@pytest.mark.parametrize("name", [n for n in dir(_C) if isinstance(getattr(_C, n), type) and not n.startswith("_")])
def test_constructors_survive_nonsense(name):
    kind = getattr(_C, name)
    for arguments in ((), (1,), ("x", None), (None, None, None), ("add", 1), ((), 2, [], {}), (rl.ones(1),) * 3):
        try:
            made = kind(*arguments)
        except (TypeError, ValueError, AttributeError):
            continue
        for attribute in dir(made):
            if not attribute.startswith("__"):
                getattr(made, attribute, None)
