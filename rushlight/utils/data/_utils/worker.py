"""`torch.utils.data._utils.worker`: what a worker of a data loader knows of itself."""

from rushlight.utils.data.worker import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
