"""Convolutional nets under torchvision's names, so that its checkpoints load by name.

Modules, parameters, initial values and printed forms are torchvision's; U-Net's names are those of
the brain segmentation net on PyTorch's hub. Weights are random, and nothing is downloaded:
``load_state_dict`` takes what `convcore.load` reads of a checkpoint.

Every function takes ``library=``, the library whose ``nn`` the net is made of: convcore by default;
``resnet18(library=torch)`` is the same net of PyTorch's modules.
"""

from typing import TYPE_CHECKING, Any

from convcore._errors import hinted as _hinted
from convcore._errors import hints as _hints
from convcore._errors import names as _names
from convcore.models.autoencoder import *
from convcore.models.lenet import *
from convcore.models.mobilenet import *
from convcore.models.resnet import *
from convcore.models.unet import *
from convcore.models.vgg import *

if not TYPE_CHECKING:  # type checkers find misspelt names themselves

    def __getattr__(name: str) -> Any:
        hint = _hints.NO_DOWNLOAD if name.endswith("_Weights") else ""
        if name in ("get_model", "list_models"):
            hint = "a net is made by its function: getattr(models, 'resnet18')()"
        raise _hinted(_names.missing_name(__name__, name), hint)
