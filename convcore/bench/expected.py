"""How many times faster than a NumPy notebook convcore is expected to be, a layer.

Geometric means over the three maps on one thread, in the contiguous format: about the lower of what
two of OpenBLAS's kernels gave,

    convcore bench --quick --peers numpy --threads 1
    convcore bench --quick --peers numpy --threads 1 --isa avx2

A ratio to NumPy needs no idle machine and no particular one, as long as the margin is wide.
"""

from __future__ import annotations

MARGIN = 2.0
EXPECTED = {
    "ResNet-50 conv1": 4.0,
    "ResNet-50 layer1.0.conv2": 10.0,
    "ResNet-50 layer1.0.conv3": 1.2,
    "ResNet-50 layer2.0.conv2": 2.4,
    "ResNet-50 layer3.0.downsample": 1.5,
    "ResNet-50 layer4.1.conv2": 1.2,
    "VGG-16 features.2": 8.0,
    "VGG-16 features.24": 1.5,
    "MobileNetV2 features.3 expand": 1.1,
    "MobileNetV2 features.3 depthwise": 3.8,
    "LeNet conv1": 4.0,
    "LeNet conv2": 2.4,
}
