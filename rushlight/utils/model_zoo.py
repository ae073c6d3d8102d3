"""`torch.utils.model_zoo`: weights by their address, under the former name of `torch.hub`'s functions."""

from rushlight.hub import download_url_to_file as _download_url_to_file
from rushlight.hub import load_state_dict_from_url, tqdm

load_url = load_state_dict_from_url

__all__ = ["_download_url_to_file", "load_state_dict_from_url", "load_url", "tqdm"]
