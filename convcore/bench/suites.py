"""Layers of published nets, under the names that they have in torchvision, and layers by kind.

Sizes are those of the nets' usual input (224 x 224 colour images; 28 x 28 digits for LeNet, 256 x
256 for U-Net).  Batches are chosen so that a layer takes milliseconds.  A net's suite has each of
its shapes once, under the first name that has it.

References
----------
ResNet-50: He, Zhang, Ren & Sun 2016, arXiv 1512.03385, table 1 (stride in the 3x3, as torchvision).
VGG-16: Simonyan & Zisserman 2015, arXiv 1409.1556, table 1, column D.
MobileNetV2: Sandler et al. 2018, arXiv 1801.04381, table 2.
U-Net: Ronneberger, Fischer & Brox 2015, arXiv 1505.04597, figure 1; half as wide, padded.
LeNet-5: LeCun, Bottou, Bengio & Haffner 1998, Proc. IEEE 86(11), section II.B (all maps connected).
AlexNet: Krizhevsky, Sutskever & Hinton 2012, section 3.5.  ResNeXt: Xie et al. 2017, arXiv
1611.05431, table 1.  EfficientNet: Tan & Le 2019, arXiv 1905.11946, table 1.  ConvNeXt: Liu et al.
2022, arXiv 2201.03545, table 9.  ViT: Dosovitskiy et al. 2021, arXiv 2010.11929, table 1.
DeepLabV3: Chen et al. 2017, arXiv 1706.05587, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from convcore.bench.layers import Layer, parse_layer
from convcore.bench.real_layers import LINES

# Sweeps of one size with the rest held: what `convcore.bench.results.growths` fits a power to.
BATCHES = (1, 2, 4, 8, 16, 32, 64)
SIDES = (14, 28, 56, 112, 224)
_SHAPES = {"3x3 64": "64,{0},{0},64,3,1,1", "1x1 64-256": "64,{0},{0},256,1"}
SWEEPS: dict[str, tuple[str, ...]] = {
    **{
        f"{name} @28, over N": tuple(f"{n},{shape.format(28)}" for n in BATCHES)
        for name, shape in _SHAPES.items()
    },
    **{
        f"{name}, N=1, over H*W": tuple(f"1,{shape.format(side)}" for side in SIDES)
        for name, shape in _SHAPES.items()
    },
}

_SPECS = {
    "quick": {
        "ResNet-50 conv1": "1,3,224,224,64,7,2,3",
        "ResNet-50 layer1.0.conv2": "2,64,56,56,64,3,1,1",
        "ResNet-50 layer1.0.conv3": "2,64,56,56,256,1",
        "ResNet-50 layer2.0.conv2": "2,128,56,56,128,3,2,1",
        "ResNet-50 layer3.0.downsample": "2,512,28,28,1024,1,2",
        "ResNet-50 layer4.1.conv2": "2,512,7,7,512,3,1,1",
        "VGG-16 features.2": "1,64,224,224,64,3,1,1",
        "VGG-16 features.24": "1,512,14,14,512,3,1,1",
        "MobileNetV2 features.3 expand": "2,24,56,56,144,1",
        "MobileNetV2 features.3 depthwise": "2,144,56,56,144,3,1,1,1,144",
        "LeNet conv1": "32,1,28,28,6,5,1,2",
        "LeNet conv2": "32,6,14,14,16,5",
    },
    "table": {
        "7x7 s2 3-64 @224": "8,3,224,224,64,7,2,3",
        "3x3 64 @56": "8,64,56,56,64,3,1,1",
        "1x1 64-256 @56": "8,64,56,56,256,1",
        "1x1 256-64 @56": "8,256,56,56,64,1",
        "3x3 128 @28": "8,128,28,28,128,3,1,1",
        "3x3 s2 128 @56": "8,128,56,56,128,3,2,1",
        "1x1 512-128 @28": "8,512,28,28,128,1",
        "3x3 256 @14": "8,256,14,14,256,3,1,1",
        "3x3 512 @7": "8,512,7,7,512,3,1,1",
        "1x1 s2 1024-2048 @14": "8,1024,14,14,2048,1,2",
        "3x3 64 @224, N=2": "2,64,224,224,64,3,1,1",
        "3x3 3-64 @224, N=2": "2,3,224,224,64,3,1,1",
        "depthwise 3x3 144 @56": "8,144,56,56,144,3,1,1,1,144",
        "5x5 s2 128-256 @32": "8,128,32,32,256,5,2,2",
        "3x3 dilation 2 256 @28": "8,256,28,28,256,3,1,2,2",
        "5x5 1-32 @28, N=64": "64,1,28,28,32,5,1,2",
        "3x3 groups=32 128 @56": "8,128,56,56,128,3,1,1,1,32",
        "3x3 64 @56, N=1": "1,64,56,56,64,3,1,1",
        "3x3 512 @7, N=1": "1,512,7,7,512,3,1,1",
    },
    "resnet50": {
        "ResNet-50 conv1": "8,3,224,224,64,7,2,3",
        "ResNet-50 layer1.0.conv1": "8,64,56,56,64,1",
        "ResNet-50 layer1.0.conv2": "8,64,56,56,64,3,1,1",
        "ResNet-50 layer1.0.conv3": "8,64,56,56,256,1",
        "ResNet-50 layer1.1.conv1": "8,256,56,56,64,1",
        "ResNet-50 layer2.0.conv1": "8,256,56,56,128,1",
        "ResNet-50 layer2.0.conv2": "8,128,56,56,128,3,2,1",
        "ResNet-50 layer2.0.conv3": "8,128,28,28,512,1",
        "ResNet-50 layer2.0.downsample": "8,256,56,56,512,1,2",
        "ResNet-50 layer2.1.conv1": "8,512,28,28,128,1",
        "ResNet-50 layer2.1.conv2": "8,128,28,28,128,3,1,1",
        "ResNet-50 layer3.0.conv1": "8,512,28,28,256,1",
        "ResNet-50 layer3.0.conv2": "8,256,28,28,256,3,2,1",
        "ResNet-50 layer3.0.conv3": "8,256,14,14,1024,1",
        "ResNet-50 layer3.0.downsample": "8,512,28,28,1024,1,2",
        "ResNet-50 layer3.1.conv1": "8,1024,14,14,256,1",
        "ResNet-50 layer3.1.conv2": "8,256,14,14,256,3,1,1",
        "ResNet-50 layer4.0.conv1": "8,1024,14,14,512,1",
        "ResNet-50 layer4.0.conv2": "8,512,14,14,512,3,2,1",
        "ResNet-50 layer4.0.conv3": "8,512,7,7,2048,1",
        "ResNet-50 layer4.0.downsample": "8,1024,14,14,2048,1,2",
        "ResNet-50 layer4.1.conv1": "8,2048,7,7,512,1",
        "ResNet-50 layer4.1.conv2": "8,512,7,7,512,3,1,1",
    },
    "vgg16": {
        "VGG-16 features.0": "2,3,224,224,64,3,1,1",
        "VGG-16 features.2": "2,64,224,224,64,3,1,1",
        "VGG-16 features.5": "2,64,112,112,128,3,1,1",
        "VGG-16 features.7": "2,128,112,112,128,3,1,1",
        "VGG-16 features.10": "2,128,56,56,256,3,1,1",
        "VGG-16 features.12": "2,256,56,56,256,3,1,1",
        "VGG-16 features.17": "2,256,28,28,512,3,1,1",
        "VGG-16 features.19": "2,512,28,28,512,3,1,1",
        "VGG-16 features.24": "2,512,14,14,512,3,1,1",
    },
    "mobilenetv2": {
        "MobileNetV2 features.0": "8,3,224,224,32,3,2,1",
        "MobileNetV2 features.1 depthwise": "8,32,112,112,32,3,1,1,1,32",
        "MobileNetV2 features.1 project": "8,32,112,112,16,1",
        "MobileNetV2 features.2 expand": "8,16,112,112,96,1",
        "MobileNetV2 features.2 depthwise": "8,96,112,112,96,3,2,1,1,96",
        "MobileNetV2 features.2 project": "8,96,56,56,24,1",
        "MobileNetV2 features.3 expand": "8,24,56,56,144,1",
        "MobileNetV2 features.3 depthwise": "8,144,56,56,144,3,1,1,1,144",
        "MobileNetV2 features.3 project": "8,144,56,56,24,1",
        "MobileNetV2 features.4 depthwise": "8,144,56,56,144,3,2,1,1,144",
        "MobileNetV2 features.4 project": "8,144,28,28,32,1",
        "MobileNetV2 features.5 expand": "8,32,28,28,192,1",
        "MobileNetV2 features.5 depthwise": "8,192,28,28,192,3,1,1,1,192",
        "MobileNetV2 features.5 project": "8,192,28,28,32,1",
        "MobileNetV2 features.7 depthwise": "8,192,28,28,192,3,2,1,1,192",
        "MobileNetV2 features.7 project": "8,192,14,14,64,1",
        "MobileNetV2 features.8 expand": "8,64,14,14,384,1",
        "MobileNetV2 features.8 depthwise": "8,384,14,14,384,3,1,1,1,384",
        "MobileNetV2 features.8 project": "8,384,14,14,64,1",
        "MobileNetV2 features.11 project": "8,384,14,14,96,1",
        "MobileNetV2 features.12 expand": "8,96,14,14,576,1",
        "MobileNetV2 features.12 depthwise": "8,576,14,14,576,3,1,1,1,576",
        "MobileNetV2 features.12 project": "8,576,14,14,96,1",
        "MobileNetV2 features.14 depthwise": "8,576,14,14,576,3,2,1,1,576",
        "MobileNetV2 features.14 project": "8,576,7,7,160,1",
        "MobileNetV2 features.15 expand": "8,160,7,7,960,1",
        "MobileNetV2 features.15 depthwise": "8,960,7,7,960,3,1,1,1,960",
        "MobileNetV2 features.15 project": "8,960,7,7,160,1",
        "MobileNetV2 features.17 project": "8,960,7,7,320,1",
        "MobileNetV2 features.18": "8,320,7,7,1280,1",
    },
    "unet": {
        "U-Net down1.0": "2,3,256,256,32,3,1,1",
        "U-Net down1.1": "2,32,256,256,32,3,1,1",
        "U-Net down2.0": "2,32,128,128,64,3,1,1",
        "U-Net down2.1": "2,64,128,128,64,3,1,1",
        "U-Net down3.0": "2,64,64,64,128,3,1,1",
        "U-Net down3.1": "2,128,64,64,128,3,1,1",
        "U-Net down4.0": "2,128,32,32,256,3,1,1",
        "U-Net down4.1": "2,256,32,32,256,3,1,1",
        # A transposed convolution's forward pass is the input gradient of this one.
        "U-Net up3 transposed": "2,128,64,64,256,2,2",
        "U-Net up3.0": "2,256,64,64,128,3,1,1",
        "U-Net up2.0": "2,128,128,128,64,3,1,1",
        "U-Net up1.0": "2,64,256,256,32,3,1,1",
        "U-Net head": "2,32,256,256,1,1",
    },
    "lenet": {"LeNet conv1": "64,1,28,28,6,5,1,2", "LeNet conv2": "64,6,14,14,16,5"},
    "stems": {
        "ResNet-50 conv1": "8,3,224,224,64,7,2,3",
        "VGG-16 features.0": "2,3,224,224,64,3,1,1",
        "MobileNetV2 features.0": "8,3,224,224,32,3,2,1",
        "AlexNet features.0": "8,3,224,224,64,11,4,2",
        "ConvNeXt-T features.0": "8,3,224,224,96,4,4",
        "ViT-B/16 conv_proj": "8,3,224,224,768,16,16",
        "5x5 1-32 @28": "64,1,28,28,32,5,1,2",
        "7x7 s2 1-64 @224": "8,1,224,224,64,7,2,3",
    },
    "depthwise": {
        "MobileNetV2 features.1 depthwise": "8,32,112,112,32,3,1,1,1,32",
        "MobileNetV2 features.2 depthwise": "8,96,112,112,96,3,2,1,1,96",
        "MobileNetV2 features.3 depthwise": "8,144,56,56,144,3,1,1,1,144",
        "MobileNetV2 features.8 depthwise": "8,384,14,14,384,3,1,1,1,384",
        "EfficientNet-B0 features.3.0 depthwise": "8,144,56,56,144,5,2,2,1,144",
        "EfficientNet-B0 features.3.1 depthwise": "8,240,28,28,240,5,1,2,1,240",
        "ConvNeXt-T features.1 depthwise": "8,96,56,56,96,7,1,3,1,96",
        "ConvNeXt-T features.7 depthwise": "8,768,7,7,768,7,1,3,1,768",
        "two filters a channel": "8,64,56,56,128,3,1,1,1,64",
    },
    "dilated": {
        "3x3 dilation 2 64 @56": "8,64,56,56,64,3,1,2,2",
        "3x3 dilation 2 256 @28": "8,256,28,28,256,3,1,2,2",
        "DeepLabV3 layer4.1.conv2": "2,512,28,28,512,3,1,4,4",
        "DeepLabV3 ASPP rate 12": "1,2048,28,28,256,3,1,12,12",
        "3x3 dilation 2, s2 64 @56": "8,64,56,56,64,3,2,2,2",
    },
    "grouped": {
        "ResNeXt-50 layer1.0.conv2": "8,128,56,56,128,3,1,1,1,32",
        "ResNeXt-50 layer2.0.conv2": "8,256,56,56,256,3,2,1,1,32",
        "ResNeXt-50 layer3.1.conv2": "8,512,14,14,512,3,1,1,1,32",
        "ResNeXt-50 layer4.1.conv2": "8,1024,7,7,1024,3,1,1,1,32",
        "AlexNet conv2, two halves": "8,96,27,27,256,5,1,2,1,2",
        "1x1 groups=4 256 @28": "8,256,28,28,256,1,1,0,1,4",
    },
    "n1": {
        "7x7 s2 3-64 @224, N=1": "1,3,224,224,64,7,2,3",
        "3x3 64 @56, N=1": "1,64,56,56,64,3,1,1",
        "3x3 128 @28, N=1": "1,128,28,28,128,3,1,1",
        "3x3 256 @14, N=1": "1,256,14,14,256,3,1,1",
        "3x3 512 @7, N=1": "1,512,7,7,512,3,1,1",
        "3x3 64 @224, N=1": "1,64,224,224,64,3,1,1",
        "1x1 64-256 @56, N=1": "1,64,56,56,256,1",
        "1x1 512-2048 @7, N=1": "1,512,7,7,2048,1",
        "depthwise 3x3 144 @56, N=1": "1,144,56,56,144,3,1,1,1,144",
    },
    "tiny": {
        "3x3 4 @8, N=1": "1,4,8,8,4,3,1,1",
        "3x3 16 @8, N=1": "1,16,8,8,16,3,1,1",
        "3x3 1-8 @28, N=1": "1,1,28,28,8,3,1,1",
        "1x1 8-16 @14, N=1": "1,8,14,14,16,1",
        "3x3 s2 8-16 @14, N=1": "1,8,14,14,16,3,2,1",
        "depthwise 3x3 32 @7, N=1": "1,32,7,7,32,3,1,1,1,32",
        "LeNet conv1, N=1": "1,1,28,28,6,5,1,2",
        "LeNet conv2, N=1": "1,6,14,14,16,5",
    },
    "scaling": {
        f"{name}: {spec.split(',')[0]} x {spec.split(',')[2]}^2": spec
        for name, specs in SWEEPS.items()
        for spec in specs
    },
}
SUITES: dict[str, tuple[Layer, ...]] = {
    suite: tuple(parse_layer(spec, name) for name, spec in specs.items())
    for suite, specs in _SPECS.items()
}


# Layers of every rank and kind, of which there are hundreds: a sample of each kind, or all.
REAL, ALL_REAL = "real", "real-all"
_ONE_OF = 6


def layers_of(suites: Iterable[str]) -> tuple[Layer, ...]:
    """Return the layers of some suites, a shape that several have once, under its first name."""
    by_shape: dict[str, Layer] = {}
    for suite in suites:
        for layer in _real_layers(suite) if suite in (REAL, ALL_REAL) else SUITES[suite]:
            by_shape.setdefault(layer.spec, layer)
    return tuple(by_shape.values())


def _real_layers(suite: str) -> Iterator[Layer]:
    """Yield all layers, or every sixth of a kind, from its first on."""
    seen: Counter[str] = Counter()
    for line in filter(None, LINES.splitlines()):
        spec, _, name = line.partition("  ")
        layer = parse_layer(spec, name.strip())
        if suite == ALL_REAL or seen[layer.kind] % _ONE_OF == 0:
            yield layer
        seen[layer.kind] += 1
