"""Modules of settings under PyTorch's names, such as `torch._dynamo.config`.

Each module lists its settings. Settings with an effect here have functions to read and write them. Those whose work is always
done here, or never, are stored without effect. Other names are errors, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.compiler.settings import configure, configured, from_environment
from rushlight.dynamo.rules import RULES


class Setting(NamedTuple):
    """One setting of a module: the functions that read and write it."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


def compiler_setting(name: str) -> Setting:
    """Return a field of `Settings`, for all compiled functions that were not given a value of their own."""
    return Setting(lambda: getattr(configured(from_environment()), name), lambda value: configure(name, value))


def capture_rule(name: str) -> Setting:
    """Return a boolean field of `Rules`."""
    return Setting(lambda: getattr(RULES, name), lambda value: setattr(RULES, name, bool(value)))


def without_effect(default: Any) -> Setting:
    """Return a setting that is stored but has no effect."""
    kept = [default]
    return Setting(lambda: kept[0], lambda value: kept.__setitem__(0, value))


class _Section:
    """The settings of a module with a common prefix: `config.cpp.threads`."""

    def __init__(self, module: ConfigModule, prefix: str) -> None:
        object.__setattr__(self, "_place", (module, prefix))

    def __getattr__(self, name: str) -> Any:
        module, prefix = self._place
        return getattr(module, prefix + name)

    def __setattr__(self, name: str, value: Any) -> None:
        module, prefix = self._place
        setattr(module, prefix + name, value)


class ConfigModule(types.ModuleType):
    """A module whose attributes are settings. AttributeError for other names."""

    _settings: dict[str, Setting]
    _deleted: set[str]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `import` and `copy` look for such attributes
            raise AttributeError(name)
        found = self._settings.get(name)
        if found is not None and name not in self._deleted:
            return found.read()
        if any(known.startswith(f"{name}.") for known in self._settings):
            return _Section(self, f"{name}.")
        raise AttributeError(f"{self.__name__}.{name} does not exist")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        elif name in self._settings:
            self._settings[name].write(value)
            self._deleted.discard(name)
        else:
            raise AttributeError(f"{self.__name__}.{name} does not exist")

    def __delattr__(self, name: str) -> None:
        """Hide a setting until it is set again, as `unittest.mock.patch.object` does before it sets the old value."""
        getattr(self, name)
        self._deleted.add(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._settings})

    def patch(self, changes: str | dict[str, Any] | None = None, value: Any = None, **named: Any) -> ConfigPatch:
        """Set other values in a `with` block, in calls of a decorated function, or during the tests of a decorated TestCase:
        `patch("name", 1)`, `patch(name=1)`, `patch({"name": 1})`."""
        return ConfigPatch(self, {changes: value} if isinstance(changes, str) else {**(changes or {}), **named})

    def get_config_copy(self) -> dict[str, Any]:
        """Return all settings with their values; those of sections have names like "cpp.threads"."""
        return {name: copy.deepcopy(setting.read()) for name, setting in self._settings.items()}

    to_dict = shallow_copy_dict = get_config_copy

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Set the values that `save_config` or `get_config_copy` returned. AttributeError for unknown names."""
        given = maybe_pickled_config
        for name, value in (json.loads(given) if isinstance(given, bytes) else given).items():
            setattr(self, name, value)

    def save_config(self) -> bytes:
        """Return all settings as bytes, which `load_config` reads."""
        return json.dumps(self.get_config_copy()).encode()


class ConfigPatch(contextlib.ContextDecorator):
    """Other values for settings of a module, from entry to exit. AttributeError for unknown names."""

    def __init__(self, module: ConfigModule, changes: dict[str, Any]):
        self._module = module
        self._changes = changes
        self._before: list[dict[str, Any]] = []
        for name in changes:
            getattr(module, name)

    def __enter__(self) -> None:
        self._before.append({name: getattr(self._module, name) for name in self._changes})
        for name, value in self._changes.items():
            setattr(self._module, name, value)

    def __exit__(self, *error: object) -> None:
        for name, value in self._before.pop().items():
            setattr(self._module, name, value)

    def __call__(self, func: Any) -> Any:
        """Decorate a function or a class of tests. TypeError for other classes."""
        if not isinstance(func, type):
            return super().__call__(func)
        tests = sys.modules.get("unittest")
        if tests is None or not issubclass(func, tests.TestCase):
            raise TypeError(f"patch() decorates functions and subclasses of unittest.TestCase, got the class {func.__name__}")
        patch = self

        class Patched(func):
            @classmethod
            def setUpClass(cls) -> None:
                patch.__enter__()
                try:
                    super().setUpClass()
                except BaseException:
                    patch.__exit__()
                    raise

            @classmethod
            def tearDownClass(cls) -> None:
                try:
                    super().tearDownClass()
                finally:
                    patch.__exit__()

        Patched.__name__, Patched.__qualname__, Patched.__module__ = func.__name__, func.__qualname__, func.__module__
        return Patched


def install(name: str, settings: dict[str, Setting]) -> None:
    """Turn the imported module `name` into a module of settings."""
    module = sys.modules[name]
    module.__dict__.update(_settings=settings, _deleted=set())
    module.__class__ = ConfigModule
