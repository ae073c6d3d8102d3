"""`torch.distributed.rpc`: calls of functions in other processes. The names are here; using one raises."""

from rushlight.core.absent import absent_class, absent_function

_FUNCTIONS = ("get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown")
_CLASSES = ("BackendType", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo")
__all__ = ["is_available", *_FUNCTIONS, *_CLASSES]
globals().update({name: absent_function(f"torch.distributed.rpc.{name}") for name in _FUNCTIONS})
globals().update({name: absent_class(f"torch.distributed.rpc.{name}") for name in _CLASSES})


def is_available() -> bool:
    """Return whether processes can call each other's functions: never."""
    return False
