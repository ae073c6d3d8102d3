"""The errors of distributed programs."""


class DistError(RuntimeError):
    """An error of distributed communication."""


class DistBackendError(DistError):
    """MPI failed, or ranks did not meet in a collective: the message names them."""


class DistNetworkError(DistError):
    """A store's server cannot be reached."""


class DistStoreError(DistError):
    """A store has no such key, or not in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue has no value to take."""
