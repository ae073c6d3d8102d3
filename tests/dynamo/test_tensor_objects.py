"""Tensors as objects in compiled functions: attributes that the program gives them, keys of dicts and sets, `id`."""

import collections

import pytest

import rushlight as torch


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def _whole(program):
    return torch.compile(program, fullgraph=True, backend="eager")


X = torch.arange(3.0)


def test_attributes_of_a_tensor_that_the_program_makes():
    def program(x):
        y = x + 1
        y.scale, y.tag, y.other = 3, "made", x * 2
        z = y.add_(1)
        return y * z.scale + z.other, y, getattr(y, "missing", 5), hasattr(y, "tag")

    product, y, missing, has_tag = _whole(program)(X)
    torch.testing.assert_close(product, (X + 2) * 3 + X * 2)
    assert (y.scale, y.tag, missing, has_tag) == (3, "made", 5, True)
    torch.testing.assert_close(y.other, X * 2)


def test_attributes_of_a_tensor_from_outside():
    def program(x):
        x.calls = getattr(x, "calls", 0) + 1
        x.last = x * 2
        return x + x.calls

    compiled, x = _whole(program), X.clone()
    for count in (1, 2, 3):
        torch.testing.assert_close(compiled(x), X + count)
        assert x.calls == count
        torch.testing.assert_close(x.last, X * 2)


def test_an_attribute_from_outside_is_guarded():
    compiled, x = _whole(lambda x: x * x.factor + x.offset), X.clone()
    for factor in (2, 3):
        x.factor, x.offset = factor, torch.ones(3) * factor
        torch.testing.assert_close(compiled(x), X * factor + factor)


def test_a_deleted_attribute_is_missing():
    def program(x):
        y = x * 2
        y.note = 1
        del y.note
        return hasattr(y, "note"), y

    has_note, y = _whole(program)(X)
    assert not has_note and not hasattr(y, "note")


def test_tensors_as_keys():
    def program(x):
        y = x + 1
        table = {x: 1, y: 2}
        table[y] += 5
        seen = {x, y, x}
        return x * table[x] + y * table[y], len(seen), x in seen, (x * 1) in table, table

    result, many, is_in, is_not, table = _whole(program)(X)
    torch.testing.assert_close(result, X + (X + 1) * 7)
    assert (many, is_in, is_not) == (2, True, False)
    first, second = table
    assert first is X and table[first] == 1 and table[second] == 7


def test_objects_as_keys():
    class Item:
        def __init__(self, value):
            self.value = value

    def program(x, item):
        made = Item(2)
        table = {item: x, made: x * made.value}
        return sum(key.value * value for key, value in table.items()), table

    item = Item(3)
    result, table = _whole(program)(X, item)
    torch.testing.assert_close(result, X * 3 + X * 4)
    assert table[item] is X and len(table) == 2


def test_id_tells_objects_apart():
    def program(x, y):
        z = x * 2
        ids = {id(x): 1, id(z): 2}
        same = id(x) == id(x) and id(x) != id(z)
        return z * ids[id(z)] + ids.get(id(y), 0), same, id(x) == id(y)

    result, same, is_one = _whole(program)(X, X + 1)
    torch.testing.assert_close(result, X * 4)
    assert same is True and is_one is False
    result, same, is_one = _whole(program)(X, X)
    torch.testing.assert_close(result, X * 4 + 1)
    assert is_one is True


def test_the_id_that_leaves_is_the_real_one():
    def program(x):
        y = x + 1
        return y, id(y), id(x)

    y, of_y, of_x = _whole(program)(X)
    assert (of_y, of_x) == (id(y), id(X))


def test_arithmetic_on_an_id_runs_in_python():
    compiled = torch.compile(lambda x: (x + 1, id(x) % 7), backend="eager")
    assert compiled(X)[1] == id(X) % 7


def test_a_dict_from_outside_with_tensors_for_keys():
    key, other = torch.ones(2), torch.ones(2)
    table = {key: 3}
    compiled = torch.compile(lambda x, k: x * table.get(k, 1), backend="eager")
    torch.testing.assert_close(compiled(X, key), X * 3)
    torch.testing.assert_close(compiled(X, other), X)


def test_tensors_of_tensors_are_copies():
    x = torch.ones(3, requires_grad=True)

    @torch.compile(fullgraph=True, backend="eager")
    def program(x):
        copied = torch.tensor(x, dtype=torch.float64)
        return copied * 2, copied.requires_grad, torch.tensor([1.0, 2.0], requires_grad=False)

    doubled, requires_grad, made = program(x)
    assert doubled.tolist() == [2.0] * 3 and not requires_grad and made.tolist() == [1.0, 2.0]


def test_instances_of_types_of_one_dtype():
    @torch.compile(fullgraph=True, backend="eager")
    def program(x):
        return x + 1, isinstance(x, torch.FloatTensor), isinstance(x, (int, torch.DoubleTensor))

    assert program(torch.ones(2))[1:] == (True, False)
    assert program(torch.ones(2, dtype=torch.float64))[1:] == (False, True)


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_dicts_from_keys(kind):
    @torch.compile(fullgraph=True, backend="eager")
    def program(x):
        made = kind.fromkeys(["a", "b"], 1)
        made["a"] = x + 1
        return made

    found = program(torch.ones(1))
    assert type(found) is kind and list(found) == ["a", "b"] and found["a"].item() == 2 and found["b"] == 1


@pytest.mark.parametrize("kind", [list, tuple, collections.deque])
def test_places_of_items_between_bounds(kind):
    @torch.compile(fullgraph=True, backend="eager")
    def program(x):
        values = kind([1, 2, 3, 4, 3])
        return x + values.index(3, 3) * 100 + values.index(3, -3, -1) * 10 + values.index(3, 0, 4)

    assert program(torch.zeros(1)).item() == 422


def test_exported_graphs_serve_other_sizes():
    graph, _ = torch._dynamo.export(lambda x: torch.split(x, x.shape[0] // 2, dim=0)[0], aten_graph=True)(torch.zeros(6, 4))
    assert graph(torch.ones(8, 4)).shape == (4, 4)
    fixed, _ = torch._dynamo.export(lambda x: x * 2, torch.ones(2), assume_static_by_default=True)
    assert fixed(torch.ones(2)).tolist() == [2.0, 2.0]


class Holder:
    @torch.compile(fullgraph=True, backend="eager")
    def scaled(self, x, wanted):
        return x * 2 if id(self) == wanted else x * 0


def test_ids_are_compared_with_numbers_of_the_caller():
    x, y, first, second = torch.ones(2), torch.ones(2), Holder(), Holder()
    wanted = id(first)
    assert first.scaled(x, wanted).tolist() == [2.0, 2.0]
    assert second.scaled(x, wanted).tolist() == first.scaled(x, 5).tolist() == [0.0, 0.0]
    assert first.scaled(x, wanted).tolist() == [2.0, 2.0]

    @torch.compile(fullgraph=True, backend="eager")
    def chosen(x, y, wanted):
        return x + 1 if wanted != id(y) else x + 2

    assert chosen(x, y, id(y)).tolist() == [3.0, 3.0] and chosen(x, torch.ones(2), id(y)).tolist() == [2.0, 2.0]


def test_the_id_of_an_object_that_the_program_makes_is_no_number():
    @torch.compile(fullgraph=True, backend="eager")
    def program(x, wanted):
        made = Holder()
        return x + 1 if id(made) == wanted else x

    with pytest.raises(torch._dynamo.exc.Unsupported, match="which the program made"):
        program(torch.ones(2), 3)
