"""`torch._inductor.compile_fx`: native code for graphs of the user's, as a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.compiler.backends import make_backend, native
from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import Settings, configured, from_environment
from rushlight.fx.graph_module import GraphModule

__all__ = ["compile_fx", "compile_fx_inner"]


def compile_fx(model_: GraphModule, example_inputs_: Sequence[Any], **_: Any) -> Callable:
    """The backend "inductor" for a captured graph: aot, then native code."""
    settings = _settings()
    return make_backend("inductor", settings, dict, StageLog(settings, "compile_fx"))(model_, list(example_inputs_))


def compile_fx_inner(gm: GraphModule, example_inputs: Sequence[Any], **_: Any) -> Callable[..., tuple]:
    """Native code for a graph of aten operators, such as `make_fx` and `aot_function` make: tensors in, a tuple out."""
    settings = _settings()
    return native(gm, settings, StageLog(settings, "compile_fx_inner"))


def _settings() -> Settings:
    return configured(from_environment())
