"""Functions of TorchScript's language in eager code; the compiler has its own rule for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rushlight.jit.annotations import missing_content_message, type_from_python
from rushlight.jit.compiler import compiler
from rushlight.jit.emit.builtin_names import FormValue
from rushlight.jit.emit.python_values import FUNCTIONS
from rushlight.jit.runtime.futures import Future
from rushlight.jit.runtime.type_checks import is_instance


def annotate(the_type: object, the_value: object) -> object:
    """Return the value; scripted code assumes that it has the type, for instance `annotate(List[int], [])`."""
    return the_value


def is_scripting() -> bool:
    """Return False in eager; True in scripted code, where a condition on it selects the compiled branch."""
    return False


def fork(func: Callable, *args: object, **kwargs: object) -> Future:
    """Call a function; scripted code may run it concurrently with the code after it. The Future holds the result. In eager it
    is called at once."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> object:
    """Wait for the result of a forked call."""
    return future.wait()


def jit_isinstance(obj: object, target_type: object) -> bool:
    """Return whether an object has a type, also a container's with its element type: `isinstance(x, List[int])`.

    RuntimeError for anything but a TorchScript type, such as a container without an element type.
    """
    kinds = target_type if isinstance(target_type, tuple) else (target_type,)
    return any(is_instance(obj, _type_of(each)) for each in kinds)


def _type_of(annotation: object) -> object:
    if annotation in (list, dict, tuple) or getattr(annotation, "_name", None) in ("List", "Dict", "Tuple") and not getattr(
        annotation, "__args__", None
    ):  # fmt: skip
        raise RuntimeError(missing_content_message(getattr(annotation, "__name__", str(annotation))))
    found = type_from_python(annotation, compiler.class_type)
    if found is None:
        raise RuntimeError(f"{annotation!r} is not a type of TorchScript: it must be a type or a tuple of types")
    return found


def _unwrap_optional(x: object) -> object:
    """Return the value, which must not be None. AssertionError if it is."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


class Attribute(NamedTuple):
    """A value with its type, for an attribute of a module whose type can't be inferred: `self.x = Attribute([], List[int])`."""

    value: object
    type: object


for _function, _form in ((annotate, "annotate"), (fork, "fork"), (wait, "wait"), (jit_isinstance, "isinstance"),
                         (is_scripting, "is_scripting"), (_unwrap_optional, "unwrap")):  # fmt: skip
    FUNCTIONS[_function] = FormValue(_form)
