"""RemovableHandle: the result of registering a hook."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from typing import Any


class RemovableHandle:
    """Removes one hook from the dict that holds it.

    Args:
        hooks_dict: the dict from handle ids to hooks, held weakly.
        extra_dict: one dict, or several, in which the hook's id may also stand (flags of the hook).

    Also a context manager that removes the hook at the end of the block.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: OrderedDict, *, extra_dict: Any = None) -> None:
        self.id = next(self._ids)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._dicts = [weakref.ref(hooks) for hooks in (hooks_dict, *extra)]

    def remove(self) -> None:
        """Remove the hook; harmless when called again."""
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __getstate__(self) -> dict[str, Any]:
        return {"id": self.id, "dicts": [reference() for reference in self._dicts]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.id = state["id"]
        self._dicts = [weakref.ref(OrderedDict() if hooks is None else hooks) for hooks in state["dicts"]]
