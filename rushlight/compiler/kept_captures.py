"""Kept captures: captures of whole frames stored for other processes, which then need not follow the frame.

In: a frame whose code was not captured in this process yet, and the dependencies of its compilation. Out: the capture of
another process with its graph's plan and library, if everything it depended on is alike here; or nothing.
The cache key is made from the frame's code, the types of its values, and the library's version. `dynamo.kept_frames` compares a
capture with this process's objects.
"""

from __future__ import annotations

import marshal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight._C import GraphLaunch
from rushlight.compiler.aten import AtenGraph
from rushlight.compiler.kept_graphs import KeptGraph, NoData, are_same, targets_of, to_data
from rushlight.compiler.kept_plans import KeptPlans
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.dynamo.dynamic import History
from rushlight.dynamo.fingerprints import PLAIN_KINDS, name_of, of_code
from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.dynamo.handlers import ALLOWED_IN_GRAPH, SUBSTITUTED
from rushlight.dynamo.kept_frames import Kept, find
from rushlight.fx.graph_module import GraphModule
from rushlight.inductor import plan_cache
from rushlight.nn.modules.module import Module
from rushlight.utils.native import cache

keeping = LazyModule("rushlight.dynamo.keeping")

_MAX_DEPTH = 4  # the key ignores containers nested more deeply than this
_MAX_CAPTURES = 4  # stored captures per key; for example, models with different settings have one each


class KeptCaptures:
    """The captures of one frame in a cache entry. `graph_of` compiles a captured graph."""

    def __init__(self, frame: Any, path: Path, graph_of: Callable[[Callable[[], GraphModule]], AtenGraph]) -> None:
        self.frame = frame
        self.path = path
        self.graph_of = graph_of

    def find(self, history: History) -> GuardedCode | None:
        """Return a capture that fits the frame, and record in `history` what it met."""
        made = (self._load_record(record, history) for record in self._load_records())
        return next((found for found in made if found is not None), None)

    def _load_record(self, record: bytes, history: History) -> GuardedCode | None:
        """Rebuild the capture of a record, if its guards and its plan fit here; else return None."""
        described, plan, targets, graph = marshal.loads(record)
        kept = Kept(*described)
        found = find(kept, self.frame) if are_same(targets) else None
        if found is None:
            return None
        module = KeptGraph(graph, found.attributes)
        run = self.graph_of(module.module).resume(plan, module)
        if run is None:
            return None
        history.repeat(*kept.seen)
        return found.guarded(module, run)

    def keep(self, history: History, found: GuardedCode) -> None:
        """Keep a capture, if its graph has a kept plan and it holds in other processes."""
        plan = None if found.graph is None else found.graph.meta.get("kept_plan")
        if plan is None or type(found.globals[found.graph_name]) is not GraphLaunch:
            return
        try:
            kept = keeping.describe(self.frame.f_code, found, history)
            record = marshal.dumps((tuple(kept), plan, targets_of(found.graph), to_data(found.graph)))
        except (keeping.CannotKeep, NoData, ValueError):  # marshal raises ValueError for unknown objects
            return
        cache.keep(self.path, marshal.dumps([record, *self._load_records()[: _MAX_CAPTURES - 1]]))

    def _load_records(self) -> list[bytes]:
        """Return the stored captures, the latest first."""
        content = cache.read(self.path)
        return [] if content is None else marshal.loads(content)


def path_for(frame: Any, about: str, plans: KeptPlans) -> Path | None:
    """Return the cache file for a frame, by its code and its values' properties; None if captures are not kept. `about`
    describes further dependencies, such as settings."""
    if ALLOWED_IN_GRAPH or SUBSTITUTED:  # guards do not test the functions in these tables
        return None
    described = [f"{name}: {_describe_value(value)}" for name, value in frame.f_locals.items()]
    described += [_describe_value(content) for cell in frame.closure or () for content in _cell_contents(cell)]
    key = plans.name_of(f"{sys.version} {of_code(frame.f_code)} {about} {described}")
    return None if key is None else plan_cache.path_of(key, "capture")


def _cell_contents(cell: types.CellType) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # an empty cell
        return []


def _describe_value(value: object, depth: int = 0) -> str:
    """Return a value's properties that most guards test."""
    if isinstance(value, Tensor):
        impl = value._impl
        attributes = sorted(value.__dict__)  # mark_dynamic stores its marks there
        facts = f"{impl.dtype} {impl.sizes} {impl.strides} {impl.device} {impl.requires_grad}"
        return f"{type(value).__name__} {facts} {attributes}"
    if isinstance(value, Module) and "_modules" in value.__dict__:  # `_modules` is missing before Module.__init__ has run
        members = [(name_of(type(module)), module.training, _sizes(module)) for module in Module.modules(value)]
        return str(members)
    if type(value) in (list, tuple) and depth < _MAX_DEPTH:
        return f"{type(value).__name__} {[_describe_value(item, depth + 1) for item in value]}"
    if type(value) is dict and depth < _MAX_DEPTH:
        return str([(_describe_value(key, depth + 1), _describe_value(item, depth + 1)) for key, item in value.items()])
    return repr(value) if type(value) in PLAIN_KINDS else name_of(type(value))


def _sizes(module: Module) -> list[tuple[int, ...]]:
    return [tensor._impl.sizes for tensor in module._parameters.values() if tensor is not None]
