"""Objects of the standard library from outside: what captures assume of them, and that they see when it changes."""

from __future__ import annotations

import gc
import types
import weakref

import rushlight as torch


def _counted(function):
    graphs = []
    return torch.compile(function, backend=lambda graph, inputs: graphs.append(graph) or graph, fullgraph=True), graphs


def test_a_weak_reference_that_dies():
    compiled, graphs = _counted(lambda reference, x: x.sin() if reference() is not None else x.cos())
    held, x = torch.ones(2), torch.ones(2)
    reference = weakref.ref(held)
    for _ in range(2):
        assert torch.equal(compiled(reference, x), x.sin())
    del held
    gc.collect()
    for _ in range(2):
        assert torch.equal(compiled(reference, x), x.cos())
    assert len(graphs) == 2


def test_a_weak_reference_to_an_argument():
    compiled, _ = _counted(lambda reference, x: (x + 1, reference() is x, weakref.ref(x)() is x))
    x = torch.ones(2)
    assert compiled(weakref.ref(x), x)[1:] == (True, True)
    other = torch.zeros(2)
    assert compiled(weakref.ref(other), x)[1:] == (False, True)


def test_a_variable_that_another_modules_function_changes():
    module = types.ModuleType("counting")
    exec("count = 0\ndef step(x):\n    global count\n    count += 1\n    return x + count", module.__dict__)
    compiled, _ = _counted(lambda x: module.step(x) * module.count)
    assert compiled(torch.ones(2)).tolist() == [2, 2] and module.count == 1
    assert compiled(torch.ones(2)).tolist() == [6, 6] and module.count == 2


def test_numbers_of_numpy_keep_their_kind():
    import numpy as np

    compiled, _ = _counted(lambda x, n: (x + n, n * 2))
    total, product = compiled(torch.ones(2), np.float32(2))
    assert total.dtype is torch.float32 and total.tolist() == [3, 3]
    assert type(product) is np.float32 and product == 4
    scaled, _ = _counted(lambda a, n: a * n)
    array = scaled(np.ones(2, np.float32), np.float64(2))
    assert array.dtype == (np.ones(2, np.float32) * np.float64(2)).dtype


def test_texts_of_functions_tell_them_apart():
    compiled, _ = _counted(lambda x, function: (x + 1, str(function)))
    for function in (len.__class__, lambda: 1, lambda: 2):
        assert compiled(torch.ones(2), function)[1] == str(function)
