"""The errors of reading and writing checkpoints."""

from __future__ import annotations

import pickle


class CheckpointError(RuntimeError):
    """The file is not a checkpoint, is damaged, or contradicts itself."""


class ScriptArchiveError(CheckpointError):
    """The file is a TorchScript archive."""


class UnpicklingError(pickle.UnpicklingError):
    """The pickle inside a checkpoint is malformed, or refers to something that a file of weights may not contain."""


class PicklingError(pickle.PicklingError):
    """An object cannot be written to a checkpoint."""


class SharedStorageError(PicklingError, RuntimeError):
    """Tensors of several dtypes share memory, which a checkpoint cannot represent."""
