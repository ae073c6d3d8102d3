"""`torch._dynamo.backends.debugging`: backends that run a graph as it is, and as aten operators."""

from rushlight.compiler.backends import eager, lookup_backend

__all__ = ["aot_eager", "eager"]

aot_eager = lookup_backend("aot_eager")
