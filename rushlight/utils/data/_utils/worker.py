"""`torch.utils.data._utils.worker`: information about a data loader's worker."""

from rushlight.utils.data.worker import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
