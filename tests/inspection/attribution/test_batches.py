"""Inputs without the axis of the batch: told, instead of what a net says of a slice of them."""

import pytest

import convcore
from convcore import nn
from convcore.inspection import attribution

METHODS = {
    "saliency": attribution.saliency,
    "input_x_gradient": attribution.input_x_gradient,
    "smooth_grad": attribution.smooth_grad,
    "integrated_gradients": attribution.integrated_gradients,
    "guided_backprop": attribution.guided_backprop,
    "deconvolution": attribution.deconvolution,
    "deep_lift": attribution.deep_lift,
    "lrp": attribution.lrp,
    "grad_cam": lambda net, x: attribution.grad_cam(net, x, "0"),
    "layer_cam": lambda net, x: attribution.layer_cam(net, x, "0"),
    "occlusion": lambda net, x: attribution.occlusion(net, x, window=4),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("channels", [1, 3])
def test_one_image_is_told_its_missing_axis(name, channels):
    net = nn.Sequential(nn.Conv2d(channels, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 36, 3))
    with pytest.raises(ValueError, match=rf"got shape \({channels}, 8, 8\): .*unsqueeze\(0\)"):
        METHODS[name](net, convcore.rand(channels, 8, 8))
    assert METHODS[name](net, convcore.rand(1, channels, 8, 8)) is not None


def test_the_error_of_a_net_that_takes_no_batch_either_is_its_own():
    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(5, 3))
    for shape in ((3, 8, 8), (2, 3, 8, 8)):
        with pytest.raises(RuntimeError, match=r"expected input|mat1 and mat2"):
            attribution.saliency(net, convcore.rand(shape))
