"""Programs: objects as other packages define them: attributes resolved by classes, metaclasses, foreign iterators, assigned
class attributes, context variables, warnings and log records, cached functions, copies."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import inspect
import logging
import typing
import warnings

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])


# Attributes


class Renamed:
    """A configuration whose attributes have other names."""

    attribute_map = {"width": "hidden_size"}
    scale = 3

    def __init__(self):
        self.hidden_size = 4
        self.deep = {"layers": 2}

    def __getattribute__(self, key):
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        return super().__getattribute__(key)

    def __setattr__(self, key, value):
        if key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        super().__setattr__(key, value)


class Falling(Renamed):
    def __getattr__(self, key):
        if key.startswith(("no_", "__")):
            raise AttributeError(key)
        return len(key)

    @property
    def broken(self):
        raise AttributeError("inside")


CONFIG, FALLING = Renamed(), Falling()


@one(x)
def getattribute_renames(a):
    return a * CONFIG.width + CONFIG.scale + CONFIG.deep["layers"]


@one(x)
def setattr_renames(a):
    CONFIG.width = CONFIG.width + 1
    return a * CONFIG.hidden_size


@one(x)
def getattribute_falls_back_to_getattr(a):
    return a * FALLING.missing + FALLING.width, hasattr(FALLING, "no_such"), getattr(FALLING, "no_other", 7)


@one(x)
def a_property_that_raises_falls_back_to_getattr(a):
    return a * FALLING.broken


@one(x)
def getattribute_of_a_new_object(a):
    made = Renamed()
    made.width = 9
    return a * made.hidden_size, vars(made)["hidden_size"]


class Meta(type):
    registry = {"a": 2, "b": 5}

    def __getitem__(cls, key):
        return cls.registry[key]

    def __len__(cls):
        return len(cls.registry)

    def __iter__(cls):
        return iter(cls.registry)

    def __instancecheck__(cls, instance):
        return hasattr(instance, "hidden_size")

    @property
    def total(cls):
        return sum(cls.registry.values())


class WithMeta(metaclass=Meta):
    level = 1


@one(x)
def metaclass_answers(a):
    return a * WithMeta["b"] + len(WithMeta) + WithMeta.total, list(WithMeta)


@one(x)
def metaclass_checks_instances(a):
    return a * 2 if isinstance(CONFIG, WithMeta) and not isinstance(3, WithMeta) else a


# Objects on built-in containers, from outside


class Registry(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def get(self, key, default=None):
        return super().get(key.lower(), default)


class Reversing(list):
    def __getitem__(self, index):
        return super().__getitem__(len(self) - 1 - index)


class Tagged(tuple):
    def tagged(self):
        return self[0] * 10


class Named(str):
    def twice(self):
        return self + self


class Output(collections.OrderedDict):
    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]


def registry(**items):
    made = Registry()
    for name, value in items.items():
        made[name] = value
    return made


@one(x, registry(A=2, b=torch.ones(3)))
def dict_subclass_from_outside(a, found):
    found["C"] = 4
    return a * found.get("a") + found["b"] + len(found), sorted(found)


@one(x, Reversing([1, 2, 5]))
def list_subclass_from_outside(a, found):
    found.append(7)
    return a * found[0] + found[3], list(found)


@one(x, Tagged((3, torch.ones(3))), Named("ab"))
def tuple_and_text_subclasses_from_outside(a, found, name):
    return a * found.tagged() + found[1], name.twice()


@one(x, Output(first=torch.ones(3), second=2))
def ordered_dict_subclass_from_outside(a, found):
    return a * found["second"] + found[0], list(found)


# Iterators


@one(x, iter([1, 2, 3, 4]))
def next_of_a_list_iterator(a, iterator):
    return a * next(iterator) + next(iterator), iterator


@one(x, iter((torch.ones(3), torch.zeros(3))))
def next_of_a_tuple_iterator(a, iterator):
    a = a + next(iterator)
    return a, next(iterator), next(iterator, None), next(iterator, 5)


@one(x, iter(range(4)))
def next_of_a_range_iterator(a, iterator):
    a = a * next(iterator) + next(iterator)
    for value in iterator:
        a = a + value
        break
    return a


# Attributes of classes


class Counted:
    calls = 0
    last = None


class Inheriting(Counted):
    pass


@one(x)
def class_attributes_are_set(a):
    Counted.calls = 3
    Counted.calls += 1
    found = a * Counted.calls + Inheriting.calls + Inheriting().calls
    seen = Counted.calls
    Counted.calls = 0
    return found, seen


@one(x)
def a_new_class_attribute(a):
    Counted.last = [1, 2]
    seen = Inheriting.last
    Counted.last = None
    return a + len(seen)


# Context variables

current = contextvars.ContextVar("current")
level_variable = contextvars.ContextVar("level", default=2)


@contextlib.contextmanager
def at_level(value):
    token = level_variable.set(value)
    try:
        yield value
    finally:
        level_variable.reset(token)


@one(x)
def context_variables_are_read(a):
    try:
        current.get()
    except LookupError:
        a = a + 1
    return a * level_variable.get() + current.get(5)


@one(x)
def context_variables_are_set_and_reset(a):
    with at_level(7) as level:
        a = a * level_variable.get() + level
    token = current.set("there")
    seen = current.get()
    current.reset(token)
    return a + level_variable.get(), seen


# Warnings and log records

logger = logging.getLogger(__name__)


@one(x)
def warns(a):
    with_helper(2)
    warnings.warn("deprecated", FutureWarning)
    return a + 1


def with_helper(level):
    warnings.warn("a helper", stacklevel=level)


@one(x)
def logs_nothing(a):
    logger.debug("nothing %s", "here")
    if logger.isEnabledFor(logging.DEBUG):
        return a
    return a + 1


@one(x)
def logs(a):
    logger.error("something %d", 3)
    return a + 1


# Cached functions, copies, signatures


@functools.lru_cache
def table(count):
    return [index * 2 for index in range(count)]


@functools.cache
def doubled(a):
    return a * 2


@one(x)
def cached_functions(a):
    return a * table(3)[2] + doubled(4), table(3) is table(3), table.__wrapped__(2)


@dataclasses.dataclass
class Settings:
    sizes: list
    inner: dict = dataclasses.field(default_factory=dict)


SETTINGS = Settings([1, 2], {"deep": [3]})


@one(x)
def deep_copies(a):
    made = copy.deepcopy(SETTINGS)
    made.inner["deep"].append(4)
    made.sizes = SETTINGS.sizes
    return a * len(made.inner["deep"]) + len(SETTINGS.inner["deep"]), made.sizes is SETTINGS.sizes, made


@one(x)
def shared_parts_are_copied_once(a):
    part = [1]
    made = copy.deepcopy({"one": part, "other": part, "config": CONFIG})
    made["one"].append(2)
    return a * len(made["other"]) + made["config"].width


@one(x)
def shallow_copies(a):
    made = copy.copy(SETTINGS)
    made.sizes.append(5)
    made.inner = None
    seen = len(SETTINGS.sizes)
    SETTINGS.sizes.pop()
    return a + seen, made.inner


def with_defaults(a, b: int = 2, *, c: typing.Optional[int] = None):
    return a * b


@one(x)
def signatures(a):
    found = inspect.signature(with_defaults).parameters
    names = [name for name, parameter in found.items() if parameter.default is not inspect.Parameter.empty]
    return a * len(found), names, typing.get_args(typing.Union[int, str]), typing.get_origin(list[int])


# Generators that are left


def until_missing(values):
    try:
        index = 0
        while True:
            yield values[index]
            index += 1
    except IndexError:
        return


@one(x)
def a_generator_is_left_inside_of_try(a):
    return a + 1 if any(value > 1 for value in until_missing([1, 2, 3])) else a
