"""`torch.utils.model_zoo`: the old names of `torch.hub`'s functions for downloading weights."""

from rushlight.hub import download_url_to_file as _download_url_to_file
from rushlight.hub import load_state_dict_from_url, tqdm

load_url = load_state_dict_from_url

__all__ = ["_download_url_to_file", "load_state_dict_from_url", "load_url", "tqdm"]
