"""The older path of `torch.hub`'s weights."""

from convcore.compat.torch.hub import tqdm as tqdm
from convcore.hub import _get_torch_home as _get_torch_home
from convcore.hub import download_url_to_file as _download_url_to_file  # noqa: F401
from convcore.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
