"""Layers of published nets, under the names that they have in torchvision.

Sizes are those of the nets' usual input (224 x 224 colour images; 28 x 28 digits for LeNet).
Batches are chosen so that a layer takes milliseconds: more images where maps are small.

References
----------
ResNet-50: He, Zhang, Ren & Sun 2016, arXiv 1512.03385, table 1 (stride in the 3x3, as torchvision).
VGG-16: Simonyan & Zisserman 2015, arXiv 1409.1556, table 1, column D.
MobileNetV2: Sandler et al. 2018, arXiv 1801.04381, table 2.
LeNet-5: LeCun, Bottou, Bengio & Haffner 1998, Proc. IEEE 86(11), section II.B (all maps connected).
"""

from __future__ import annotations

from convcore.bench.layer import Layer, parse_layer

_QUICK = {
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
}

SUITES: dict[str, tuple[Layer, ...]] = {
    "quick": tuple(parse_layer(spec, name) for name, spec in _QUICK.items()),
}
