"""Convolutional nets under torchvision's names, so that its checkpoints load by name.

Modules, parameters, initial values and printed forms are torchvision's; U-Net's names are those of
the brain segmentation net on PyTorch's hub. Nothing is downloaded: ``load_state_dict`` takes what
`convcore.load` reads of a checkpoint.

Every function takes ``library=``, the library whose ``nn`` the net is made of: convcore by default;
``resnet18(library=torch)`` is the same net of PyTorch's modules.
"""

from convcore.models.autoencoder import Autoencoder, Decoder, Encoder, autoencoder
from convcore.models.lenet import LeNet, lenet
from convcore.models.mobilenet import MobileNetV2, mobilenet_v2
from convcore.models.resnet import (
    ResNet,
    SmallResNet,
    resnet8,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
)
from convcore.models.unet import UNet, unet
from convcore.models.vgg import (
    VGG,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)

__all__ = [
    "VGG",
    "Autoencoder",
    "Decoder",
    "Encoder",
    "LeNet",
    "MobileNetV2",
    "ResNet",
    "SmallResNet",
    "UNet",
    "autoencoder",
    "lenet",
    "mobilenet_v2",
    "resnet8",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "unet",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]
