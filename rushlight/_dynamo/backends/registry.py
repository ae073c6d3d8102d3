"""`torch._dynamo.backends.registry`: backends by name."""

from rushlight.compiler.backends import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
