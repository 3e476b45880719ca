"""Layers that people run, each once at N=1 against the oracle, in both memory formats."""

import numpy as np
import pytest
from draws import is_channels_last, is_dense, lay_out, numbers

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.geometry import make_geometry

# name: C_in, size, C_out, kernel, stride, padding, groups
LAYERS = {
    "resnet50.conv1": (3, 224, 64, 7, 2, 3, 1),
    "resnet50.layer1.conv1": (64, 56, 64, 1, 1, 0, 1),
    "resnet50.layer1.conv2": (64, 56, 64, 3, 1, 1, 1),
    "resnet50.layer1.conv3": (64, 56, 256, 1, 1, 0, 1),
    "resnet50.layer2.conv2": (128, 56, 128, 3, 2, 1, 1),
    "resnet50.layer2.downsample": (256, 56, 512, 1, 2, 0, 1),
    "resnet50.layer3.conv2": (256, 14, 256, 3, 1, 1, 1),
    "resnet50.layer4.conv2": (512, 7, 512, 3, 1, 1, 1),
    "resnet50.layer4.conv3": (512, 7, 2048, 1, 1, 0, 1),
    "resnet50.layer4.downsample": (1024, 14, 2048, 1, 2, 0, 1),
    "vgg16.conv1_1": (3, 224, 64, 3, 1, 1, 1),
    "vgg16.conv1_2": (64, 224, 64, 3, 1, 1, 1),
    "vgg16.conv3_1": (128, 56, 256, 3, 1, 1, 1),
    "vgg16.conv5_1": (512, 14, 512, 3, 1, 1, 1),
    "mobilenet_v2.conv1": (3, 224, 32, 3, 2, 1, 1),
    "mobilenet_v2.block1.depthwise": (32, 112, 32, 3, 1, 1, 32),
    "mobilenet_v2.block2.depthwise": (96, 112, 96, 3, 2, 1, 96),
    "mobilenet_v2.block3.project": (144, 56, 24, 1, 1, 0, 1),
    "mobilenet_v2.block14.depthwise": (576, 14, 576, 3, 2, 1, 576),
    "mobilenet_v2.block17.depthwise": (960, 7, 960, 3, 1, 1, 960),
    "mobilenet_v2.last": (320, 7, 1280, 1, 1, 0, 1),
    "lenet.conv1": (1, 28, 6, 5, 1, 2, 1),
    "lenet.conv2": (6, 14, 16, 5, 1, 0, 1),
}
FORMATS = ("contiguous", "channels_last")
# Direct sums, and others: in units of eps, out of the largest sum of absolute products.
MOST_EPS = {a.name: 4 if a.direct else 12 for a in ALGORITHMS}


@pytest.mark.parametrize("layer", LAYERS)
def test_real_layer_agrees_with_the_oracle(layer, rng):
    c_in, size, c_out, kernel, stride, padding, groups = LAYERS[layer]
    shapes = (1, c_in, size, size), (c_out, c_in // groups, kernel, kernel)
    g = make_geometry(*shapes, stride, padding, 1, groups)
    steps = {"stride": stride, "padding": padding, "groups": groups}
    x, w, y = (numbers(rng, shape, "float32") for shape in (*shapes, g.output_shape))
    sizes, kernels = (size, size), (kernel, kernel)
    for name, arrays, argument in [
        ("conv_forward", (x, w), ()),
        ("conv_input_grad", (y, w), (sizes,)),
        ("conv_weight_grad", (x, y), (kernels,)),
    ]:
        oracle = getattr(reference, name)
        exact = oracle(*arrays, *argument, **steps)
        bound = oracle(*map(np.abs, arrays), *argument, **steps)
        for memory_format in FORMATS:
            laid_out = [lay_out(a, memory_format, rng) for a in arrays]
            for strict in (False, True):
                with conv.flags(strict=strict):
                    result = getattr(engine, name)(*laid_out, *argument, **steps)
                    plan = engine.plan_conv(g, "float32", memory_format == "channels_last")
                algorithm = getattr(plan, name.removeprefix("conv_")).algorithm
                assert result.dtype == np.float32
                error = reference.error_in_eps(result, exact, bound, "float32")
                assert error <= MOST_EPS[algorithm], (name, memory_format, algorithm)
                channels_last = any(map(is_channels_last, laid_out))
                assert is_dense(result, channels_last), (name, memory_format)
