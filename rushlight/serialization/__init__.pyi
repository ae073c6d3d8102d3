from rushlight.serialization.errors import CheckpointError as CheckpointError
from rushlight.serialization.errors import PicklingError as PicklingError
from rushlight.serialization.errors import UnpicklingError as UnpicklingError
from rushlight.serialization.loading import load as load
from rushlight.serialization.safetensors import load_safetensors as load_safetensors
from rushlight.serialization.safetensors import save_safetensors as save_safetensors
from rushlight.serialization.saving import save as save
