"""How many times faster than a NumPy notebook convcore is expected to be, a layer.

Geometric means over maps and threads, in the contiguous format, the lower of two kernels:

    convcore bench --quick --peers numpy
    convcore bench --quick --peers numpy --isa avx2

A ratio to NumPy needs no idle machine and no particular one, as long as the margin is wide.
"""

from __future__ import annotations

MARGIN = 2.0
EXPECTED: dict[str, float] = {
    "ResNet-50 conv1": 1.0,
    "ResNet-50 layer1.0.conv2": 1.0,
    "ResNet-50 layer1.0.conv3": 1.0,
    "ResNet-50 layer2.0.conv2": 1.0,
    "ResNet-50 layer3.0.downsample": 1.0,
    "ResNet-50 layer4.1.conv2": 1.0,
    "VGG-16 features.2": 1.0,
    "VGG-16 features.24": 1.0,
    "MobileNetV2 features.3 expand": 1.0,
    "MobileNetV2 features.3 depthwise": 1.0,
    "LeNet conv1": 1.0,
    "LeNet conv2": 1.0,
}
